// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/segments.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>

namespace kvbench {
namespace {

/// The places of the bits that are set in a mask of 8, and how many there are.
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

class SegmentFinder {
 public:
  SegmentFinder(std::span<const HostEntries* const> sets, Index tokens, bool per_head, bool per_query)
      : sets_(sets), found_{.per_head = per_head, .per_query = per_query}, steps_(sets.size()) {
    combination(std::vector<SetWeight>(sets.size()));  // number 0: in no set
    for (const HostEntries* set : sets) {
      Index slots = 0;
      for (const auto& table : set->tables()) {
        if (!in_scope(*table)) continue;
        found_.rows = table->rows;
        slots += table->width;
      }
      found_.width = std::max(found_.width, slots);
    }
    if (found_.width == 0) return;
    codes_.resize(static_cast<std::size_t>(tokens + 7) / 8 * 8);
    marked_.resize(codes_.size() + 8);
    found_.ids.assign(static_cast<std::size_t>(found_.rows * found_.width), -1);
    ends_.reserve(static_cast<std::size_t>(found_.rows));
  }

  /// Empty where there are too many combinations of weights.
  std::optional<Segments> find() {
    const std::vector<Layer> layers = in_layers();
    if (too_many()) return std::nullopt;
    const bool in_order = are_segments(layers);
    for (Index row = 0; row < found_.rows && found_.width > 0; ++row) {
      if (in_order) {
        join(layers, row);
        continue;
      }
      for (const Layer& layer : layers) mark(layer, row);
      for (std::size_t s = 0; s < sets_.size() && layers.empty(); ++s) {
        for (const auto& table : sets_[s]->tables()) {
          if (in_scope(*table)) mark(s, *table, row);
        }
      }
      if (too_many()) return std::nullopt;
      collect(row);
    }
    found_.weights.erase(found_.weights.begin());
    for (const Ends& row : ends_) {
      found_.segment_end.insert(found_.segment_end.end(), row.begin(), row.begin() + std::ssize(found_.weights));
    }
    return std::move(found_);
  }

 private:
  using Code = std::uint8_t;  ///< number of a combination of weights

  /// What one more set with this weight makes of a combination.
  struct Step {
    Code from;
    SetWeight weight;
    Code to;
  };

  bool too_many() const { return found_.weights.size() > kernels::max_attention_segments + 1; }
  bool in_scope(const HostTable& table) const {
    return table.per_head == found_.per_head && table.per_query == found_.per_query;
  }

  /// A table and the combination of the sets that hold it.
  struct Layer {
    const HostTable* table;
    Code code;
  };

  /// The tables of the scope where one set holds all of them, so that no token is in two, and none has weights; else empty.
  std::vector<Layer> in_layers() {
    std::vector<const HostTable*> all;
    std::size_t most = 0;
    for (const HostEntries* set : sets_) {
      std::size_t held = 0;
      for (const auto& table : set->tables()) {
        if (!in_scope(*table)) continue;
        if (table->weighted()) return {};
        if (std::ranges::find(all, table.get()) == all.end()) all.push_back(table.get());
        ++held;
      }
      most = std::max(most, held);
    }
    std::vector<Layer> layers;
    for (const HostTable* table : all) {
      if (most < all.size() || too_many()) return {};
      std::vector<SetWeight> weights;
      for (const HostEntries* set : sets_) {
        const bool held =
            std::ranges::find(set->tables(), table, &std::shared_ptr<const HostTable>::get) != set->tables().end();
        weights.push_back(held ? SetWeight{1, 1} : SetWeight{});
      }
      layers.push_back({table, combination(std::move(weights))});
    }
    return layers;
  }

  /// Whether each layer is a segment as it stands.
  static bool are_segments(const std::vector<Layer>& layers) {
    for (std::size_t k = 0; k < layers.size(); ++k) {
      if (layers[k].code != k + 1 || !layers[k].table->increases()) return false;
    }
    return !layers.empty();
  }

  /// A row of the layers, one after the other.
  void join(const std::vector<Layer>& layers, Index row) {
    const auto begin = found_.ids.begin() + row * found_.width;
    auto to = begin;
    Ends& ends = ends_.emplace_back();
    for (const Layer& layer : layers) {
      const auto ids = layer.table->ids.begin() + row * layer.table->width;
      to = std::copy(ids, std::find(ids, ids + layer.table->width, -1), to);
      ends[layer.code - std::size_t{1}] = static_cast<std::int32_t>(to - begin);
    }
    found_.tokens += to - begin;
  }

  /// Gives the tokens of a row of a layer its combination.
  void mark(const Layer& layer, Index row) {
    Code* const codes = codes_.data();
    const std::int32_t* const ids = layer.table->ids.data() + row * layer.table->width;
    for (Index slot = 0; slot < layer.table->width; ++slot) {
      if (ids[slot] >= 0) codes[ids[slot]] = layer.code;
    }
  }

  Code combination(std::vector<SetWeight> weights) {
    const auto found = std::ranges::find(found_.weights, weights);
    if (found != found_.weights.end()) return static_cast<Code>(found - found_.weights.begin());
    found_.weights.push_back(std::move(weights));
    return static_cast<Code>(found_.weights.size() - 1);
  }

  Code step(std::size_t set, Code from, SetWeight weight) {
    std::vector<Step>& known = steps_[set];
    for (const Step& s : known) {
      if (s.from == from && s.weight == weight) return s.to;
    }
    std::vector<SetWeight> weights = found_.weights[from];
    weights[set].num += weight.num;  // a token may be in two tables of a set, once in each sum
    weights[set].den += weight.den;
    known.push_back({from, weight, combination(std::move(weights))});
    return known.back().to;
  }

  void mark(std::size_t set, const HostTable& table, Index row) {
    const auto begin = static_cast<std::size_t>(row * table.width), width = static_cast<std::size_t>(table.width);
    const std::int32_t* const ids = table.ids.data() + begin;
    Code* const codes = codes_.data();  // a local: bytes may alias every member
    // Neighbouring slots mostly have the same weight: what it makes of each combination is kept until the weight changes.
    std::array<Code, max_segments + 2> next;
    next.fill(unknown);
    SetWeight weight{1, 1};
    const bool weighted = table.weighted();
    for (std::size_t slot = 0; slot < width; ++slot) {
      if (ids[slot] < 0) continue;
      if (weighted) {
        const SetWeight own{table.num.empty() ? 1 : table.num[begin + slot], table.den.empty() ? 1 : table.den[begin + slot]};
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

  /// Moves the marked tokens of a row to the scope, each segment in increasing order.
  void collect(Index row) {
    while (row_ids_.size() + 1 < found_.weights.size()) row_ids_.emplace_back(codes_.size());
    std::array<std::size_t, max_segments> counts{};
    std::array<std::int32_t*, max_segments> to_segment{};
    std::ranges::transform(row_ids_, to_segment.begin(), [](auto& ids) { return ids.data(); });
    const std::int32_t* const marked = marked_.data();
    const Code* const codes = codes_.data();
    const std::size_t count = list_marked();
    for (std::size_t j = 0; j < count; ++j) {
      const std::size_t segment = codes[marked[j]] - std::size_t{1};
      to_segment[segment][counts[segment]++] = marked[j];
    }
    std::ranges::fill(codes_, Code{0});
    const auto total = std::accumulate(counts.begin(), counts.end(), Index{0});
    if (total > found_.width) widen(row, total);
    found_.tokens += total;
    Ends& ends = ends_.emplace_back();
    auto to = found_.ids.begin() + row * found_.width;
    for (std::size_t s = 0; s < max_segments; ++s) {
      if (counts[s] > 0) to = std::copy_n(row_ids_[s].begin(), counts[s], to);
      ends[s] = static_cast<std::int32_t>(to - (found_.ids.begin() + row * found_.width));
    }
  }

  /// Writes the tokens that have a code to marked_, in increasing order, and returns how many. Eight tokens at a time and
  /// without a branch for each: which of them are marked is hard to foresee.
  std::size_t list_marked() {
    static const std::array<MarkedOf8, 256> by_mask = marked_by_mask();
    const Code* const codes = codes_.data();
    std::int32_t* const marked = marked_.data();
    std::size_t count = 0;
    for (std::size_t i = 0; i < codes_.size(); i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, codes + i, sizeof eight);
      if (eight == 0) continue;
      // The top bit of each byte that is not 0 (codes lie below 128), then these bits side by side.
      const std::uint64_t tops = (eight + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;
      const MarkedOf8& of = by_mask[tops * 0x0102040810204080 >> 56];
      for (std::size_t k = 0; k < 8; ++k) marked[count + k] = static_cast<std::int32_t>(i) + of.place[k];
      count += of.count;
    }
    return count;
  }

  /// Makes room for rows that hold more than any set does; those before `rows` are filled.
  void widen(Index rows, Index width) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(found_.rows * width), -1);
    for (Index r = 0; r < rows; ++r) {
      std::copy_n(found_.ids.begin() + r * found_.width, found_.width, ids.begin() + r * width);
    }
    found_.ids = std::move(ids);
    found_.width = width;
  }

  static constexpr std::size_t max_segments = kernels::max_attention_segments;
  static constexpr Code unknown = std::numeric_limits<Code>::max();
  using Ends = std::array<std::int32_t, max_segments>;

  std::span<const HostEntries* const> sets_;
  Segments found_;
  std::vector<Code> codes_;  ///< by token: its combination so far
  std::vector<std::int32_t> marked_;
  std::vector<std::vector<std::int32_t>> row_ids_;  ///< by segment, of the row at hand
  std::vector<Ends> ends_;                          ///< by row: segment_end, of segments that may yet come too
  std::vector<std::vector<Step>> steps_;
};

}  // namespace

std::optional<Segments> find_segments(std::span<const HostEntries* const> sets, Index tokens, bool per_head, bool per_query) {
  return SegmentFinder(sets, tokens, per_head, per_query).find();
}

}  // namespace kvbench
