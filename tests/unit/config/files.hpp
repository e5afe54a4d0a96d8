// SPDX-License-Identifier: Apache-2.0
// Writes sweep files from texts.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include <kvbench/config/sweep.hpp>
#include <support/messages.hpp>
#include <support/temp_folder.hpp>

namespace kvbench::testing {

/// A folder with sweep files.
class SweepFiles {
 public:
  std::string write(const std::string& text, const std::string& name = "s.toml") const {
    return folder.file(text, name);
  }
  config::Sweep read(const std::string& text) const { return config::read_sweep(write(text)); }
  /// The message of the Error, without the folder.
  std::string refusal(const std::string& text) const {
    const std::string path = write(text), message = message_of<Error>([&] { config::read_sweep(path); });
    REQUIRE(message.starts_with(folder.path() + "/"));
    return message.substr(folder.path().size() + 1);
  }

  TempFolder folder;
};

}  // namespace kvbench::testing
