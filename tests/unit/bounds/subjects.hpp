// SPDX-License-Identifier: Apache-2.0
// Streams on which tests run checks.
#pragma once

#include <random>
#include <string>
#include <vector>

#include <support/backends.hpp>

#include <kvbench/bounds/check/subject.hpp>

namespace kvbench::testing {

/// A synthetic stream of the suite.
inline bounds::Subject synthetic(const std::string& name, Index queries) {
  for (const bounds::SubjectSource& source : bounds::synthetic_subjects(queries)) {
    if (source.name == "synthetic:" + name) return source.load(cpu());
  }
  throw Error("no stream {}", name);
}

/// n keys around 6 centres, values of different norms around a mean, 3 queries.
inline bounds::Subject subgen_subject(Index n = 240) {
  std::mt19937 engine(5);
  std::normal_distribution<float> normal;
  constexpr Index d = 4;
  std::vector<float> centres, keys, values, queries;
  for (Index i = 0; i < 6 * d; ++i) centres.push_back(normal(engine));
  for (Index i = 0; i < n; ++i) {
    const auto centre = static_cast<Index>(engine() % 6);
    const float size = std::exp(0.5f * normal(engine));
    for (Index c = 0; c < d; ++c) {
      keys.push_back(centres[static_cast<std::size_t>(centre * d + c)] + 0.3f * normal(engine));
      values.push_back(size * normal(engine) + (c == 0 ? 2.0f : 0.0f));
    }
  }
  for (Index i = 0; i < 3 * d; ++i) queries.push_back(normal(engine));
  return bounds::make_subject({.name = "test",
                               .keys = std::move(keys),
                               .values = std::move(values),
                               .queries = std::move(queries),
                               .d = d,
                               .dv = d,
                               .scale = 0.5f},
                              cpu());
}

}  // namespace kvbench::testing
