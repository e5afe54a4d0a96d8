// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/segments.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <kvbench/core/stopwatch.hpp>

namespace kvbench::replay {
namespace {

constexpr double worthwhile = 0.9;        ///< upper limit of (slots of all segments) / (slots of all sets)
constexpr std::size_t max_segments = 16;  ///< beyond this number, one pass of attention per segment does not save work

/// The positions of the bits that are set in a mask of 8 bits, and their number.
struct MarkedOf8 {
  std::array<std::int32_t, 8> place{};
  std::size_t count = 0;
};
std::array<MarkedOf8, 256> marked_by_mask() {
  std::array<MarkedOf8, 256> table;
  for (unsigned mask = 0; mask < 256; ++mask) {
    for (int bit = 0; bit < 8; ++bit) {
      if ((mask >> bit & 1u) != 0) table[mask].place[table[mask].count++] = bit;
    }
  }
  return table;
}

/// Splits the tables of one scope, which have equal per_head and per_query, into segments.
class ScopeSplitter {
 public:
  ScopeSplitter(std::span<const HostEntries* const> sets, Index tokens, bool per_head, bool per_query)
      : sets_(sets), per_head_(per_head), per_query_(per_query), steps_(sets.size()) {
    combination(std::vector<SetWeight>(sets.size()));  // code 0: in no set
    for (const HostEntries* set : sets) {
      for (const ReadTable& table : set->tables()) {
        if (in_scope(table)) rows_ = table.rows;
      }
    }
    if (rows_ == 0) return;
    codes_.resize(static_cast<std::size_t>(tokens + 7) / 8 * 8);
    marked_.resize(codes_.size() + 8);
  }

  /// Returns false where the weights give too many combinations.
  bool split() {
    for (Index row = 0; row < rows_; ++row) {
      for (std::size_t s = 0; s < sets_.size(); ++s) {
        for (const ReadTable& table : sets_[s]->tables()) {
          if (in_scope(table)) mark(s, table, row);
        }
      }
      if (too_many()) return false;
      collect(row);
    }
    return true;
  }

  Index slots() const { return slots_; }

  void append_to(std::vector<Segment>& segments, Backend& backend) const {
    for (std::size_t s = 0; s < lists_.size(); ++s) {
      const List& list = lists_[s];
      Index width = 0;
      for (const auto& [begin, end] : list.rows) width = std::max(width, end - begin);
      std::vector<std::int32_t> ids(static_cast<std::size_t>(rows_ * width), -1);
      for (std::size_t row = 0; row < list.rows.size(); ++row) {
        const auto& [begin, end] = list.rows[row];
        std::copy(list.ids.begin() + begin, list.ids.begin() + end, ids.begin() + static_cast<Index>(row) * width);
      }
      segments.push_back(
          {{.per_head = per_head_, .per_query = per_query_, .ids = backend.adopt(std::move(ids), rows_, width)},
           weights_[s + 1]});
    }
  }

 private:
  using Code = std::uint8_t;  ///< index of a combination of weights
  static constexpr Code unknown = 255;

  /// The transition of a combination when one more set adds this weight.
  struct Step {
    Code from;
    SetWeight weight;
    Code to;
  };
  /// The tokens of a segment, row by row.
  struct List {
    std::vector<std::int32_t> ids;
    std::vector<std::pair<Index, Index>> rows;  ///< [begin, end) of each
  };

  bool too_many() const { return weights_.size() > max_segments + 1; }
  bool in_scope(const ReadTable& table) const { return table.per_head == per_head_ && table.per_query == per_query_; }

  Code combination(std::vector<SetWeight> weights) {
    const auto found = std::ranges::find(weights_, weights);
    if (found != weights_.end()) return static_cast<Code>(found - weights_.begin());
    weights_.push_back(std::move(weights));
    return static_cast<Code>(weights_.size() - 1);
  }

  Code step(std::size_t set, Code from, SetWeight weight) {
    std::vector<Step>& known = steps_[set];
    for (const Step& s : known) {
      if (s.from == from && s.weight == weight) return s.to;
    }
    std::vector<SetWeight> weights = weights_[from];
    weights[set].num += weight.num;  // a token may be in two tables of a set, once in each sum
    weights[set].den += weight.den;
    known.push_back({from, weight, combination(std::move(weights))});
    return known.back().to;
  }

  /// Adds the set's weights to the combinations of the tokens in a row of its table.
  void mark(std::size_t set, const ReadTable& table, Index row) {
    const auto begin = static_cast<std::size_t>(row * table.width);
    const std::span<const std::int32_t> ids = table.row(row);
    Code* const codes = codes_.data();  // a local variable, because bytes may alias every member
    // Neighbouring slots mostly have the same weight: the transitions of that weight are stored until the weight
    // changes.
    std::array<Code, max_segments + 2> next;
    next.fill(unknown);
    SetWeight weight{1, 1};
    const bool weighted = table.weighted();
    for (std::size_t slot = 0; slot < ids.size(); ++slot) {
      if (ids[slot] < 0) continue;
      if (weighted) {
        const SetWeight own{table.num(begin + slot), table.den(begin + slot)};
        if (!(own == weight)) next.fill(unknown), weight = own;
      }
      const Code code = codes[ids[slot]];
      if (next[code] == unknown) {
        if (too_many()) return;
        next[code] = step(set, code, weight);
        if (too_many()) return;
      }
      codes[ids[slot]] = next[code];
    }
  }

  /// Moves the marked tokens of a row to their segments, in increasing order.
  void collect(Index row) {
    while (lists_.size() + 1 < weights_.size()) {
      lists_.emplace_back().rows.assign(static_cast<std::size_t>(row), {0, 0});
    }
    const Code* const codes = codes_.data();
    const std::size_t count = list_marked();
    std::array<std::size_t, max_segments + 1> counts{};
    for (std::size_t j = 0; j < count; ++j) ++counts[codes[marked_[j]]];
    std::array<std::int32_t*, max_segments + 1> to{};
    for (std::size_t s = 0; s < lists_.size(); ++s) {
      List& list = lists_[s];
      const std::size_t before = list.ids.size();
      list.ids.resize(before + counts[s + 1]);
      to[s + 1] = list.ids.data() + before;
      list.rows.emplace_back(before, list.ids.size());
    }
    for (std::size_t j = 0; j < count; ++j) *to[codes[marked_[j]]]++ = marked_[j];
    slots_ += static_cast<Index>(count);
    std::ranges::fill(codes_, Code{0});
  }

  /// Writes the tokens that have a code to marked_, in increasing order, and returns their number. Eight tokens are
  /// read at a time and without a branch per token, because branches on marks would be mispredicted.
  std::size_t list_marked() {
    static const std::array<MarkedOf8, 256> by_mask = marked_by_mask();
    const Code* const codes = codes_.data();
    std::int32_t* const marked = marked_.data();
    std::size_t count = 0;
    for (std::size_t i = 0; i < codes_.size(); i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, codes + i, sizeof eight);
      if (eight == 0) continue;
      // The top bit of each non-zero byte (codes are below 128); then these bits are packed into one byte.
      const std::uint64_t tops = (eight + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;
      const MarkedOf8& of = by_mask[tops * 0x0102040810204080 >> 56];
      for (std::size_t k = 0; k < 8; ++k) marked[count + k] = static_cast<std::int32_t>(i) + of.place[k];
      count += of.count;
    }
    return count;
  }

  std::span<const HostEntries* const> sets_;
  bool per_head_, per_query_;
  Index rows_ = 0, slots_ = 0;
  std::vector<std::vector<SetWeight>> weights_;  ///< by code, by set
  std::vector<std::vector<Step>> steps_;         ///< by set
  std::vector<Code> codes_;                      ///< by token: its combination over the sets so far
  std::vector<std::int32_t> marked_;
  std::vector<List> lists_;  ///< by code, without 0
};

float shrink(float max, float larger) { return max == larger ? 1 : std::exp(max - larger); }

/// state += weight * part.
void add(const HostState& part, SetWeight weight, HostState& state) {
  const std::size_t rows = state.max.size(), dv = state.num.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    if (part.max[r] == -std::numeric_limits<float>::infinity()) continue;
    const float max = std::max(state.max[r], part.max[r]);
    const float old = shrink(state.max[r], max), scale = shrink(part.max[r], max);
    const float factor_num = weight.num * scale, factor_den = weight.den * scale;
    state.max[r] = max;
    state.den[r] = state.den[r] * old + part.den[r] * factor_den;
    float* to = state.num.data() + r * dv;
    const float* from = part.num.data() + r * dv;
    for (std::size_t c = 0; c < dv; ++c) to[c] = to[c] * old + from[c] * factor_num;
  }
}

std::vector<Answer> answers_of(std::span<const HostEntries* const> sets, std::span<const Segment> segments,
                               const methods::QueryBlock& queries, const HostState& fixed,
                               const methods::HeadTokens& tokens, Backend& backend) {
  std::vector<Answer> answers(sets.size(), {fixed, fixed});
  for (const Segment& segment : segments) {
    methods::AttentionState state = methods::empty_state(backend, queries.queries.rows(), tokens.values.cols());
    attend(backend, tokens, queries, {&segment.table, 1}, state);
    const HostState part = methods::on_host(state, backend);
    for (std::size_t s = 0; s < sets.size(); ++s) {
      const SetWeight weight = segment.weights[s];
      if (weight == SetWeight{}) continue;
      add(part, weight, answers[s].all);
      if (!sets[s]->all_plain() && weight == SetWeight{1, 1}) add(part, {1, 1}, answers[s].plain);
    }
  }
  for (std::size_t s = 0; s < sets.size(); ++s) {
    if (sets[s]->all_plain()) answers[s].plain = answers[s].all;
  }
  return answers;
}

double slots_of(const HostEntries& set) {
  double slots = 0;
  for (const ReadTable& table : set.tables()) slots += static_cast<double>(table.used);
  return slots;
}

}  // namespace

std::optional<std::vector<Segment>> find_segments(std::span<const HostEntries* const> sets, Index tokens,
                                                  Backend& backend) {
  double in_sets = 0, in_segments = 0;
  for (const HostEntries* set : sets) {
    for (const ReadTable& table : set->tables()) {
      if (table.own()) return std::nullopt;
      in_sets += static_cast<double>(table.used);
    }
  }
  std::vector<Segment> segments;
  for (const auto& [per_head, per_query] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    ScopeSplitter scope(sets, tokens, per_head, per_query);
    if (!scope.split()) return std::nullopt;
    in_segments += static_cast<double>(scope.slots());
    scope.append_to(segments, backend);
  }
  if (in_segments > worthwhile * in_sets) return std::nullopt;
  return segments;
}

std::vector<ConfigurationRun::Shared> attend_together(std::span<const HostEntries* const> sets, const BlockPart& part,
                                                      const HostState& fixed, const methods::HeadTokens& tokens,
                                                      Backend& backend) {
  const Stopwatch watch(backend);
  const auto segments = find_segments(sets, tokens.keys.rows(), backend);
  if (!segments) return {};
  std::vector<ConfigurationRun::Shared> shared;
  for (Answer& answer : answers_of(sets, *segments, part.global, fixed, tokens, backend))
    shared.push_back({std::move(answer)});
  double slots = 0;
  for (const HostEntries* set : sets) slots += slots_of(*set);
  const double seconds = watch.seconds();
  for (std::size_t s = 0; s < sets.size(); ++s) shared[s].seconds = seconds * slots_of(*sets[s]) / slots;
  return shared;
}

}  // namespace kvbench::replay
