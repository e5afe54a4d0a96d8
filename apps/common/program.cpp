// SPDX-License-Identifier: Apache-2.0
#include <apps/common/program.hpp>

#include <cerrno>
#include <cstdio>
#include <new>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/kernels/backend.hpp>

namespace kvbench::app {
namespace {

bool write(std::FILE* stream, std::string_view text) noexcept {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
}

/// Opens /dev/null in place of standard streams that are closed, because a trace or an output would otherwise get the
/// number of one, and the messages. Returns the name of a closed output; nullptr where there is none.
const char* replace_closed_streams() {
  const char* closed = nullptr;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {  // open() returns the smallest free number
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", O_RDWR) != stream) return "a standard stream";
    if (stream != STDIN_FILENO) closed = stream == STDOUT_FILENO ? "standard output" : "standard error";
  }
  return closed;
}

/// Quoted files and flags cannot command a terminal.
std::string message(std::string_view program, std::string_view text) {
  return fmt::format("{}: {}\n", program, printable(text, "\n"));
}

int fail(const Program& program, ExitCode code, const std::string& text) {
  return try_to_show(message(program.name, program.words(text))) ? code : machine_failed;
}

int outcome_of(const Program& program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const NothingFits& error) {
    return fail(program, no_answer, error.what());
  } catch (const Error& error) {
    return fail(program, bad_input, error.what());
  } catch (const Interrupted&) {
    return fail(program, was_interrupted, fmt::format("interrupted; {}", program.nothing_written));
  } catch (const OutOfDeviceMemory& error) {
    return fail(program, machine_failed, error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return fail(program, machine_failed, error.what());
  }
}

}  // namespace

int run_program(const Program& program, const std::function<int()>& body) {
  if (const char* closed = replace_closed_streams())
    return fail(program, machine_failed, fmt::format("{} is closed; redirect it to a file or to /dev/null", closed));
  protect_read_files();
  try {
    return outcome_of(program, body);
  } catch (const std::bad_alloc&) {  // shown without allocating, as there may be nothing left
    for (const char* text : {program.name, ": out of memory; ", program.out_of_memory, "\n"}) try_to_show(text);
    return machine_failed;
  }
}

void print(std::string_view text) {
  check_not_read("/dev/stdout");
  if (!write(stdout, text)) throw_write_error("standard output", "cannot be written", errno);
}

void say(std::string_view program, std::string_view text) {
  if (!write(stderr, message(program, text))) throw_write_error("standard error", "cannot be written", errno);
}

bool try_to_show(std::string_view text) noexcept { return write(stderr, text); }

}  // namespace kvbench::app
