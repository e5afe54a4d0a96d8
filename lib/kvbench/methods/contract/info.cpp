// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/info.hpp>

#include <fmt/format.h>

namespace kvbench::methods {

std::string against_values_in_keys(const MethodInfo& info, const Params& params) {
  if (info.own_values) return values_apart;
  if (!info.rounds || (info.one_rule && info.one_rule(params) > 0)) return "";
  return fmt::format(
      "{} rounds keys and values by rules of their own, or a whole key by one scale, and here the values are "
      "a part of the keys (MLA), which a cache stores as one row of two parts",
      info.name);
}

}  // namespace kvbench::methods
