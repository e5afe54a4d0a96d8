// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/chelsea/settings.hpp>

#include <fmt/format.h>

namespace kvbench::bounds {

std::vector<methods::Assignment> ChelseaSettings::assignments() const {
  return {{"sinks", fmt::to_string(sinks)}, {"recent", fmt::to_string(recent)},    {"chunk", fmt::to_string(chunk)},
          {"slack", fmt::to_string(slack)}, {"ratio", fmt::to_string(ratio)},      {"decay", fmt::to_string(decay)},
          {"floor", fmt::to_string(floor)}, {"order", concat ? "concat" : "place"}};
}

std::string ChelseaSettings::text() const {
  std::string out;
  for (const methods::Assignment& a : assignments())
    out += fmt::format("{}{}={}", out.empty() ? "" : ";", a.name, a.value);
  return out;
}

ChelseaUnderTest registered_chelsea() {
  return [](const ChelseaSettings& settings) { return registered_method("chelsea", settings.assignments()); };
}

}  // namespace kvbench::bounds
