// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/hash_tables.hpp>

#include <algorithm>

namespace kvbench::methods {

std::vector<std::uint16_t> codes_of(std::span<const float> projections, std::span<const float> thresholds, int bits) {
  std::vector<std::uint16_t> codes;
  codes.reserve(projections.size() / static_cast<std::size_t>(bits));
  for (const float* row = projections.data(); row != projections.data() + projections.size();
       row += thresholds.size()) {
    for (std::size_t j = 0; j < thresholds.size(); j += static_cast<std::size_t>(bits)) {
      unsigned code = 0;
      for (int b = 0; b < bits; ++b) code |= static_cast<unsigned>(row[j + b] > thresholds[j + b]) << b;
      codes.push_back(static_cast<std::uint16_t>(code));
    }
  }
  return codes;
}

HashTables::HashTables(std::span<const std::uint16_t> codes, Index tables, int bits)
    : tokens_(std::ssize(codes) / tables),
      tables_(tables),
      codes_(Index{1} << bits),
      starts_(static_cast<std::size_t>(tables * (codes_ + 1)), 0),
      content_(codes.size()) {
  for (Index t = 0; t < tables; ++t) {
    std::int32_t* const starts = starts_.data() + t * (codes_ + 1);
    const auto code = [&](Index j) { return codes[static_cast<std::size_t>(j * tables + t)]; };
    for (Index j = 0; j < tokens_; ++j) ++starts[code(j) + 1];
    for (Index c = 0; c < codes_; ++c) starts[c + 1] += starts[c];
    std::vector<std::int32_t> next(starts, starts + codes_);
    for (Index j = 0; j < tokens_; ++j)
      content_[static_cast<std::size_t>(t * tokens_ + next[code(j)]++)] = static_cast<TokenId>(j);
  }
}

std::span<const TokenId> HashTables::bucket(Index table, std::uint16_t code) const {
  const std::int32_t* const starts = starts_.data() + table * (codes_ + 1);
  return {content_.data() + table * tokens_ + starts[code], content_.data() + table * tokens_ + starts[code + 1]};
}

HashTables::Found HashTables::find(std::span<const std::uint16_t> query, Index first, Index last, Index most) const {
  std::vector<std::uint16_t> count(static_cast<std::size_t>(tokens_), 0);
  Found found;
  for (; found.tables < tables_; ++found.tables) {
    const std::size_t before = found.tokens.size();
    ++found.asked;
    for (const TokenId id : bucket(found.tables, query[static_cast<std::size_t>(found.tables)])) {
      if (id < first || id >= last) continue;
      ++found.read;
      if (++count[static_cast<std::size_t>(id)] == 2) found.tokens.push_back(id);
    }
    if (std::ssize(found.tokens) > most) {
      found.tokens.resize(before);
      break;
    }
  }
  std::ranges::sort(found.tokens);
  return found;
}

}  // namespace kvbench::methods
