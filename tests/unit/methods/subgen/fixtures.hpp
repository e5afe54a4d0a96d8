// SPDX-License-Identifier: Apache-2.0
// One head with its tokens on the host, and the entries of a cache as lists.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <support/backends.hpp>

#include <kvbench/methods/contract/host_table.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::test {

using testing::ref;

struct Tokens {
  Index d = 1, dv = 1;
  std::vector<float> keys, values;  ///< [n, d], [n, dv]

  Index size() const { return static_cast<Index>(keys.size()) / d; }
  const float* key(Index i) const { return keys.data() + i * d; }
  const float* value(Index i) const { return values.data() + i * dv; }
  double norm2(Index i) const {
    double sum = 0;
    for (Index c = 0; c < dv; ++c) sum += static_cast<double>(value(i)[c]) * value(i)[c];
    return sum;
  }
};

/// Keys around `clusters` random centres with deviation `spread`, values of very different norms.
inline Tokens random_tokens_of(Index n, Index d, Index dv, unsigned seed, Index clusters = 4, float spread = 0.5f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> centres(static_cast<std::size_t>(clusters * d));
  for (float& x : centres) x = 2 * normal(engine);
  Tokens tokens{.d = d, .dv = dv};
  for (Index i = 0; i < n; ++i) {
    const Index cluster = static_cast<Index>(engine() % static_cast<unsigned>(clusters));
    for (Index c = 0; c < d; ++c)
      tokens.keys.push_back(centres[static_cast<std::size_t>(cluster * d + c)] + spread * normal(engine));
    const float size = std::exp(0.5f * normal(engine));
    for (Index c = 0; c < dv; ++c) tokens.values.push_back(size * normal(engine));
  }
  return tokens;
}

/// A stream of tokens of which the first `context` are the prompt.
class Stream {
 public:
  Stream(Tokens host_tokens, Index context, std::vector<float> observed = {}) : host(std::move(host_tokens)) {
    keys = ref().adopt(host.keys, host.size(), host.d);
    values = ref().adopt(host.values, host.size(), host.dv);
    head.keys = keys.slice(0, context);
    head.values = values.slice(0, context);
    if (!observed.empty()) {
      const Index rows = static_cast<Index>(observed.size()) / host.d;
      head.observed = ref().adopt(std::move(observed), rows, host.d);
    }
  }

  methods::MakeCache prepare(const std::string& method, const std::vector<methods::Assignment>& settings = {}) const {
    const methods::MethodInfo& info = methods::find_method(method);
    return info.prepare_head(head, info.bind(settings), ref());
  }

  /// Appends tokens [first, first + count) in the blocks that the cache takes.
  void append(methods::CompressedCache& cache, Index first, Index count) const {
    while (count > 0) {
      const methods::TokenBlock block{first, keys.slice(first, count), values.slice(first, count)};
      const Index taken = cache.takes(block);
      cache.append(block.front(taken));
      first += taken;
      count -= taken;
    }
  }

  /// A block of one zero query at each position.
  methods::QueryBlock queries(std::vector<std::int32_t> positions) const {
    const Index m = static_cast<Index>(positions.size());
    std::vector<std::int32_t> last;
    for (const std::int32_t position : positions) last.push_back(position + 1);
    return {.queries = ref().adopt(std::vector<float>(static_cast<std::size_t>(m * host.d)), m, host.d),
            .positions = std::move(positions),
            .first = ref().adopt(std::vector<std::int32_t>(static_cast<std::size_t>(m)), m),
            .last = ref().adopt(std::move(last), m)};
  }

  Tokens host;
  Buffer<const float> keys, values;
  methods::HeadPrompt head;
};

struct Weights {
  double num = 0, den = 0;
  friend bool operator==(const Weights&, const Weights&) = default;
};
/// The entries, by token, of a cache whose tables have one row. Also checks them against the contract.
inline std::map<TokenId, Weights> entries_of(const Stream& stream, const methods::CompressedCache& cache,
                                             Index tokens) {
  const methods::QueryBlock block = stream.queries({static_cast<std::int32_t>(tokens - 1)});
  const methods::EntryTables tables = cache.entries(block);
  check_entries(ref(), {.keys = stream.keys, .values = stream.values}, 1, tokens, tables);
  std::map<TokenId, Weights> entries;
  for (const methods::EntryTable& table : tables) {
    const auto ids = ref().read(table.ids);
    const auto num = ref().read(table.weight_num), den = ref().read(table.weight_den);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      Weights& entry = entries[ids[i]];
      entry.num += num.empty() ? 1 : num[i];
      entry.den += den.empty() ? 1 : den[i];
    }
  }
  return entries;
}

/// Rows and columns of the array of this name.
inline methods::FootprintArray array_of(const methods::CompressedCache& cache, const std::string& name) {
  for (const methods::FootprintArray& array : cache.footprint()) {
    if (array.name == name) return array;
  }
  return {};
}

}  // namespace kvbench::test
