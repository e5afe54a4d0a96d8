// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sets.hpp>

#include <algorithm>

#include <kvbench/core/name.hpp>
#include <kvbench/methods/engines.hpp>

namespace kvbench::methods {
namespace {

/// The last rows of every set: eviction and merging, with 4, 5, 8 and 16 bits.
constexpr std::string_view compositions[] = {"adakv(snapkv)", "snapkv+kivi4", "h2o+kivi4",
                                             "h2o+q5_1",      "h2o+q8_0",     "kmeans+int8"};

/// The rows of `families` before these.
constexpr std::string_view families[] = {"sink",    "h2o",    "snapkv",     "pyramidkv", "cam",    "balancekv",
                                         "uniform", "subgen", "chelsea",    "bsm",       "kmeans", "int",
                                         "kivi4",   "kivi2",  "turboquant", "random"};

/// `all` leaves them out: a ceiling that takes seconds per head, and methods that need more than a trace.
constexpr std::string_view left_out[] = {"oracle-error", "duo", "duo@kvpress"};

bool is_left_out(const MethodInfo& method) { return std::ranges::find(left_out, method.name) != std::end(left_out); }

}  // namespace

std::vector<std::string> set_names() {
  std::vector<std::string> names = {"all", "families"};
  for (const MethodInfo& method : all_methods()) {
    const std::string kind(name_of(method.kind));
    if (method.kind != Kind::exact && std::ranges::find(names, kind) == names.end()) names.push_back(kind);
  }
  for (const EngineInfo& engine : engines()) names.emplace_back(engine.name());
  return names;
}

std::vector<MethodSettings> rows_of_set(std::string_view name) {
  if (!is_set(name)) return {};
  if (const EngineInfo* engine = find_engine(name)) return rows_of_engine(engine->engine);
  const std::optional<Kind> family = find_family(name);
  const bool all = same_name(name, "all");
  std::vector<MethodSettings> rows;
  for (const MethodInfo& method : all_methods()) {
    const bool usual = std::ranges::find(families, method.name) != std::end(families);
    const bool has = family ? method.kind == *family && !is_left_out(method) : all ? !is_left_out(method) : usual;
    if (!has) continue;
    rows.push_back({&method, {}});
    if (!all) continue;
    for (const auto& variant : method.variants) rows.push_back({&method, variant});
  }
  if (family) return rows;
  for (const std::string_view one : compositions) rows.push_back({&find_method(one), {}});
  return rows;
}

}  // namespace kvbench::methods
