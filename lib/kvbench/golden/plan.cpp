// SPDX-License-Identifier: Apache-2.0
#include <kvbench/golden/plan.hpp>

#include <algorithm>

#include <kvbench/methods/registry.hpp>

namespace kvbench::golden {
namespace {

/// All kv heads of a layer of the bundled trace: some methods see the whole layer.
struct Place {
  replay::Protocol protocol;
  const char* prompt;
  std::int64_t layer;
};
constexpr Place places[] = {
    {replay::Protocol::decode, "0", 2}, {replay::Protocol::prefill, "1", 14}, {replay::Protocol::decode, "2", 26}};

/// A number of tokens and a share of the memory; what a method cannot meet is replaced by what it can: retrieval holds
/// more than the full cache, and quantisers hold every token.
std::vector<std::string> budgets_of(const methods::MethodInfo& method) {
  using methods::Kind;
  // At 25%mem its fits have more unknowns than the trace has queries, so that rounding decides their figures.
  if (method.name == "attention-matching") return {"128"};
  // Lists of ids without runs are long. What a composition keeps at 25%mem, its parts have kept at other budgets.
  if (method.name == "wildcat" || methods::family_of(method.name) == "composition") return {"128"};
  switch (method.kind) {
    case Kind::exact:
      return {"100%mem"};
    case Kind::retrieval:
      return {"128", "40%read"};
    case Kind::quantisation:
      return {"25%mem", "60%mem"};
    default:
      return {"128", "25%mem"};
  }
}

}  // namespace

std::vector<Method> golden_methods() {
  std::vector<methods::MethodSettings> rows = methods::rows_of_set("all");
  rows.push_back({&methods::find_method("oracle-error"), {}});
  std::vector<Method> out;
  for (const auto& [info, settings] : rows) {
    const replay::MethodChoice choice{info, info->bind(settings)};
    out.push_back({choice, choice});
  }
  return out;
}

bool has_rows(const replay::MethodChoice& method, Index kv_head) {
  return kv_head != 1 || !method.info->heads_alone(method.params);
}

std::vector<replay::ReplayRequest> golden_requests(std::span<const Method> methods) {
  replay::ReplayRequest all;
  all.seeds = {0};
  all.budgets.clear();
  for (const char* budget : {"128", "25%mem", "40%read", "60%mem", "100%mem"})
    all.budgets.push_back(Budget::parse(budget));
  for (std::size_t m = 0; m < methods.size(); ++m) {
    all.methods.push_back(methods[m].replayed);
    const std::vector<std::string> own = budgets_of(*methods[m].named.info);
    for (std::size_t b = 0; b < all.budgets.size(); ++b) {
      if (std::ranges::find(own, all.budgets[b].text()) == own.end()) all.excluded.emplace_back(m, b);
    }
  }
  std::vector<replay::ReplayRequest> requests;
  for (const Place& place : places) {
    replay::ReplayRequest& request = requests.emplace_back(all);
    request.protocol = place.protocol;
    request.prompts = {place.prompt};
    request.layers = {place.layer};
  }
  return requests;
}

}  // namespace kvbench::golden
