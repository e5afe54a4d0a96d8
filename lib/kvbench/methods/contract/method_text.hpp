// SPDX-License-Identifier: Apache-2.0
// A method with settings as users write it: "subgen", "subgen[t=4,delta=2]".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/methods/contract/params.hpp>

namespace kvbench::methods {

struct MethodText {
  std::string name;
  std::optional<std::string> settings;  ///< the text in the brackets, absent where there are none
};
/// Absent where there are brackets, but not one pair that ends with the text. Round and curly brackets count where they
/// hold parameters or nothing: "snapkv(window=64)". Spaces around names are left out.
std::optional<MethodText> parse_method_text(std::string_view text);

/// "t=4,delta=2", or with semicolons as rows print it. Throws Error for an item that is not PARAMETER=VALUE,
/// and for a parameter that is given twice.
std::vector<Assignment> parse_settings(std::string_view settings);

}  // namespace kvbench::methods
