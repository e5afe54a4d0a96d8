// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/shared_entries.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kvbench {
namespace {

constexpr std::size_t max_segments = 64;  // of a scope; more means that weights differ from token to token
constexpr double worthwhile = 0.9;        // tokens of all segments over slots of all sets

float shrink(float max, float larger) { return max == larger ? 1 : std::exp(max - larger); }

/// state += part with these weights. Rows of `dv` columns.
void add(const HostState& part, float weight_num, float weight_den, HostState& state) {
  const std::size_t rows = state.max.size(), dv = state.num.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    if (part.max[r] == -std::numeric_limits<float>::infinity()) continue;
    const float max = std::max(state.max[r], part.max[r]);
    const float old = shrink(state.max[r], max), scale = shrink(part.max[r], max);
    const float factor_num = weight_num * scale, factor_den = weight_den * scale;
    state.max[r] = max;
    state.den[r] = state.den[r] * old + part.den[r] * factor_den;
    float* to = state.num.data() + r * dv;
    const float* from = part.num.data() + r * dv;
    for (std::size_t c = 0; c < dv; ++c) to[c] = to[c] * old + from[c] * factor_num;
  }
}

}  // namespace

/// Sorts the tokens of one scope into segments.
class SharedEntries::Builder {
 public:
  Builder(std::span<const HostEntries* const> sets, Index tokens, bool per_head, bool per_query)
      : sets_(sets), per_head_(per_head), per_query_(per_query), steps_(sets.size()) {
    codes_.resize(static_cast<std::size_t>(tokens + 3) / 4 * 4);
    combination(std::vector<Weight>(sets.size()));  // number 0: in no set
  }

  /// False where there are too many combinations of weights.
  bool add_rows() {
    for (Index row = 0; row < rows(); ++row) {
      for (std::size_t s = 0; s < sets_.size(); ++s) {
        for (const HostEntries::Table& table : sets_[s]->tables()) {
          if (in_scope(table)) mark(s, table, row);
        }
      }
      if (segments_.size() > max_segments) return false;
      collect();
    }
    return true;
  }

  std::vector<Segment> take() {
    std::erase_if(segments_, [](const Segment& segment) { return segment.ids.empty(); });
    return std::move(segments_);
  }

 private:
  /// What one more set with this weight makes of a combination.
  struct Step {
    std::uint16_t from;
    Weight weight;
    std::uint16_t to;
  };

  bool in_scope(const HostEntries::Table& table) const { return table.per_head == per_head_ && table.per_query == per_query_; }

  Index rows() const {
    for (const HostEntries* set : sets_) {
      for (const HostEntries::Table& table : set->tables()) {
        if (in_scope(table)) return table.rows;
      }
    }
    return 0;
  }

  std::uint16_t combination(std::vector<Weight> weights) {
    const auto found = std::ranges::find(segments_, weights, &Segment::by_set);
    if (found != segments_.end()) return static_cast<std::uint16_t>(found - segments_.begin());
    segments_.push_back({.by_set = std::move(weights), .per_head = per_head_, .per_query = per_query_});
    return static_cast<std::uint16_t>(segments_.size() - 1);
  }

  std::uint16_t step(std::size_t set, std::uint16_t from, Weight weight) {
    std::vector<Step>& known = steps_[set];
    for (const Step& s : known) {
      if (s.from == from && s.weight == weight) return s.to;
    }
    std::vector<Weight> weights = segments_[from].by_set;
    weights[set].num += weight.num;  // a token may be in two tables of a set, once in each sum
    weights[set].den += weight.den;
    known.push_back({from, weight, combination(std::move(weights))});
    return known.back().to;
  }

  void mark(std::size_t set, const HostEntries::Table& table, Index row) {
    const auto begin = static_cast<std::size_t>(row * table.width), end = begin + static_cast<std::size_t>(table.width);
    Step last{std::numeric_limits<std::uint16_t>::max(), {}, 0};
    for (std::size_t slot = begin; slot < end && segments_.size() <= max_segments; ++slot) {
      if (table.ids[slot] < 0) continue;
      std::uint16_t& code = codes_[static_cast<std::size_t>(table.ids[slot])];
      const Weight weight{table.num.empty() ? 1 : table.num[slot], table.den.empty() ? 1 : table.den[slot]};
      if (last.from != code || !(last.weight == weight)) last = {code, weight, step(set, code, weight)};
      code = last.to;
    }
  }

  /// Moves the marked tokens to their segments, in increasing order.
  void collect() {
    for (std::size_t i = 0; i < codes_.size(); i += 4) {
      std::uint64_t four;
      std::memcpy(&four, &codes_[i], sizeof four);
      if (four == 0) continue;
      for (std::size_t j = i; j < i + 4; ++j) {
        if (codes_[j] != 0) segments_[codes_[j]].ids.push_back(static_cast<std::int32_t>(j));
        codes_[j] = 0;
      }
    }
    for (Segment& segment : segments_) {
      segment.ends.resize(static_cast<std::size_t>(done_), 0);  // rows before the segment's first are empty
      segment.ends.push_back(segment.ids.size());
    }
    ++done_;
  }

  std::span<const HostEntries* const> sets_;
  bool per_head_, per_query_;
  std::vector<std::uint16_t> codes_;  ///< by token: its combination so far, a segment's number
  std::vector<std::vector<Step>> steps_;
  std::vector<Segment> segments_;
  Index done_ = 0;
};

std::optional<SharedEntries> SharedEntries::of(std::span<const HostEntries* const> sets, Index tokens) {
  SharedEntries shared;
  for (const HostEntries* set : sets) {
    double slots = 0;
    for (const HostEntries::Table& table : set->tables()) {
      if (table.own || table.fp64) return std::nullopt;
      slots += static_cast<double>(std::ranges::count_if(table.ids, [](std::int32_t id) { return id >= 0; }));
    }
    shared.slots_.push_back(slots);
  }
  double in_sets = 0, in_segments = 0;
  for (const double slots : shared.slots_) in_sets += slots;
  for (const auto& [per_head, per_query] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    Builder builder(sets, tokens, per_head, per_query);
    if (!builder.add_rows()) return std::nullopt;
    for (Segment& segment : builder.take()) {
      in_segments += static_cast<double>(segment.ids.size());
      shared.segments_.push_back(std::move(segment));
    }
  }
  if (in_segments > worthwhile * in_sets) return std::nullopt;
  return shared;
}

EntryTable SharedEntries::Segment::table(Backend& backend) const {
  std::size_t width = 0, begin = 0;
  for (const std::size_t end : ends) width = std::max(width, end - std::exchange(begin, end));
  std::vector<std::int32_t> padded(ends.size() * width, -1);
  begin = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(ends[row]),
              padded.begin() + static_cast<std::ptrdiff_t>(row * width));
    begin = ends[row];
  }
  return {.per_head = per_head,
          .per_query = per_query,
          .ids = backend.adopt(std::move(padded), static_cast<Index>(ends.size()), static_cast<Index>(width))};
}

std::vector<SetAnswer> SharedEntries::attend(const HeadTokens& tokens, const QueryBlock& queries, const HostState& fixed,
                                             Backend& backend) const {
  std::vector<SetAnswer> answers(slots_.size(), {fixed, fixed});
  for (const Segment& segment : segments_) {
    AttentionState state = empty_state(backend, static_cast<Index>(fixed.max.size()), tokens.values.cols());
    const EntryTable table = segment.table(backend);
    kvbench::attend(backend, tokens, queries, {&table, 1}, state);
    const HostState part{backend.read(state.max), backend.read(state.den), backend.read(state.num)};
    for (std::size_t s = 0; s < answers.size(); ++s) {
      const Weight weight = segment.by_set[s];
      if (weight == Weight{}) continue;
      add(part, weight.num, weight.den, answers[s].all);
      if (weight == Weight{1, 1}) add(part, 1, 1, answers[s].plain);
    }
  }
  return answers;
}

}  // namespace kvbench
