// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/cell.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/stopwatch.hpp>
#include <kvbench/replay/measure/memory.hpp>

namespace kvbench {
namespace {

/// Softmax weights of single-step queries over their entries, by table: [G, width].
std::vector<Buffer<const float>> observed_weights(const EntryTables& tables, const std::vector<Buffer<float>>& logits,
                                                  std::span<const float> max, std::span<const float> den, Backend& backend) {
  std::vector<Buffer<const float>> weights;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    std::vector<float> values = backend.read(logits[t]);
    const std::vector<float> weight_den = backend.read(tables[t].weight_den);
    const auto width = static_cast<std::size_t>(logits[t].cols());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::size_t row = k / width;
      const float factor = weight_den.empty() ? 1 : weight_den[(tables[t].per_head ? row : 0) * width + k % width];
      values[k] = factor * std::exp(values[k] - max[row]) / den[row];
    }
    weights.push_back(backend.adopt(std::move(values), logits[t].rows(), logits[t].cols()));
  }
  return weights;
}

RowState row_state(const HostState& state, std::size_t row, std::size_t dv) {
  return {state.max[row], state.den[row], std::span(state.num).subspan(row * dv, dv)};
}

}  // namespace

SharedBlock::SharedBlock(const Head& head, Index begin, Index count, const std::vector<TokenId>& fixed, Backend& backend)
    : exact(exact_block(head, begin, count, backend)), head_(&head), local_(localize(exact, head, backend)) {
  AttentionState state = empty_state(backend, exact.block.queries.rows(), head.tokens.values.cols());
  if (!fixed.empty()) {
    const EntryTable table{.ids = backend.adopt(std::vector(fixed), 1, static_cast<Index>(fixed.size()))};
    attend(backend, head.tokens, exact.block, {&table, 1}, state);
  }
  fixed_ = {backend.read(state.max), backend.read(state.den), backend.read(state.num)};
}

const BlockPart& SharedBlock::part(QueryRun run, Backend& backend) {
  const auto [found, inserted] = parts_.try_emplace(run);
  if (inserted) {
    BlockPart& part = found->second;
    part.global = sub_block(exact.block, head_->group, run.begin, run.size(), backend);
    part.local = head_->map.identity() ? part.global : sub_block(local_, head_->group, run.begin, run.size(), backend);
  }
  return found->second;
}

HostState SharedBlock::fixed(QueryRun run) const {
  return {rows(fixed_.max, run), rows(fixed_.den, run), rows(fixed_.num, run)};
}

HostState SharedBlock::whole(QueryRun run) const {
  HostState state{rows(exact.log_sum_exp, run), {}, rows(exact.out, run)};
  state.den.assign(state.max.size(), 1);
  return state;
}

std::vector<float> SharedBlock::rows(const std::vector<float>& all, QueryRun run) const {
  return query_rows(all, head_->group, exact.block.size(), run.begin, run.size());
}

CellRun::CellRun(std::unique_ptr<LayerCache> cache, Options options, std::span<const Head> heads,
                 std::vector<CellResult*> results)
    : cache_(std::move(cache)), options_(options), heads_(heads), results_(std::move(results)), tallies_(heads.size()) {
  next_ = heads.front().map.to_global(heads.front().map.middle);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    tallies_[h].squares.resize(static_cast<std::size_t>(heads[h].group));
    tallies_[h].steps.resize(static_cast<std::size_t>(heads[h].group));
    const auto query_rows = static_cast<std::size_t>(heads[h].group * heads[h].queries_per_head());
    results_[h]->metrics.resize(query_rows);
    if (options.keep_raw) {
      results_[h]->raw.emplace().output.resize(query_rows * static_cast<std::size_t>(heads[h].tokens.values.cols()));
    }
  }
}

void CellRun::start(std::span<SharedBlock> blocks) {
  answered_ = 0;
  if (!options_.standalone || !options_.selects) return;
  for (std::size_t h = 0; h < heads_.size(); ++h) results_[h]->attend_s += blocks[h].exact.seconds;
}

QueryRun CellRun::advance(std::span<SharedBlock> blocks, Backend& backend) {
  const std::vector<std::int32_t>& positions = blocks.front().exact.block.positions;
  const Index begin = answered_;
  if (!options_.decode) answered_ = static_cast<Index>(positions.size());
  while (answered_ == begin && begin < static_cast<Index>(positions.size())) {
    append(positions.back() + 1, backend);
    answered_ = static_cast<Index>(std::ranges::lower_bound(positions, next_) - positions.begin());
  }
  return {begin, answered_};
}

/// As many tokens as the method takes at once, up to token `end`.
void CellRun::append(Index end, Backend& backend) {
  std::vector<TokenBlock> tokens;
  for (const Head& head : heads_) {
    tokens.push_back({.first = head.map.local_end(next_),
                      .keys = head.tokens.keys.slice(next_, end - next_),
                      .values = head.tokens.values.slice(next_, end - next_)});
    if (options_.observes) {
      tokens.back().keys = tokens.back().keys.slice(0, 1);
      tokens.back().values = tokens.back().values.slice(0, 1);
    }
  }
  const Stopwatch watch(backend);
  const double flops = backend.cost().flops;
  const Index taken = cache_->append(tokens);
  if (taken < 1 || taken > tokens.front().size()) throw std::logic_error("append() took an impossible number of tokens");
  next_ += taken;
  const double share = 1.0 / static_cast<double>(heads_.size());
  const double seconds = watch.seconds() * share;
  for (CellResult* result : results_) {
    result->attend_s += seconds;
    result->attend_flops += (backend.cost().flops - flops) * share;
  }
}

void CellRun::collect(std::span<SharedBlock> blocks, QueryRun run, std::span<const std::shared_ptr<BlockMemo>> memos,
                      Backend& backend) {
  collected_ = {};
  for (std::size_t h = 0; h < blocks.size(); ++h) {
    collected_.heads.push_back({.part = blocks[h].part(run, backend)});
    if (options_.standalone) collected_.heads.back().part.global.scores = {};
    collected_.locals.push_back(collected_.heads.back().part.local);
    if (!memos.empty()) collected_.locals.back().memo = memos[h];
  }
  const Stopwatch watch(backend);
  double flops = -backend.cost().flops;
  collected_.entries = cache_->entries(collected_.locals);
  const double share = 1.0 / static_cast<double>(heads_.size());
  const double seconds = watch.seconds() * share;
  flops += backend.cost().flops;
  for (const auto& memo : memos) flops += memo->take_saved_flops();
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const Head& head = heads_[h];
    Collected::OfHead& of_head = collected_.heads[h];
    TableStore own;
    read_entries(h, run.size(), memos.empty() ? own : memos[h]->get<TableStore>(backend, [] { return TableStore{}; }), backend);
    of_head.complete = shares() && of_head.host->complete(head.map.local_end(next_));
    results_[h]->attend_s += seconds;
    results_[h]->attend_flops += flops * share + attend_flops(head.tokens, of_head.part.global, of_head.tables);
    if (options_.keep_raw) keep_entries(h, blocks[h].exact.begin + run.begin, of_head.tables, backend);
  }
}

void CellRun::read_entries(std::size_t h, Index queries, TableStore& store, Backend& backend) {
  const Head& head = heads_[h];
  const EntryTables& entries = collected_.entries[h];
  if (!store.found_sound(entries)) {
    check_entries(backend, head.tokens, queries, head.map.local_end(next_), entries);
    store.add_sound(entries);
  }
  HostEntries::Tables tables;
  for (const EntryTable& table : entries) {
    const TableStore::Held& held = store.hold(table, head.map, backend);
    collected_.heads[h].tables.push_back(held.global);
    tables.push_back(held.host);
  }
  collected_.heads[h].host.emplace(std::move(tables), queries);
}

void CellRun::answer(SharedBlock& block, QueryRun run, std::size_t h, const Shared* shared, Backend& backend) {
  if (complete(h)) {
    const HostState exact = block.whole(run);
    measure(block, run, h, {exact, exact}, backend);
  } else if (shared != nullptr) {
    results_[h]->attend_s += shared->seconds;
    measure(block, run, h, shared->answer, backend);
  } else {
    measure(block, run, h, attend(block.fixed(run), h, backend), backend);
  }
}

SetAnswer CellRun::attend(const HostState& fixed, std::size_t h, Backend& backend) {
  const Head& head = heads_[h];
  Collected::OfHead& of_head = collected_.heads[h];
  const auto rows = static_cast<Index>(fixed.max.size()), dv = head.tokens.values.cols();
  const auto over = [&](const EntryTables& tables, std::vector<Buffer<float>>* logits) {
    AttentionState state{backend.adopt(std::vector(fixed.max), rows), backend.adopt(std::vector(fixed.den), rows),
                         backend.adopt(std::vector(fixed.num), rows, dv)};
    kvbench::attend(backend, head.tokens, of_head.part.global, tables, state, logits);
    return HostState{backend.read(state.max), backend.read(state.den), backend.read(state.num)};
  };
  std::vector<Buffer<float>> logits;
  const Stopwatch watch(backend);
  SetAnswer answer{over(of_head.tables, options_.observes ? &logits : nullptr), fixed};
  results_[h]->attend_s += watch.seconds();
  if (of_head.host->all_plain())
    answer.plain = answer.all;
  else if (of_head.host->any_plain())
    answer.plain = over(of_head.host->plain_part(backend), nullptr);
  if (options_.observes) of_head.weights = observed_weights(of_head.tables, logits, answer.all.max, answer.all.den, backend);
  return answer;
}

void CellRun::observe() {
  if (!options_.observes) return;
  std::vector<std::vector<Buffer<const float>>> weights;
  for (Collected::OfHead& head : collected_.heads) weights.push_back(std::move(head.weights));
  cache_->observe(collected_.locals, collected_.entries, weights);
}

RecallRange CellRun::recall_range(std::size_t h) const {
  const TokenMap& map = heads_[h].map;
  const Protected kept = cache_->protected_tokens()[h];
  const bool may_drop_decoded = options_.decode && !kept.decoded;
  if (may_drop_decoded && map.last > 0) return {};  // what may be dropped lies on both sides of protected tokens
  return {.first = map.first + (options_.recall_sinks ? 0 : kept.sinks),
          .last = may_drop_decoded ? heads_[h].num_tokens() : map.first + map.middle - kept.recent};
}

void CellRun::measure(SharedBlock& block, QueryRun run, std::size_t h, const SetAnswer& set, Backend& backend) {
  const HostEntries& entries = *collected_.heads[h].host;
  const EntryTables& tables = collected_.heads[h].tables;
  const Index begin = run.begin, count = run.size();
  const Head& head = heads_[h];
  ExactBlock& exact = block.exact;
  Tally& tally = tallies_[h];
  const auto dv = static_cast<std::size_t>(head.tokens.values.cols());
  const RecallRange range = recall_range(h);
  const bool shared_rows = std::ranges::none_of(tables, [](const EntryTable& t) { return t.per_head; });
  for (Index g = 0; g < head.group; ++g) {
    for (Index i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(begin + i), row = static_cast<std::size_t>(g * exact.block.size() + begin + i);
      const auto part_row = static_cast<std::size_t>(g * count + i);
      const RowTruth truth{std::span(exact.out).subspan(row * dv, dv), exact.log_sum_exp[row], exact.p_norm[row],
                           head.v_op[static_cast<std::size_t>(exact.begin) + at],
                           head.v_fro[static_cast<std::size_t>(exact.begin) + at]};
      const RowState answer = row_state(set.all, part_row, dv);
      const RowState plain = row_state(set.plain, part_row, dv);
      MetricRow& metrics =
          results_[h]->metrics[static_cast<std::size_t>(g * head.queries_per_head() + exact.begin + begin + i)];
      const SquaredError squares = set_errors(truth, answer, metrics);
      if (options_.keep_raw) {
        float* out = results_[h]->raw->output.data() +
                     static_cast<std::size_t>(g * head.queries_per_head() + exact.begin + begin + i) * dv;
        for (std::size_t c = 0; c < dv; ++c) out[c] = static_cast<float>(component(answer, c));
      }
      set_decomposition(truth, answer, plain, metrics);
      if (entries.two_sets())
        metrics[static_cast<std::size_t>(Metric::mass_err)] = metrics[static_cast<std::size_t>(Metric::dir_err)] = NAN;
      set_recall(entries, exact, range, g, begin + i, i, backend, metrics);
      tally.squares[static_cast<std::size_t>(g)].difference += squares.difference;
      tally.squares[static_cast<std::size_t>(g)].exact += squares.exact;
      const auto used = static_cast<double>(entries.count(g, i, exact.visible_first[at], exact.visible_last[at]).all);
      tally.entries += used;
      tally.rows_read += g == 0 || !shared_rows ? used : 0;
      tally.query_rows += 1;
      if (entries.has_groups()) {
        ClusterStep step = cluster_step(entries, g, i, exact.visible_first[at], exact.visible_last[at]);
        step.position = exact.block.positions[at];
        step.query = exact.begin + begin + i;
        tally.steps[static_cast<std::size_t>(g)].push_back(std::move(step));
      }
    }
  }
}

void CellRun::keep_entries(std::size_t h, Index first_query, const EntryTables& tables, Backend& backend) {
  RawCell& raw = *results_[h]->raw;
  raw.entries_query = first_query;
  raw.entries.clear();
  for (const EntryTable& t : tables) {
    raw.entries.push_back({t.per_head, t.per_query, t.ids.rows(), t.ids.cols(), backend.read(t.ids), backend.read(t.weight_num),
                           backend.read(t.weight_den), backend.read(t.own_keys), backend.read(t.own_values)});
  }
}

void CellRun::finish() {
  const std::vector<Footprint> footprints = cache_->footprint();
  results_.front()->notes = cache_->notes();
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const Head& head = heads_[h];
    const Tally& tally = tallies_[h];
    CellResult& result = *results_[h];
    const double queries = tally.query_rows / static_cast<double>(head.group);
    for (std::size_t g = 0; g < tally.steps.size(); ++g) {
      const auto count = static_cast<std::size_t>(head.queries_per_head());
      set_cache_hits(tally.steps[g], std::span(result.metrics).subspan(g * count, count));
    }
    result.kept_tokens = tally.entries / tally.query_rows;
    const Index cached = options_.decode ? head.map.local_end(next_) : head.map.middle;
    result.bytes = account(footprints[h], options_.kv_element, tally.rows_read / queries, cached, head.tokens.keys.cols(),
                           head.tokens.values.cols());
    for (const SquaredError& square : tally.squares) {
      result.rel_err_fro.push_back(square.exact > 0 ? static_cast<float>(std::sqrt(square.difference / square.exact)) : NAN);
    }
  }
}

}  // namespace kvbench
