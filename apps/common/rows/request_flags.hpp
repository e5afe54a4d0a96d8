// SPDX-License-Identifier: Apache-2.0
// The flags that set fields of a request, from the table of fields.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <kvbench/replay/plan/fields.hpp>

namespace kvbench::app {

/// A request with the flags that set it.
class RequestFlags : public replay::ReplayRequest {
 public:
  /// Adds the flags of the fields of this command, with the present values as defaults, and --set beside --method.
  void add(CLI::App* flags, bool replay::FieldCommands::*command);
  /// Sets the fields whose flags take texts. Throws Error.
  void resolve();
  /// What was given for a field that is a list.
  const std::vector<std::string>& given(std::string_view field) { return lists_[field]; }

 private:
  struct Adder;
  struct Resolver;
  std::map<std::string_view, std::vector<std::string>> lists_;  ///< by name of the field, as given
  std::vector<std::string> settings_;
};

}  // namespace kvbench::app
