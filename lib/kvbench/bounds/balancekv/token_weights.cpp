// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/token_weights.hpp>

namespace kvbench::bounds {

TokenWeights token_weights(Session& session, Backend& backend) {
  const auto n = static_cast<std::size_t>(session.tokens());
  TokenWeights held{.num = std::vector<double>(n), .den = std::vector<double>(n)};
  for (const methods::EntryTable& table : session.entries({{}}).front()) {
    const auto ids = backend.read(table.ids);
    const auto weights = [&](const Buffer<const float>& buffer) {
      return buffer.present() ? backend.read(buffer) : std::vector<float>(ids.size(), 1);
    };
    const std::vector<float> num = weights(table.weight_num), den = weights(table.weight_den);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      held.num[static_cast<std::size_t>(ids[i])] += double{num[i]};
      held.den[static_cast<std::size_t>(ids[i])] += double{den[i]};
    }
  }
  return held;
}

}  // namespace kvbench::bounds
