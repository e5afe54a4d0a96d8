// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/subgen/sketch.hpp>

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include <kvbench/bounds/trials/stream.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index largest_t = 64;
constexpr double usual_delta_r = 0.5;

double largest_eigenvalue(const Subject& subject) {
  const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> values(
      subject.values.data(), subject.tokens(), subject.dv());
  const Eigen::MatrixXd wide = values.cast<double>();
  const Eigen::MatrixXd gram = wide.transpose() * wide;
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(gram, Eigen::EigenvaluesOnly).eigenvalues().maxCoeff();
}

SubgenQuery one_query(const Subject& subject, Index i) {
  const double scale = subject.head.scale;
  SubgenQuery query{.r = scale * std::sqrt(squared_norm(subject.query(i)))};
  for (Index k = 0; k < subject.tokens(); ++k) query.a.push_back(scale * dot(subject.query(i), subject.key(k)));
  query.shift = std::ranges::max(query.a);
  query.product.resize(static_cast<std::size_t>(subject.dv()));
  for (Index k = 0; k < subject.tokens(); ++k) {
    double& a = query.a[static_cast<std::size_t>(k)];
    a = std::exp(a - query.shift);
    query.total += a;
    query.norm2 += a * a;
    const auto value = subject.value(k);
    for (std::size_t c = 0; c < value.size(); ++c) query.product[c] += a * double{value[c]};
  }
  query.product2 = squared_norm(query.product);
  return query;
}

Index quarter(const Subject& subject) { return std::max<Index>(1, subject.tokens() / 4); }

}  // namespace

SubgenValues subgen_values(const Subject& subject) {
  SubgenValues values;
  for (Index i = 0; i < subject.tokens(); ++i) {
    values.norms2.push_back(squared_norm(subject.value(i)));
    values.mu += values.norms2.back();
    values.largest = std::max(values.largest, std::sqrt(values.norms2.back()));
  }
  if (!(values.mu > 0)) throw methods::Unavailable("the context has no value that is not zero");
  values.op2 = largest_eigenvalue(subject);
  return values;
}

std::vector<SubgenQuery> subgen_queries(const Subject& subject) {
  if (subject.tokens() == 0 || subject.num_queries() == 0)
    throw methods::Unavailable("the subject has no tokens or no queries");
  std::vector<SubgenQuery> queries;
  for (Index i = 0; i < subject.num_queries(); ++i) queries.push_back(one_query(subject, i));
  return queries;
}

double largest_query(std::span<const SubgenQuery> queries) {
  double r = 0;
  for (const SubgenQuery& query : queries) r = std::max(r, query.r);
  return r;
}

void SubgenSetup::set_partition(methods::LeaderPartition clusters) {
  partition = std::move(clusters);
  sizes.assign(partition.representatives.size(), 0);
  for (const std::int32_t label : partition.labels) sizes[static_cast<std::size_t>(label)] += 1;
}

std::vector<methods::Assignment> SubgenSetup::settings() const {
  std::vector<methods::Assignment> list = {{"t", fmt::format("{}", params.t)}, {"s", fmt::format("{}", params.s)}};
  if (params.delta > 0) list.push_back({"delta", fmt::format("{}", params.delta)});
  return list;
}

std::string SubgenSetup::text() const {
  return fmt::format("delta={:.4g}{};t={};s={}", delta(), budget_radius ? " (budget 25%)" : "", params.t, slots);
}

SubgenSetup radius_setup(const Subject& subject, double delta, Index t, Backend& backend) {
  const Index n = subject.tokens();
  SubgenSetup setup{.params = {.t = t, .s = std::max<Index>(1, n / 8), .delta = double{static_cast<float>(delta)}},
                    .budget = quarter(subject)};
  setup.slots = setup.params.s;
  setup.set_partition(methods::leader_partition(backend, subject.head.keys, static_cast<float>(delta), n).value());
  if (t == 0) setup.params.t = std::clamp<Index>(n / 2 / std::max<Index>(1, setup.clusters()), 1, largest_t);
  return setup;
}

SubgenSetup default_setup(const Subject& subject, Backend& backend) {
  SubgenSetup setup{.budget = quarter(subject), .budget_radius = true};
  setup.slots = subgen_value_slots(setup.params, setup.budget);
  const Index capacity = subgen_cluster_capacity(setup.params, setup.budget, subject.d(), subject.dv());
  if (capacity == 0)
    throw methods::Infeasible(fmt::format("a quarter of {} tokens has no room for one cluster", subject.tokens()));
  setup.set_partition(methods::smallest_leader_partition(backend, subject.head.keys, capacity));
  return setup;
}

SubgenSetup clusters_alone(SubgenSetup setup) {
  setup.params.delta = setup.delta();
  setup.params.s = setup.slots = 1;
  return setup;
}

std::vector<SubgenSetup> usual_setups(const Subject& subject, double r, Backend& backend) {
  std::vector<SubgenSetup> setups;
  if (r > 0) setups.push_back(radius_setup(subject, usual_delta_r / r, 0, backend));
  setups.push_back(default_setup(subject, backend));
  return setups;
}

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
