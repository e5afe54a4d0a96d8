// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/stream_sketch.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/methods/sampling/balancekv_stream.hpp>

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

double value_norm(const WalkSample& sample, Index i) { return std::sqrt(squared_norm(sample.value(i))); }

std::map<int, std::vector<Index>> norm_buckets(const WalkSample& sample) {
  std::map<int, std::vector<Index>> found;
  for (Index i = 0; i < sample.n; ++i) {
    if (const double norm = value_norm(sample, i); norm > 0) found[methods::norm_bucket(norm)].push_back(i);
  }
  return found;
}

double delta_of_calls(const WalkSample& sample, const Theorem31Setup& setup) {
  Index calls = total_calls(sample.n, setup.t, setup.levels);
  for (const auto& [bucket, tokens] : norm_buckets(sample))
    calls += total_calls(std::ssize(tokens), setup.t, setup.levels);
  return setup.delta / (2 * static_cast<double>(std::max<Index>(1, calls)));
}

namespace {

methods::MakeCache stream_method(const methods::HeadPrompt& head, const Theorem31Setup& setup, double delta,
                                 Backend& backend) {
  const methods::MethodInfo& method = methods::find_method("balancekv");
  const methods::Assignment settings[] = {{"mode", "stream"},
                                          {"half", "exact"},
                                          {"constants", "tight"},
                                          {"delta", fmt::format("{}", delta)},
                                          {"t", fmt::format("{}", setup.t)},
                                          {"rounds", fmt::format("{}", setup.levels)},
                                          {"eps", fmt::format("{}", setup.eps)}};
  return method.prepare_head(head, method.bind(settings), backend);
}

}  // namespace

double numbers_held(const Subject& subject, const Theorem31Setup& setup, double delta, Backend& backend) {
  double numbers = 0;
  for (const methods::FootprintArray& array :
       stream_method(subject.head, setup, delta, backend)(2 * subject.tokens(), 0)->footprint()) {
    if (!array.meta()) numbers += static_cast<double>(array.rows * array.cols);
  }
  return numbers;
}

StreamSketch library_stream(const Subject& subject, Index n, const Theorem31Setup& setup, double delta,
                            Backend& backend) {
  const methods::MakeCache make = stream_method(first_context(subject.head, n), setup, delta, backend);
  return [make, n, &backend](std::uint32_t seed) {
    // t and T are given; the budget only has to be large enough for all tokens in both sums.
    Session session(make(2 * n, seed), n, backend);
    return token_weights(session, backend);
  };
}

}  // namespace kvbench::bounds
