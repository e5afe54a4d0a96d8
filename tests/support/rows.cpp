// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <support/rows.hpp>

#include <cmath>
#include <limits>

#include <kvbench/methods/contract/host_table.hpp>

namespace kvbench::testing {
namespace {

/// Settings for methods whose defaults need larger budgets than those of the tests.
std::vector<methods::Assignment> small_settings(const methods::MethodInfo& info) {
  if (info.name == "quest") return {{"page", "4"}};
  return {};
}

/// This shape with enough channels for whole blocks of the row.
Shape whole_blocks(const Row& row, Shape shape) {
  if (!row.info->block) return shape;
  const Index block = row.info->block(row.params).channels;
  for (Index* channels : {&shape.d, &shape.dv}) *channels = (*channels + block - 1) / block * block;
  return shape;
}

/// The part of the result of a block for query i of m.
Result of_query(const Result& block, std::size_t i, std::size_t m, std::size_t dv) {
  Result result;
  for (std::size_t r = i; r < block.entries.size(); r += m) {
    result.entries.push_back(block.entries[r]);
    const auto begin = block.answers.begin() + static_cast<std::ptrdiff_t>(r * dv);
    result.answers.insert(result.answers.end(), begin, begin + static_cast<std::ptrdiff_t>(dv));
  }
  return result;
}

}  // namespace

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto [info, settings] : methods::rows_of_all()) {
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
  add("quest", {{"page", "5"}, {"min_pages", "1"}, {"last_page", "true"}});
  add("quest", {{"min_pages", "1"}, {"per", "kv_head"}});
  add("infinigen", {{"columns", "union"}, {"per", "kv_head"}});
  add("infinigen", {{"fetch", "dynamic"}, {"alpha", "1000"}, {"max_share", "1"}});
  add("subgen", {{"t", "1"}, {"s", "3"}});
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

Heads heads_for(const Row& row, const Shape& shape, Backend& backend) {
  Heads heads;
  for (std::uint32_t h = 0; h < (row.info->granularity == methods::Granularity::layer ? 3u : 1u); ++h) {
    heads.push_back(random_head(whole_blocks(row, shape), h, backend));
    heads.back().head = KvHeadId(h);
  }
  return heads;
}

PreparedRow::PreparedRow(const Row& row, const std::vector<methods::HeadPrompt>& prompts, Backend& backend)
    : row_(row), head_(prompts.front()), make_(row.info->prepare(prompts, row.params, backend)) {}

Instance PreparedRow::make(Index budget, std::uint32_t seed) const {
  if (row_.info->plan != nullptr) {
    const std::vector<Index> budgets = row_.info->plan(head_.num_layers, head_.tokens(), budget, row_.params);
    budget = budgets.at(static_cast<std::size_t>(head_.layer.value));
  }
  return {make_(budget, seed)};
}

std::vector<methods::HeadPrompt> prompts_of(const Heads& heads, Backend& backend) {
  std::vector<methods::HeadPrompt> prompts;
  for (const HeadData& head : heads) {
    prompts.push_back(prompt_of(head, backend));
    if (heads.size() > 1) prompts.back().num_kv_heads = std::ssize(heads);  // those of a layer
  }
  return prompts;
}

Instance open(const Row& row, const std::vector<methods::HeadPrompt>& prompts, Index budget, std::uint32_t seed,
              Backend& backend) {
  return PreparedRow(row, prompts, backend).make(budget, seed);
}

Instance open(const Row& row, const Heads& heads, Index budget, std::uint32_t seed, Backend& backend) {
  return open(row, prompts_of(heads, backend), budget, seed, backend);
}

Instance try_open(const Row& row, const Heads& heads, Index budget, std::uint32_t seed, Backend& backend) {
  try {
    return open(row, heads, budget, seed, backend);
  } catch (const methods::Infeasible& refusal) {
    CHECK_FALSE(std::string(refusal.what()).empty());
  } catch (const methods::Unavailable& refusal) {
    CHECK_FALSE(std::string(refusal.what()).empty());
  }
  return {};
}

std::vector<Result> prefill(const Instance& instance, const Heads& heads, Backend& backend) {
  const Index n = heads[0].n, total = heads[0].total;
  std::vector<methods::QueryBlock> blocks;
  for (const HeadData& head : heads) blocks.push_back(query_block(head, n, total, total, backend));
  const auto tables = instance.cache->entries(blocks);
  REQUIRE(tables.size() == heads.size());

  std::vector<Result> results;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const methods::HeadTokens tokens = tokens_of(heads[h], total, backend);
    CHECK_NOTHROW(check_entries(backend, tokens, total - n, n, tables[h]));
    methods::EntryTables with_tail = tables[h];
    with_tail.push_back(exact_entries(n, total, backend));
    results.push_back(
        {visible_entries(heads[h], tables[h], blocks[h], backend), answer(heads[h], blocks[h], with_tail, backend)});
  }
  return results;
}

std::vector<std::vector<Result>> decode(const Instance& instance, const Heads& heads, Index block, bool observes,
                                        Backend& backend) {
  std::vector<std::vector<Result>> results(heads.size());
  const Index total = heads[0].total;
  for (Index begin = heads[0].n; begin < total;) {
    std::vector<methods::TokenBlock> pending;
    for (const HeadData& head : heads) {
      pending.push_back(token_block(head, begin, std::min(begin + block, total), backend));
    }
    const Index taken = instance.cache->append(pending);
    REQUIRE(taken >= 1);
    REQUIRE(taken <= pending[0].size());
    if (observes) REQUIRE(taken == 1);

    const Index end = begin + taken;
    std::vector<methods::QueryBlock> blocks;
    for (const HeadData& head : heads) blocks.push_back(query_block(head, begin, end, end, backend));
    const auto tables = instance.cache->entries(blocks);
    REQUIRE(tables.size() == heads.size());
    std::vector<std::vector<Buffer<const float>>> weights(heads.size());
    for (std::size_t h = 0; h < heads.size(); ++h) {
      CHECK_NOTHROW(check_entries(backend, tokens_of(heads[h], end, backend), taken, end, tables[h]));
      const Result whole{visible_entries(heads[h], tables[h], blocks[h], backend),
                         answer(heads[h], blocks[h], tables[h], backend, &weights[h])};
      for (Index i = 0; i < taken; ++i) {
        results[h].push_back(of_query(whole, static_cast<std::size_t>(i), static_cast<std::size_t>(taken),
                                      static_cast<std::size_t>(heads[h].dv)));
      }
    }
    if (observes) instance.cache->observe(blocks, tables, weights);
    begin = end;
  }
  return results;
}

double max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || !all_finite(a) || !all_finite(b)) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

}  // namespace kvbench::testing
