// SPDX-License-Identifier: Apache-2.0
// Methods that keep all tokens in fewer bits. Such a method states its codecs; its cache follows from them.
#pragma once

#include <utility>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/exact_ends.hpp>

namespace kvbench::methods {

/// Fills in the fields of a row that all quantisers have in common, but for its parameters and its Quantiser.
MethodInfo quantiser_row(MethodInfo info);

/// How a format encodes tokens: several together, or each for itself, so that some may stay in 16 bits.
enum class Encodes { together, each };

/// The row of a quantiser with parameters P. levels(parameters) and codecs(heads, parameters, level, seed, backend) are
/// those of Quantiser. A format that encodes each token for itself also has the parameters of ExactEnds.
template <class P>
MethodInfo quantiser(MethodInfo info, std::vector<std::string> (*levels)(const P&),
                     std::vector<Codecs> (*codecs)(std::span<const HeadPrompt>, const P&, std::size_t, std::uint32_t,
                                                   Backend&),
                     Encodes encodes = Encodes::together) {
  info.quantiser = {
      .levels = [levels](const Params& params) { return levels(params.as<P>()); },
      .layer_codecs = [codecs](std::span<const HeadPrompt> heads, const Params& params, std::size_t level,
                               std::uint32_t seed,
                               Backend& backend) { return codecs(heads, params.as<P>(), level, seed, backend); }};
  return quantiser_row(encodes == Encodes::each ? with_exact_ends<P>(std::move(info))
                                                : with_schema<P>(std::move(info)));
}
/// The same with codecs of single heads.
template <class P>
MethodInfo quantiser(MethodInfo info, std::vector<std::string> (*levels)(const P&),
                     Codecs (*codecs)(const HeadPrompt&, const P&, std::size_t, std::uint32_t, Backend&),
                     Encodes encodes = Encodes::together) {
  info.quantiser = {.levels = [levels](const Params& params) { return levels(params.as<P>()); },
                    .layer_codecs =
                        [codecs](std::span<const HeadPrompt> heads, const Params& params, std::size_t level,
                                 std::uint32_t seed, Backend& backend) {
                          std::vector<Codecs> all;
                          for (const HeadPrompt& head : heads)
                            all.push_back(codecs(head, params.as<P>(), level, seed, backend));
                          return all;
                        }};
  return quantiser_row(encodes == Encodes::each ? with_exact_ends<P>(std::move(info))
                                                : with_schema<P>(std::move(info)));
}

/// The level that stores the tokens of another method: the only one. Throws Error where there are several.
std::size_t only_level(const MethodInfo& quantiser, const Params& params);

/// The caches of these heads stored by the quantiser at this level.
Caches stored_by(const MethodInfo& quantiser, const Params& params, std::size_t level, std::uint32_t seed,
                 Caches caches, std::span<const HeadPrompt> heads, Backend& backend);

/// The caches that `make` makes, of a method of Kind::retrieval, with their full cache stored in the same way.
MakeCaches tier_stored_by(const MethodInfo& quantiser, const Params& params, std::size_t level, MakeCaches make,
                          const std::vector<HeadPrompt>& heads, Backend& backend);

}  // namespace kvbench::methods
