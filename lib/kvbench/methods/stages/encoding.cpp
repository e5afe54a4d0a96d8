// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/encoding.hpp>

#include <algorithm>

namespace kvbench::methods {

Index run_of(const Codec* codec, Index context, Index held, Index most) {
  if (codec == nullptr || most == 0) return most;
  const auto encoded = [&](Index added) { return codec->encoded(context, held + added); };
  if (encoded(1) == held + 1 && encoded(most) == held + most) return most;  // each row is encoded when it comes
  Index run = 1;
  while (run < most && encoded(run + 1) == encoded(1)) ++run;
  return run;
}

void add_encoded(const FootprintArray& array, const Codec& codec, Index& exact, Footprint& out) {
  const Index plain = std::min(exact, array.rows), encoded = array.rows - plain;
  exact -= plain;
  const auto share = [&](Index rows) {
    return array.rows > 0 ? static_cast<double>(rows) / static_cast<double>(array.rows) : 1;
  };
  for (FootprintArray part : codec.footprint(encoded, array.cols)) {
    part.name = array.name + " " + part.name;
    part.tier = array.tier, part.read = array.read, part.content = array.content;
    part.share = array.share * share(encoded);
    out.push_back(std::move(part));
  }
  if (plain == 0) return;
  FootprintArray rest = array;
  rest.name += " not yet encoded";
  rest.rows = plain;
  rest.share = array.share * share(plain);
  out.push_back(std::move(rest));
}

void add_extras(const Codec& codec, std::span<const std::int32_t> tokens, Content content, Tier tier, Footprint& out) {
  for (FootprintArray& array : codec.extras(tokens)) {
    array.name = (content == Content::keys ? "key " : "value ") + array.name;
    array.content = content;
    array.tier = tier;
    out.push_back(std::move(array));
  }
}

}  // namespace kvbench::methods
