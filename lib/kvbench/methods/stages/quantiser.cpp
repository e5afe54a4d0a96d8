// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/quantiser.hpp>

#include <algorithm>

#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rounded_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/methods/stages/wrapped_cache.hpp>

namespace kvbench::methods {
namespace {

Caches all_tokens(std::span<const HeadPrompt> heads, Backend& backend) {
  Caches caches;
  for (const HeadPrompt& head : heads)
    caches.push_back(std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, head.tokens())}));
  return caches;
}

void check_block(std::span<const HeadPrompt> heads, const ChannelBlock& block) {
  const auto check = [&](const char* rows, Index channels) {
    if (channels % block.channels == 0) return;
    throw Unavailable(fmt::format("{} have {} channels per head, which is no multiple of the {} of {}", rows, channels,
                                  block.channels, block.what));
  };
  for (const HeadPrompt& head : heads) {
    check("keys", head.keys.cols());
    check("values", head.values.cols());
  }
}

/// Of heads whose values are a part of their keys: one codec stores both, in blocks that hold channels of one part.
void share_codec(const MethodInfo& quantiser, const Params& params, const HeadPrompt& head, Codecs& codecs) {
  if (!head.values_in_keys) return;
  if (const std::string reason = against_values_in_keys(quantiser, params); !reason.empty()) throw Unavailable(reason);
  const Index block = quantiser.one_rule(params), dv = head.values.cols();
  if (dv % block != 0) {
    throw Unavailable(fmt::format(
        "the values are the first {} channels of the keys (MLA), and a group of {} channels of {} would hold "
        "channels behind them, too",
        dv, block, quantiser.name));
  }
  codecs.values = nullptr;
}

/// A cache whose keys meet queries in fewer bits.
class RoundedQueries : public WrappedCache {
 public:
  RoundedQueries(std::unique_ptr<CompressedCache> cache, std::shared_ptr<const Codec> codec, Backend& backend)
      : WrappedCache(std::move(cache), {}), codec_(std::move(codec)), backend_(backend) {}

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables = cache().entries(queries);
    if (!queries.queries.present()) return tables;
    const Buffer<const float> rounded = codec_->decoded(queries.queries, backend_);
    for (EntryTable& table : tables) table.queries = rounded;
    return tables;
  }

 private:
  std::shared_ptr<const Codec> codec_;
  Backend& backend_;
};

Caches with_queries_of(std::span<const Codecs> codecs, Caches caches, Backend& backend) {
  for (std::size_t h = 0; h < caches.size(); ++h) {
    if (codecs[h].queries)
      caches[h] = std::make_unique<RoundedQueries>(std::move(caches[h]), codecs[h].queries, backend);
  }
  return caches;
}

std::string name_of_level(const MethodInfo& quantiser, const Params& params, std::size_t level) {
  return quantiser.name + ": " + quantiser.quantiser.levels(params)[level];
}

}  // namespace

MethodInfo quantiser_row(MethodInfo info) {
  info.kind = Kind::quantisation;
  info.rounds = true;
  info.streaming = true;
  info.windowed = true;
  const std::string& compress = info.complexity.compress.text;
  info.complexity = {
      {compress.empty() ? "O(n (d + dv))" : compress, 1}, {"O(n (d + dv))", 1}, {"n (d + dv) bits / 16", 1}};
  info.properties.full_budget_exact = Property::no("tokens are rounded at every budget");
  info.properties.value_scaling = Property::no("scales are rounded, which does not commute with other factors");
  info.properties.key_shift = Property::no("a shift of the keys changes how they are rounded");
  info.quantiser.layer_codecs = [row = info](std::span<const HeadPrompt> heads, const Params& params, std::size_t level,
                                             std::uint32_t seed, Backend& backend) {
    if (row.block) check_block(heads, row.block(params));
    std::vector<Codecs> codecs = row.quantiser.layer_codecs(heads, params, level, seed, backend);
    for (std::size_t h = 0; h < heads.size(); ++h) share_codec(row, params, heads[h], codecs[h]);
    return codecs;
  };
  info.prepare = [quantiser = info](std::span<const HeadPrompt> given, const Params& params,
                                    Backend& backend) -> MakeCaches {
    const std::vector<HeadPrompt> heads(given.begin(), given.end());
    const std::size_t levels = quantiser.quantiser.levels(params).size();
    return [=, &backend](Index budget, std::uint32_t seed) {
      const std::size_t level = std::min(static_cast<std::size_t>(budget), levels) - 1;
      return stored_by(quantiser, params, level, seed, all_tokens(heads, backend), heads, backend);
    };
  };
  return info;
}

std::size_t only_level(const MethodInfo& quantiser, const Params& params) {
  const std::vector<std::string> levels = quantiser.quantiser.levels(params);
  if (levels.size() == 1) return 0;
  throw Error(
      "'{}' has {} levels ({}); set the one that stores the tokens of another method; `kvbench methods {}` "
      "lists its parameters",
      quantiser.name, levels.size(), fmt::join(levels, ", "), quantiser.name);
}

Caches stored_by(const MethodInfo& quantiser, const Params& params, std::size_t level, std::uint32_t seed,
                 Caches caches, std::span<const HeadPrompt> heads, Backend& backend) {
  const std::vector<Codecs> codecs = quantiser.quantiser.layer_codecs(heads, params, level, seed, backend);
  const Note note{.text = name_of_level(quantiser, params, level)};
  for (std::size_t h = 0; h < caches.size(); ++h)
    caches[h] = rounded_cache(std::move(caches[h]), heads[h], codecs[h], {note}, backend);
  return with_queries_of(codecs, std::move(caches), backend);
}

MakeCaches tier_stored_by(const MethodInfo& quantiser, const Params& params, std::size_t level, MakeCaches make,
                          const std::vector<HeadPrompt>& heads, Backend& backend) {
  const auto codecs = [=, codecs_of = quantiser.quantiser.layer_codecs, &backend](std::uint32_t seed) {
    return codecs_of(heads, params, level, seed, backend);
  };
  MakeCaches rounded = rounded_tier(std::move(make), heads, codecs, name_of_level(quantiser, params, level), backend);
  return [=, &backend](Index budget, std::uint32_t seed) {
    return with_queries_of(codecs(seed), rounded(budget, seed), backend);
  };
}

}  // namespace kvbench::methods
