// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/subgen/sketch.hpp>

#include <cmath>

#include <kvbench/bounds/trials/stream.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::bounds {
namespace {

std::vector<double> widen(const std::vector<float>& x) { return {x.begin(), x.end()}; }

methods::MakeCache prepare(const methods::HeadPrompt& head, const SubgenSetup& setup, Backend& backend) {
  const methods::MethodInfo& method = methods::find_method("subgen");
  return method.prepare_head(head, method.bind(setup.settings()), backend);
}

}  // namespace

SubgenRunner::SubgenRunner(const Subject& subject, const SubgenSetup& setup, Backend& backend)
    : subject_(subject),
      setup_(setup),
      backend_(backend),
      make_(prepare(subject.head, setup, backend)),
      block_(attending_block(subject, backend)) {}

SubgenSketch SubgenRunner::answered(std::uint32_t seed) const {
  Session session(make_(setup_.budget, seed), subject_.tokens(), backend_);
  return read(session, true);
}

SubgenSketch SubgenRunner::kept(std::uint32_t seed) const {
  Session session(make_(setup_.budget, seed), subject_.tokens(), backend_);
  return read(session, false);
}

std::vector<SubgenSketch> SubgenRunner::stream(Index context, Index appended, std::uint32_t seed) const {
  Session session = session_of(context, seed);
  std::vector<SubgenSketch> sketches = {read(session, false)};
  for (Index i = context; i < context + appended; ++i) {
    append_token(session, subject_);
    sketches.push_back(read(session, false));
  }
  return sketches;
}

methods::Footprint SubgenRunner::footprint(Index context) const { return session_of(context, 0).footprint().front(); }

Session SubgenRunner::session_of(Index context, std::uint32_t seed) const {
  return {prepare(first_context(subject_.head, context), setup_, backend_)(setup_.budget, seed), context, backend_};
}

SubgenSketch SubgenRunner::read(Session& session, bool answers) const {
  const methods::EntryTables& tables = session.entries({block_}).front();
  SubgenSketch sketch;
  if (tables.empty()) return sketch;
  sketch.ids = backend_.read(tables.front().ids);
  sketch.num = widen(backend_.read(tables.front().weight_num));
  sketch.den = widen(backend_.read(tables.front().weight_den));
  if (!answers) return sketch;
  const Index m = subject_.num_queries(), dv = subject_.dv();
  methods::AttentionState state = methods::empty_state(backend_, m, dv);
  std::vector<Buffer<float>> logits;
  attend(backend_, subject_.all_tokens(), block_, tables, state, &logits);
  sketch.logits = widen(backend_.read(logits.front()));
  sketch.answers = widen(backend_.read(state.num));
  const std::vector<float> den = backend_.read(state.den);
  for (std::size_t i = 0; i < sketch.answers.size(); ++i)
    sketch.answers[i] /= double{den[i / static_cast<std::size_t>(dv)]};
  return sketch;
}

std::vector<std::vector<double>> errors_by_query(const CheckContext& context, std::size_t queries, Index trials,
                                                 const Sketcher& sketcher,
                                                 const std::function<double(const SubgenSketch&, std::size_t)>& error) {
  std::vector<std::vector<double>> errors(queries);
  for (Index trial = 0; trial < trials; ++trial) {
    context.poll();
    const SubgenSketch sketch = sketcher(context.seed(trial));
    for (std::size_t q = 0; q < queries; ++q) errors[q].push_back(error(sketch, q));
  }
  return errors;
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

}  // namespace kvbench::bounds
