// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/checks/decoded_rows.hpp>

#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::faithful {

std::vector<float> decoded_rows(const bounds::Subject& subject, const QuantiserSetting& setting, Side side,
                                const std::vector<float>& rows, std::uint32_t seed, Backend& backend) {
  const methods::MethodInfo& info = methods::find_method(setting.method);
  const methods::Codecs codecs = info.quantiser.codecs(subject.head, info.bind(setting.settings), 0, seed, backend);
  const Index width = side == Side::keys ? subject.d() : subject.dv();
  const methods::Codec& codec = side == Side::keys ? *codecs.keys : *codecs.values;
  return backend.read(codec.decoded(backend.adopt(rows, static_cast<Index>(rows.size()) / width, width), backend));
}

KeyDecoder key_decoder(const bounds::Subject& subject, QuantiserSetting setting, Backend& backend) {
  return [&subject, &backend, setting = std::move(setting)](const std::vector<float>& keys, std::uint32_t seed) {
    return decoded_rows(subject, setting, Side::keys, keys, seed, backend);
  };
}

std::vector<float> ordinary_keys(const bounds::Subject& subject, Index count) {
  const Index d = subject.d();
  if (d < 2) throw methods::Unavailable("the keys have one channel");
  std::vector<float> ordinary;
  for (Index i = 0; i < subject.tokens(); ++i) {
    const auto key = subject.key(i);
    const double length = std::sqrt(bounds::squared_norm(key));
    if (length >= 0x1p-14 && length <= 65504) ordinary.insert(ordinary.end(), key.begin(), key.end());
  }
  if (ordinary.empty()) throw methods::Unavailable("no key has a length that f16 stores as a normal number");
  return bounds::evenly_spaced_rows(ordinary, d, count);
}

}  // namespace kvbench::faithful
