// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/ask_program.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>

#include <apps/common/stop_signals.hpp>

namespace kvbench::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t most = 64 << 10;

/// Starts the program as the leader of a process group, so that what it starts can be killed too. Both its output
/// streams are `to`. Returns an errno.
int start(pid_t& process, const std::string& path, const Words& words, int to) {
  Words texts = {path};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int fault = posix_spawn(&process, path.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return fault;
}

/// What is printed until the end of the stream; stops early at `end`, or if the user stops this program.
std::string read_until(int from, Clock::time_point end) {
  std::string text;
  char part[4096];
  while (Clock::now() < end && !stop_requested()) {
    pollfd waiting{.fd = from, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 50) <= 0) continue;  // no answer yet, or a signal
    const ssize_t count = ::read(from, part, sizeof part);
    if (count <= 0) break;
    text.append(part, std::min(static_cast<std::size_t>(count), most - text.size()));
  }
  return text;
}

/// The status of the process as waitpid() has it; -1 if it was killed here.
int status_of(pid_t process, Clock::time_point end) {
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (Clock::now() >= end || stop_requested()) {
      ::kill(-process, SIGKILL);
      waitpid(process, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

}  // namespace

ProgramAnswer ask_program(const std::string& path, const Words& words, std::chrono::seconds limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw IoError("no pipe can be made: {}", std::strerror(errno));
  pid_t process = 0;
  const int fault = start(process, path, words, ends[1]);
  ::close(ends[1]);
  ProgramAnswer answer;
  if (fault != 0) {
    answer.fault = fmt::format("cannot be started: {}", std::strerror(fault));
  } else {
    const Clock::time_point end = Clock::now() + limit;
    answer.text = read_until(ends[0], end);
    const int status = status_of(process, end);
    if (status == -1)
      answer.fault = fmt::format("gave no answer in {} s", limit.count());
    else if (WIFSIGNALED(status))
      answer.fault = fmt::format("was ended by signal {}", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
      answer.fault = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }
  ::close(ends[0]);
  stop_if_requested();
  return answer;
}

}  // namespace kvbench::app
