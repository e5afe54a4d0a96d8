// SPDX-License-Identifier: Apache-2.0
// The device and the threads with which a command computes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::app {

struct DeviceFlags {
  std::string device = "cpu";
  int threads = 0;
  std::uint64_t memory = 0;  ///< bytes; 0: not given
  std::optional<Isa> isa;
  CLI::Option* device_flag = nullptr;
};

/// Adds --device, --isa and --threads.
void add_device_flags(CLI::App* flags, DeviceFlags& options);
/// Resolves --device; reports on stderr where `auto` finds no GPU. Throws Error where the device cannot be used.
void resolve_device(DeviceFlags& options);
/// The options that the flags stand for.
replay::RunOptions run_options(const DeviceFlags& flags);

}  // namespace kvbench::app
