// SPDX-License-Identifier: Apache-2.0
// How a user names a configuration among results: [FILE:]METHOD[PARAMS][@BUDGET], such as subgen, subgen[t=4;delta=2],
// uniform@25% or 2:uniform@256. FILE counts the files given, from 1. Without [PARAMS] the method must stand there with one set
// of parameters only; [] are the defaults.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <kvbench/compare/query_results.hpp>

namespace kvbench {

struct ConfigurationName {
  std::optional<std::size_t> file;    ///< from 0
  std::string method;                 ///< as written
  std::optional<std::string> params;  ///< as written
  std::optional<std::string> budget;
};

/// Throws Error naming `flag` where the text is no such name.
ConfigurationName parse_configuration(std::string_view text, std::string_view flag);

/// Throws Error, with the nearest name or all of them, unless `name` stands for configurations of one method with one set of
/// parameters among `known`.
void check_known(const ConfigurationName& name, std::span<const QueryConfiguration> known, std::string_view flag);

/// Whether `name` may stand for this one, whatever the file.
bool matches(const ConfigurationName& name, const QueryConfiguration& configuration);

/// "subgen", "subgen[t=4]"
std::string label_of(const QueryConfiguration& configuration);

}  // namespace kvbench
