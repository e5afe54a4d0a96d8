// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/file_name.hpp>

#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/methods/contract/wrapper.hpp>
#include <kvbench/methods/python_name.hpp>

namespace kvbench::methods {

std::string_view file_in(std::string_view name) {
  if (is_plan(name)) return name.substr(plan_prefix.size());
  const auto wrapped = parse_wrapped(name);
  const std::string_view own = wrapped ? wrapped->inside : name;
  if (is_scores(own)) {
    const std::size_t end = own.rfind(scores_ending);
    if (end == own.npos || end < scores_prefix.size()) return own.substr(scores_prefix.size());
    return own.substr(scores_prefix.size(), end + scores_ending.size() - scores_prefix.size());
  }
  const auto python = parse_python_name(own);
  return python ? own.substr(0, python->file.size()) : std::string_view();
}

}  // namespace kvbench::methods
