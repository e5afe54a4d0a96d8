// SPDX-License-Identifier: Apache-2.0
// Formats that leave the first tokens of a context and the most recent ones in 16 bits, as engines do with attention
// sinks and a recent window.
#pragma once

#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct ExactEnds {
  Index first = 0;  ///< tokens at positions below it, wherever a cache has them
  Index last = 0;   ///< rows that were added last
};
void fields(ParamVisitor& visitor, ExactEnds& ends);

/// Parameters P of a format that encodes each token for itself, and which tokens it leaves.
template <class P>
struct WithEnds : P {
  ExactEnds ends;
};
template <class P>
void fields(ParamVisitor& visitor, WithEnds<P>& params) {
  fields(visitor, static_cast<P&>(params));
  fields(visitor, params.ends);
}

/// The codecs with these tokens in 16 bits. Throws Unavailable where a codec encodes tokens together: its groups would
/// begin elsewhere.
Codecs with_exact_ends(Codecs codecs, const ExactEnds& ends);

/// Completes the row of a quantiser that encodes each token for itself, and has the parameters P.
template <class P>
MethodInfo with_exact_ends(MethodInfo info) {
  info = with_schema<WithEnds<P>>(std::move(info));
  info.bind = [bind = info.bind](std::span<const Assignment> settings) {
    return bind(settings).template seen_as<WithEnds<P>, P>();
  };
  info.quantiser.layer_codecs = [codecs_of = info.quantiser.layer_codecs](std::span<const HeadPrompt> heads,
                                                                          const Params& params, std::size_t level,
                                                                          std::uint32_t seed, Backend& backend) {
    std::vector<Codecs> codecs = codecs_of(heads, params, level, seed, backend);
    const ExactEnds& ends = static_cast<const WithEnds<P>&>(params.as<P>()).ends;
    for (Codecs& of : codecs) of = with_exact_ends(std::move(of), ends);
    return codecs;
  };
  return info;
}

}  // namespace kvbench::methods
