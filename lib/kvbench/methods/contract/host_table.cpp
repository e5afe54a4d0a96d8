// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/host_table.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {
namespace {

[[noreturn]] void refuse(const std::string& fault) { throw std::logic_error("entries break the contract: " + fault); }

void require(bool holds, const char* fault) {
  if (!holds) refuse(fault);
}

void check_range_rows(const EntryTable& t, const HeadTokens& tokens) {
  require(!t.range.present() || (t.range.rows() == 2 && t.range.cols() == tokens.values.cols()),
          "a range that is not [2, dv]");
}

void check_token_rows(const EntryTable& t, const HeadTokens& tokens, Index limit) {
  require(!t.token_keys.present() || (t.token_keys.rows() == limit && t.token_keys.cols() == tokens.keys.cols()),
          "token keys that are not [tokens so far, d]");
  require(
      !t.token_values.present() || (t.token_values.rows() == limit && t.token_values.cols() == tokens.values.cols()),
      "token values that are not [tokens so far, dv]");
}

void check_shape(const EntryTable& t, const HeadTokens& tokens, Index num_queries) {
  require(t.ids.present(), "a table without ids");
  require(t.ids.rows() == table_rows(t, tokens.group, num_queries),
          "a table with the wrong number of rows for its scope");
  for (const auto* weights : {&t.weight_num, &t.weight_den}) {
    require(!weights->present() || (weights->rows() == t.ids.rows() && weights->cols() == t.ids.cols()),
            "weights of another shape than the ids");
  }
  require(!t.own_keys.present() || (t.own_keys.rows() == t.ids.size() && t.own_keys.cols() == tokens.keys.cols()),
          "own keys that are not [slots, d]");
  require(
      !t.own_values.present() || (t.own_values.rows() == t.ids.size() && t.own_values.cols() == tokens.values.cols()),
      "own values that are not [slots, dv]");
  require(!t.queries.present() ||
              (t.queries.rows() == tokens.group * num_queries && t.queries.cols() == tokens.keys.cols()),
          "queries that are not [G*m, d]");
}

// These loops have no early exit, so that compilers vectorise them: all keys and values of merged entries are checked
// in every block.
bool all_finite(const HostView<float>& values) {
  constexpr std::uint32_t exponent = 0x7f800000;
  std::uint32_t bad = 0;
  for (const float x : values) bad |= (std::bit_cast<std::uint32_t>(x) & exponent) == exponent ? 1u : 0u;
  return bad == 0;
}

/// Why a method holds rows that are not finite where those of its tokens are: a format whose scales have 16 bits.
/// Throws Infeasible where a row of the tokens exceeds them.
void check_range(const HeadTokens& tokens, Backend& backend) {
  constexpr double most = 65504;
  double largest = 0;
  for (const auto* rows : {&tokens.keys, &tokens.values}) {
    const HostView<float> numbers = backend.on_host(*rows);
    double squares = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (static_cast<Index>(i) % rows->cols() == 0) squares = 0;
      squares += static_cast<double>(numbers[i]) * numbers[i];
      largest = std::max(largest, squares);
    }
  }
  if (std::sqrt(largest) <= most) return;
  throw Infeasible(
      fmt::format("numbers overflow: keys or values of the trace have norms up to {:.3g}, and a scale of 16 "
                  "bits is at most {:.0f}",
                  std::sqrt(largest), most));
}

bool all_within(const HostView<std::int32_t>& ids, std::int32_t limit) {
  std::uint32_t bad = 0;
  for (const std::int32_t id : ids) bad |= (id < -1 ? 1u : 0u) | (id >= limit ? 1u : 0u);
  return bad == 0;
}

void check_numbers(const HostTable& t, Index limit) {
  if (!all_within(t.ids, static_cast<std::int32_t>(limit))) {
    const std::int32_t id = *std::ranges::find_if(t.ids, [&](std::int32_t one) { return one < -1 || one >= limit; });
    refuse(fmt::format("an id out of range: {}, where there are {} tokens", id, limit));
  }
  require(all_finite(t.weight_num) && all_finite(t.weight_den), "a weight that is not finite");
  require(all_finite(t.range), "a range that is not finite");
  for (std::size_t c = 0; c < t.range.size() / 2; ++c)
    require(t.range[c] <= t.range[c + t.range.size() / 2], "a range whose least number exceeds its largest");
  const auto negative = [](float w) { return w < 0; };
  require(!t.range.empty() || std::ranges::none_of(t.weight_den, negative), "a negative weight without a range");
}

/// Throws Unavailable where values of entries are not the first channels of their keys, although those of tokens are.
void check_shared(const HostTable& t, const HeadTokens& tokens) {
  if (!tokens.values_in_keys) return;
  if (t.own_keys.empty() != t.own_values.empty()) throw Unavailable(values_apart);
  if (t.own_keys.empty()) return;
  const auto d = static_cast<std::size_t>(tokens.keys.cols()), dv = static_cast<std::size_t>(tokens.values.cols());
  for (std::size_t slot = 0; slot < t.ids.size(); ++slot) {
    if (t.ids[slot] < 0) continue;
    double difference = 0, square = 0;
    for (std::size_t c = 0; c < dv; ++c) {
      const double key = t.own_keys[slot * d + c], apart = t.own_values[slot * dv + c] - key;
      difference += apart * apart, square += key * key;
    }
    if (difference > 1e-8 * square) throw Unavailable(values_apart);
  }
}

/// A sufficient condition for distinct ids that is fast to check: rows increase, and none begins before another ends.
bool clearly_distinct(std::span<const std::span<const std::int32_t>> rows) {
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
  for (const auto& row : rows) {
    const auto ids = increasing_ids(row);
    if (!ids) return false;
    if (!ids->empty()) ranges.emplace_back(ids->front(), ids->back());
  }
  std::ranges::sort(ranges);
  return std::ranges::adjacent_find(ranges, [](const auto& a, const auto& b) { return a.second >= b.first; }) ==
         ranges.end();
}

/// Records which (query head, query) last used each token in each sum.
class Uses {
 public:
  Uses(std::span<const HostTable> tables, Index limit)
      : tables_(tables),
        weighted_(std::ranges::any_of(tables, &HostTable::weighted)),
        num_(static_cast<std::size_t>(limit), -1) {
    if (weighted_) den_ = num_;
  }

  void check(std::span<const std::span<const std::int32_t>> rows, std::int32_t stamp) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      for (const std::int32_t& used : rows[k]) {
        if (used < 0) continue;
        const auto slot = static_cast<std::size_t>(&used - tables_[k].ids.data()), id = static_cast<std::size_t>(used);
        if (tables_[k].num(slot) != 0 && std::exchange(num_[id], stamp) == stamp)
          refuse(fmt::format("an id twice in N: {}", id));
        if (weighted_ && tables_[k].den(slot) != 0 && std::exchange(den_[id], stamp) == stamp)
          refuse(fmt::format("an id twice in D: {}", id));
      }
    }
  }

 private:
  std::span<const HostTable> tables_;
  bool weighted_;  ///< without weights both sums are over the same tokens
  std::vector<std::int32_t> num_, den_;
};

void check_distinct(std::span<const HostTable> tables, Index group, Index num_queries, Index limit) {
  const bool per_head = std::ranges::any_of(tables, &HostTable::per_head),
             per_query = std::ranges::any_of(tables, &HostTable::per_query);
  std::optional<Uses> uses;
  std::vector<std::span<const std::int32_t>> rows(tables.size());
  for (Index g = 0; g < (per_head ? group : 1); ++g) {
    for (Index i = 0; i < (per_query ? num_queries : 1); ++i) {
      for (std::size_t k = 0; k < tables.size(); ++k) rows[k] = tables[k].row(table_row(tables[k], g, i, num_queries));
      if (clearly_distinct(rows)) continue;
      if (!uses) uses.emplace(tables, limit);
      uses->check(rows, static_cast<std::int32_t>(g * num_queries + i));
    }
  }
}

}  // namespace

HostTable on_host(const EntryTable& table, Backend& backend) {
  return {.per_head = table.per_head,
          .per_query = table.per_query,
          .place = table.place,
          .rows = table.ids.rows(),
          .width = table.ids.cols(),
          .ids = backend.on_host(table.ids),
          .weight_num = backend.on_host(table.weight_num),
          .weight_den = backend.on_host(table.weight_den),
          .own_keys = backend.on_host(table.own_keys),
          .own_values = backend.on_host(table.own_values),
          .range = backend.on_host(table.range),
          .rows_by_token = table.token_keys.present() || table.token_values.present(),
          .rounded = table.rounded,
          .cluster_ids = backend.on_host(table.cluster_ids)};
}

HostView<float> EntryChecker::read(const Buffer<const float>& rows, OwnRows& known, const char* fault,
                                   Backend& backend) const {
  if (known.rows.present() && known.rows.same_as(rows)) return known.host;
  known = {rows, backend.on_host(rows)};
  require(all_finite(known.host), fault);
  return known.host;
}

std::vector<HostTable> EntryChecker::check(Backend& backend, const HeadTokens& tokens, Index num_queries, Index limit,
                                           std::span<const EntryTable> tables) {
  known_.resize(tables.size());
  std::vector<HostTable> host;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    check_shape(tables[t], tokens, num_queries);
    check_range_rows(tables[t], tokens);
    check_token_rows(tables[t], tokens, limit);
    EntryTable shared = tables[t];
    shared.own_keys = shared.own_values = {};
    HostTable& table = host.emplace_back(on_host(shared, backend));
    try {
      table.own_keys = read(tables[t].own_keys, known_[t][0], "an own key that is not finite", backend);
      table.own_values = read(tables[t].own_values, known_[t][1], "an own value that is not finite", backend);
      read(tables[t].token_keys, known_by_token_[0], "a token key that is not finite", backend);
      read(tables[t].token_values, known_by_token_[1], "a token value that is not finite", backend);
    } catch (const std::logic_error&) {
      check_range(tokens, backend);
      throw;
    }
    check_numbers(table, limit);
    check_shared(table, tokens);
  }
  check_distinct(host, tokens.group, num_queries, limit);
  return host;
}

std::optional<std::span<const std::int32_t>> increasing_ids(std::span<const std::int32_t> row) {
  bool holds = true;
  for (std::size_t s = 1; s < row.size(); ++s) holds &= row[s] < 0 || (row[s - 1] >= 0 && row[s - 1] < row[s]);
  if (!holds) return std::nullopt;
  return row.first(static_cast<std::size_t>(std::ranges::find(row, -1) - row.begin()));
}

std::vector<HostTable> check_entries(Backend& backend, const HeadTokens& tokens, Index num_queries, Index limit,
                                     std::span<const EntryTable> tables) {
  return EntryChecker().check(backend, tokens, num_queries, limit, tables);
}

}  // namespace kvbench::methods
