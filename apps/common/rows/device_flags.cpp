// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/device_flags.hpp>

#include <fmt/format.h>

#include <kvbench/core/name.hpp>
#include <kvbench/replay/run/devices.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/flag_names.hpp>
#include <apps/common/rows/shared_flags.hpp>

namespace kvbench::app {
namespace {

/// Explains the name that users of other programs expect.
CLI::Validator refuse_gpu() {
  return {[](const std::string& given) {
            return same_name(given, "gpu") ? fmt::format("'{}' is not a device; a GPU is cuda", given) : std::string();
          },
          ""};
}

}  // namespace

void add_device_flags(CLI::App* flags, DeviceFlags& o) {
  o.device_flag =
      flags
          ->add_option(
              "--device", o.device,
              "cpu, cuda, auto (cuda where a GPU is usable, else cpu) or ref (the slow reference implementation)")
          ->check(refuse_gpu())
          ->check(one_of({"auto", "cpu", "cuda", "ref"}));
  add_isa_flag(flags, o.isa);
  flags
      ->add_option("-j,--threads", o.threads,
                   "Number of threads (default: OMP_NUM_THREADS, else all processors; with cuda 1, as each thread "
                   "needs device memory)")
      ->check(number_in(0, 4096));
}

void resolve_device(DeviceFlags& options) {
  const replay::DeviceChoice choice = replay::choose_device(options.device);
  options.device = choice.backend;
  if (!choice.note.empty()) say("kvbench", with_flags(choice.note, ""));
}

replay::RunOptions run_options(const DeviceFlags& flags) {
  return {
      .backend = flags.device, .isa = flags.isa, .threads = flags.threads, .memory = static_cast<double>(flags.memory)};
}

}  // namespace kvbench::app
