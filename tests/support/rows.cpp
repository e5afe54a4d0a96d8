// SPDX-License-Identifier: Apache-2.0
#include <support/rows.hpp>

#include <algorithm>
#include <iterator>

#include <kvbench/methods/sets.hpp>

namespace kvbench::testing {
namespace {

/// Settings for methods whose defaults need larger budgets than those of the tests.
std::vector<methods::Assignment> small_settings(const methods::MethodInfo& info) {
  if (info.name == "quest" || info.name == "twilight") return {{"page", "4"}};
  if (info.name == "lagkv") return {{"lag", "8"}};
  if (info.name == "compactor") return {{"sketch", "3"}, {"recent", "4"}, {"sinks", "2"}};
  if (info.name == "wildcat") return {{"rank", "3"}, {"sinks", "2"}, {"recent", "3"}};
  return {};
}

}  // namespace

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto [info, settings] : methods::rows_of_set("all")) {
    std::ranges::move(small_settings(*info), std::back_inserter(settings));
    rows.push_back({info, info->bind(settings)});
  }
  const auto add = [&](std::string_view name, std::vector<methods::Assignment> settings) {
    const methods::MethodInfo& info = methods::find_method(name);
    rows.push_back({&info, info.bind(settings)});
  };
  add("sink", {{"reposition", "false"}, {"sinks", "1"}});
  add("h2o", {{"prompt", "stream"}, {"per", "query_head"}});
  add("h2o", {{"reduce", "max"}, {"heavy", "1"}});
  add("h2o", {{"prompt", "stream"}, {"heavy", "0.2"}});
  add("h2o-global", {{"per", "kv_head"}, {"heavy", "0.8"}});
  add("cam", {{"prompt", "columns"}, {"per", "kv_head"}, {"reduce", "max"}, {"merge", "3"}});
  add("cam", {{"form", "eval"}, {"start_share", "0.5"}});
  add("cam", {{"form", "decode"}});
  add("cam", {{"form", "eval"}, {"prompt", "columns"}, {"per", "kv_head"}});
  add("snapkv", {{"window", "4"}, {"pooling", "mean"}});
  add("snapkv", {{"window", "1"}, {"order", "pool_first"}, {"reduce", "max"}});
  add("pyramidkv", {{"window", "4"}, {"beta", "2"}});
  add("keydiff", {{"block", "5"}, {"sinks", "2"}});
  add("curdkv", {{"window", "5"}, {"leverage", "mean"}, {"sinks", "0"}, {"recent", "3"}});
  add("lagkv", {{"sinks", "2"}, {"lag", "7"}});
  add("lagkv@kvpress", {{"sinks", "2"}, {"lag", "7"}});
  add("tova@kvpress", {{"sinks", "2"}, {"recent", "3"}});
  add("triattention", {{"reach", "4"}, {"reduce", "mean"}, {"recent", "3"}});
  add("compactor", {{"chunk", "7"}, {"sketch", "3"}, {"sinks", "2"}, {"recent", "1"}});
  add("compactor", {{"chunk", "50"}, {"sketch", "0"}, {"blend", "2"}});
  add("compactor", {{"form", "vllm"}, {"chunk", "9"}, {"sinks", "2"}, {"recent", "3"}});
  add("compactor", {{"blend", "0"}, {"sinks", "2"}, {"recent", "4"}});
  add("compactor", {{"form", "vllm"}});
  add("exact", {{"numbers", "f16"}});
  add("subgen", {{"delta", "1"}});
  add("subgen-kcenter", {{"values", "true"}});
  add("vattention", {{"samples", "beyond"}});
  add("clusterkv", {{"fill", "pad"}});
  add("infinigen", {{"fetch", "dynamic"}});
  add("r-kv", {{"window", "3"}, {"kernel", "3"}, {"buffer", "4"}, {"lambda", "0.5"}});
  add("expected-attention", {{"sinks", "0"}, {"future", "7"}, {"epsilon", "0.01"}});
  add("quest", {{"page", "5"}, {"min_pages", "1"}, {"last_page", "true"}});
  add("quest", {{"min_pages", "1"}, {"per", "kv_head"}});
  add("infinigen", {{"columns", "union"}, {"per", "kv_head"}});
  add("infinigen", {{"fetch", "dynamic"}, {"alpha", "1000"}, {"max_share", "1"}});
  add("vattention", {{"sinks", "2"}, {"heavy", "0.2"}, {"eps", "0.5"}, {"repeats", "each"}});
  add("vattention", {{"base", "0"}});
  add("attention-matching", {{"form", "omp"}, {"queries", "30"}});
  add("wildcat", {{"bins", "1"}, {"sinks", "1"}, {"recent", "0"}, {"tau", "fixed"}});
  add("rocketkv", {{"window", "4"}, {"kernel", "5"}, {"split", "0"}});
  add("magicpig", {{"bits", "3"}, {"tables", "20"}, {"sinks", "1"}, {"window", "6"}});
  add("retroinfer", {{"tokens_per_cluster", "4"}, {"segment", "12"}, {"update", "5"}, {"window", "3"}});
  add("retroinfer", {{"estimated", "1"}, {"tokens_per_cluster", "3"}, {"sinks", "0"}, {"update", "0"}});
  add("twilight", {{"p", "0.5"}, {"page", "3"}, {"min_pages", "1"}, {"per", "kv_head"}});
  add("kh-compress", {{"weight", "one"}, {"delta", "1"}});
  add("subgen", {{"t", "1"}, {"s", "3"}});
  add("subgen", {{"t", "3"}});
  add("subgen-kcenter", {{"recent", "0.2"}});
  add("chelsea", {{"chunk", "8"}, {"order", "concat"}, {"ratio", "0.3"}, {"decay", "0.1"}, {"slack", "3"}});
  add("chelsea", {{"outliers", "auto"}, {"sinks", "1"}, {"recent", "4"}});
  add("bsm", {{"sinks", "0"}, {"recent", "0"}, {"order", "concat"}});
  add("mesh", {{"sinks", "2"}, {"recent", "1"}, {"slack", "0"}});
  add("balancekv", {{"constants", "0.5"}, {"half", "smaller"}, {"block", "8"}});
  add("balancekv", {{"constants", "greedy"}});
  add("balancekv", {{"constants", "tight"}, {"half", "released"}, {"block", "16"}});
  add("balancekv", {{"mode", "stream"}, {"half", "smaller"}});
  add("balancekv", {{"mode", "stream"}, {"t", "4"}});
  add("balancekv-repo", {{"mass", "consistent"}, {"temp", "0.1"}, {"block", "16"}});
  add("uniform-repo", {{"block", "5"}});
  add("clusterkv", {{"clusters", "6"}, {"sinks", "2"}, {"every", "5"}, {"added", "2"}, {"distance", "l2"}});
  add("clusterkv",
      {{"tokens_per_cluster", "8"}, {"sinks", "0"}, {"every", "1"}, {"per", "kv_head"}, {"iterations", "1"}});
  add("clusterkv-repo", {{"clusters", "5"}, {"distance", "ip"}, {"per", "kv_head"}, {"reduce", "max"}});
  add("kmeans", {{"distance", "l2"}, {"iterations", "2"}});
  add("int", {{"bits", "3"}, {"group", "5"}});
  add("int", {{"group", "0"}});
  add("q8_0", {{"round", "away"}});
  add("kivi4", {{"group", "3"}, {"residual", "6"}});
  add("kivi2", {{"group", "4"}, {"residual", "4"}});
  add("qjl", {{"group", "4"}, {"residual", "8"}, {"sketch", "16"}, {"initial_sketch", "16"}, {"outliers", "2"}});
  add("kvquant-nofisher", {{"bits", "2"}, {"first", "true"}});
  add("h2o+kvquant-nofisher", {{"kvquant-nofisher.bits", "3"}});
  add("adakv(snapkv)", {{"window", "4"}, {"alpha", "0"}});
  add("adakv(pyramidkv)", {{"window", "4"}, {"beta", "2"}});
  add("adakv@kvpress(snapkv)", {{"window", "4"}, {"alpha", "0.5"}});
  add("criticalkv(snapkv)", {{"window", "4"}});
  add("adakv(snapkv)+kivi4", {{"window", "4"}, {"kivi4.group", "2"}, {"kivi4.residual", "4"}});
  add("snapkv+kivi2", {{"per", "query_head"}, {"kivi2.group", "2"}, {"kivi2.residual", "4"}});
  add("quest+kivi2", {{"page", "4"}, {"kivi2.group", "2"}, {"kivi2.residual", "4"}});
  add("clusterkv+kivi4", {{"clusters", "6"},
                          {"sinks", "2"},
                          {"every", "5"},
                          {"added", "2"},
                          {"kivi4.group", "2"},
                          {"kivi4.residual", "4"}});
  add("infinigen+int8", {{"int8.group", "4"}});
  add("h2o+kivi4", {{"prompt", "stream"}, {"kivi4.group", "2"}, {"kivi4.residual", "4"}});
  return rows;
}

}  // namespace kvbench::testing
