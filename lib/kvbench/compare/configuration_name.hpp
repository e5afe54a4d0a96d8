// SPDX-License-Identifier: Apache-2.0
// Names of configurations in results: [FILE:]METHOD[PARAMS][@BUDGET], such as subgen, subgen[t=4;delta=2], uniform@25%
// or 2:uniform@256. FILE is the number of the file on the command line, from 1. Without [PARAMS] the default
// parameters are meant where the results have several sets of parameters; [] are always the defaults, and a parameter
// may be named although it has its default value. Methods are named without case, and those of files by their ends.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <kvbench/compare/query_results.hpp>

namespace kvbench::compare {

struct ConfigurationName {
  std::optional<std::size_t> file;    ///< from 0
  std::string method;                 ///< as written
  std::optional<std::string> params;  ///< as written
  std::optional<std::string> budget;
};

/// Throws Error with `flag` where the text is not such a name.
ConfigurationName parse_configuration(std::string_view text, std::string_view flag);

/// The one of the methods `known` that a name means: the same, the same without case, or the only one that ends with
/// it behind a colon or slash, as ./mine.py:farmean with farmean and mine.py:farmean. The name itself where there is
/// none. Throws Error with `flag` where several end so.
std::string method_meant(const std::string& written, std::span<const std::string> known, std::string_view flag);

/// The name in the words of the results `known`: all configurations that it matches are of one method and one set of
/// parameters. Throws Error, with the nearest name or all names, where there are none, or several sets of parameters
/// and no defaults.
ConfigurationName resolved(ConfigurationName name, std::span<const QueryConfiguration> known, std::string_view flag);

/// Whether `name` matches this configuration; the file is ignored.
bool matches(const ConfigurationName& name, const QueryConfiguration& configuration);

/// "subgen", "subgen[t=4]"
std::string label_of(const QueryConfiguration& configuration);
/// The reverse: method and parameters.
QueryConfiguration configuration_of(const std::string& label);

}  // namespace kvbench::compare
