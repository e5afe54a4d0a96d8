// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/subgen/subgen_sketch.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/methods/contract/attend.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench {
namespace {

std::vector<double> widen(const std::vector<float>& x) { return {x.begin(), x.end()}; }

/// One block whose queries attend to all tokens. Its rows are queries of one head: positions only order them.
QueryBlock block_of(const Subject& subject, Backend& backend) {
  const Index m = subject.num_queries();
  const auto last = static_cast<std::int32_t>(subject.tokens());
  QueryBlock block{.queries = backend.adopt(std::vector(subject.queries), m, subject.d())};
  for (Index i = 0; i < m; ++i) block.positions.push_back(last + static_cast<std::int32_t>(i));
  block.first = backend.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(m)), m);
  block.last = backend.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(m), last), m);
  return block;
}

MakeCache prepare(const HeadPrompt& head, const SubgenSetup& setup, Backend& backend) {
  const MethodInfo& method = find_method("subgen");
  return method.prepare_head(head, method.bind(setup.settings()), backend);
}

}  // namespace

SubgenRunner::SubgenRunner(const Subject& subject, const SubgenSetup& setup, Backend& backend)
    : subject_(subject),
      setup_(setup),
      backend_(backend),
      make_(prepare(subject.head, setup, backend)),
      block_(block_of(subject, backend)) {}

SubgenSketch SubgenRunner::answered(std::uint32_t seed) const { return read(*make_(setup_.budget, seed), true); }

SubgenSketch SubgenRunner::kept(std::uint32_t seed) const { return read(*make_(setup_.budget, seed), false); }

std::vector<SubgenSketch> SubgenRunner::stream(Index context, Index appended, std::uint32_t seed) const {
  const auto cache = cache_of(context, seed);
  std::vector<SubgenSketch> sketches = {read(*cache, false)};
  for (Index i = context; i < context + appended; ++i) {
    cache->append({.first = i, .keys = subject_.head.keys.slice(i, 1), .values = subject_.head.values.slice(i, 1)});
    sketches.push_back(read(*cache, false));
  }
  return sketches;
}

Footprint SubgenRunner::footprint(Index context) const { return cache_of(context, 0)->footprint(); }

std::unique_ptr<CompressedCache> SubgenRunner::cache_of(Index context, std::uint32_t seed) const {
  HeadPrompt head = subject_.head;
  head.keys = subject_.head.keys.slice(0, context);
  head.values = subject_.head.values.slice(0, context);
  return prepare(head, setup_, backend_)(setup_.budget, seed);
}

SubgenSketch SubgenRunner::read(const CompressedCache& cache, bool answers) const {
  const EntryTables tables = cache.entries(block_);
  SubgenSketch sketch;
  if (tables.empty()) return sketch;
  sketch.ids = backend_.read(tables.front().ids);
  sketch.num = widen(backend_.read(tables.front().weight_num));
  sketch.den = widen(backend_.read(tables.front().weight_den));
  if (!answers) return sketch;
  const Index m = subject_.num_queries(), dv = subject_.dv();
  AttentionState state = empty_state(backend_, m, dv);
  std::vector<Buffer<float>> logits;
  attend(backend_, {.keys = subject_.head.keys, .values = subject_.head.values, .scale = subject_.head.scale}, block_, tables,
         state, &logits);
  sketch.logits = widen(backend_.read(logits.front()));
  sketch.answers = widen(backend_.read(state.num));
  const std::vector<float> den = backend_.read(state.den);
  for (std::size_t i = 0; i < sketch.answers.size(); ++i) sketch.answers[i] /= double{den[i / static_cast<std::size_t>(dv)]};
  return sketch;
}

std::vector<double> subgen_exponentials(const SubgenSketch& sketch, Index query, double shift) {
  const auto row = sketch.logits.begin() + query * static_cast<Index>(sketch.ids.size());
  std::vector<double> a(row, row + static_cast<Index>(sketch.ids.size()));
  for (double& x : a) x = std::exp(x - shift);
  return a;
}

double subgen_tau(const SubgenSketch& sketch, std::span<const double> exponentials) {
  double tau = 0;
  for (std::size_t e = 0; e < sketch.ids.size(); ++e) tau += sketch.den[e] * exponentials[e];
  return tau;
}

std::vector<double> subgen_z(const Subject& subject, const SubgenSketch& sketch, std::span<const double> exponentials) {
  std::vector<double> z(static_cast<std::size_t>(subject.dv()));
  for (std::size_t e = 0; e < sketch.ids.size(); ++e) {
    if (sketch.num[e] == 0) continue;
    const double weight = sketch.num[e] * exponentials[e];
    const auto value = subject.value(sketch.ids[e]);
    for (std::size_t c = 0; c < value.size(); ++c) z[c] += weight * double{value[c]};
  }
  return z;
}

}  // namespace kvbench
