// SPDX-License-Identifier: Apache-2.0
#include <support/small_trace.hpp>

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <unit/trace/sample.hpp>

namespace kvbench::testing {

using trace::Array;

SmallTrace::SmallTrace(const trace::SynthOptions& options) {
  trace::synthesize(folder_ / "small.h5", options);
  reader_ = std::make_unique<trace::Reader>(folder_ / "small.h5");
}

std::unique_ptr<trace::Reader> SmallTrace::with_other_queries(std::int64_t begin) const {
  const trace::TraceInfo& info = reader_->info();
  const std::string path = folder_ / "other.h5";
  trace::Writer writer(path, info);
  trace::test::for_each_head(
      info, [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const trace::Shape& shape) {
        const trace::PromptInfo& prompt = info.prompts[p];
        std::vector<float> rows = reader_->read_head(prompt, prompt.layers[l], array, head);
        const auto& positions = prompt.layers[l].query_positions;
        for (std::size_t i = 0; array == Array::queries && i < positions.size(); ++i) {
          if (positions[i] < begin) continue;
          const auto row = rows.begin() + static_cast<std::ptrdiff_t>(i) * shape.dim;
          std::reverse(row, row + shape.dim);
          *row = -*row - 1;
        }
        writer.write_rows(p, l, array, head, 0, rows);
      });
  writer.commit();
  return std::make_unique<trace::Reader>(path);
}

namespace {}  // namespace

methods::MethodInfo method_of(std::string name, OpenCache open) {
  methods::MethodInfo info;
  info.name = std::move(name);
  info.prepare = [open](std::span<const methods::HeadPrompt> heads, const methods::Params&, Backend& backend) {
    std::vector<methods::MakeCache> caches;
    for (const methods::HeadPrompt& head : heads) {
      caches.push_back(
          [open, head, &backend](Index budget, std::uint32_t seed) { return open(head, budget, seed, backend); });
    }
    return methods::each_head(std::move(caches));
  };
  return info;
}

methods::MethodInfo answering(std::string name,
                              std::function<methods::EntryTables(const methods::QueryBlock&, Backend&)> entries) {
  return method_of(std::move(name), [entries](const methods::HeadPrompt&, Index, std::uint32_t, Backend& backend) {
    return std::make_unique<FunctionCache>(
        [entries, &backend](const methods::QueryBlock& queries) { return entries(queries, backend); });
  });
}

methods::EntryTables ids_table(Backend& backend, std::vector<TokenId> ids) {
  const auto width = static_cast<Index>(ids.size());
  return {{.ids = backend.adopt(std::move(ids), 1, width)}};
}

replay::HostEntries host_entries(const methods::EntryTables& tables, Index queries, Backend& backend) {
  std::vector<methods::HostTable> host;
  for (const methods::EntryTable& table : tables) host.push_back(on_host(table, backend));
  return {std::move(host), queries};
}

Arrays::Arrays(const trace::Reader& reader, std::size_t layer, Index kv_head) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[0];
  n = prompt.num_tokens, d = info.head_dim, dv = info.value_dim, group = info.group();
  scale = prompt.layers[layer].scale;
  keys = reader.read_head(prompt, prompt.layers[layer], Array::keys, kv_head);
  values = reader.read_head(prompt, prompt.layers[layer], Array::values, kv_head);
  for (Index g = 0; g < group; ++g) {
    queries.push_back(reader.read_head(prompt, prompt.layers[layer], Array::queries, kv_head * group + g));
  }
}

double Arrays::logit(Index g, Index position, Index token) const {
  double sum = 0;
  for (Index c = 0; c < d; ++c) {
    sum += static_cast<double>(queries[static_cast<std::size_t>(g)][static_cast<std::size_t>(position * d + c)]) *
           keys[static_cast<std::size_t>(token * d + c)];
  }
  return scale * sum;
}

std::vector<double> Arrays::value(Index token) const {
  return {values.begin() + token * dv, values.begin() + (token + 1) * dv};
}

std::vector<TermEntry> tokens_between(Index begin, Index end) {
  std::vector<TermEntry> entries;
  for (Index j = begin; j < end; ++j) entries.push_back({.id = j});
  return entries;
}

TermAnswer attend_to(const Arrays& head, Index g, Index position, const std::vector<TermEntry>& entries) {
  TermAnswer answer{.out = std::vector<double>(static_cast<std::size_t>(head.dv))};
  double z = 0;
  for (const TermEntry& e : entries) {
    const double mass = std::exp(head.logit(g, position, e.id));
    const std::vector<double> value = e.value.empty() ? head.value(e.id) : e.value;
    z += e.den * mass;
    for (std::size_t c = 0; c < value.size(); ++c) answer.out[c] += e.num * mass * value[c];
  }
  for (double& x : answer.out) x = z > 0 ? x / z : 0;
  answer.log_z = std::log(z);
  return answer;
}

namespace {

using doctest::Approx;

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return std::sqrt(sum);
}

/// mass_err and dir_err by their definition: w, w_hat, mu_H, mu_T, mu_T_hat. Only where H and T are not empty.
void check_decomposition(const Arrays& head, Index g, Index position, const std::vector<TermEntry>& entries,
                         const TermAnswer& exact, double norm, const replay::ConfigurationResult& result,
                         std::size_t row) {
  std::vector<TermEntry> h, rest_hat, rest;
  std::vector<bool> in_h(static_cast<std::size_t>(position + 1));
  for (const TermEntry& e : entries) {
    const bool plain = e.num == 1 && e.den == 1 && e.value.empty();
    (plain ? h : rest_hat).push_back(e);
    if (plain) in_h[static_cast<std::size_t>(e.id)] = true;
  }
  for (Index j = 0; j <= position; ++j) {
    if (!in_h[static_cast<std::size_t>(j)]) rest.push_back({.id = j});
  }
  if (h.empty() || rest.empty()) return;
  const TermAnswer mu_h = attend_to(head, g, position, h), mu_t = attend_to(head, g, position, rest),
                   mu_t_hat = attend_to(head, g, position, rest_hat), whole = attend_to(head, g, position, entries);
  const double w = std::exp(mu_t.log_z - exact.log_z),
               w_hat = rest_hat.empty() ? 0 : std::exp(mu_t_hat.log_z - whole.log_z);
  CHECK(metric(result, row, replay::Metric::mass_err) ==
        Approx(std::abs(w_hat - w) * distance(mu_t.out, mu_h.out) / norm).epsilon(2e-4));
  const double direction = w_hat * distance(mu_t_hat.out, mu_t.out) / norm;
  CHECK(std::abs(metric(result, row, replay::Metric::dir_err) - direction) < 2e-4 * (1 + direction));
}

}  // namespace

void check_result(const Arrays& head, const replay::HeadResult& result, std::size_t configuration,
                  const TermEntries& entries) {
  const replay::ConfigurationResult& measured = result.results.at(configuration);
  REQUIRE_MESSAGE(measured.status == replay::Status::ok, measured.reason);
  const std::size_t m = result.positions.size();
  REQUIRE(measured.metrics.size() == static_cast<std::size_t>(head.group) * m);
  for (Index g = 0; g < head.group; ++g) {
    for (std::size_t i = 0; i < m; ++i) {
      const Index t = result.positions[i];
      const std::size_t row = static_cast<std::size_t>(g) * m + i;
      CAPTURE(g);
      CAPTURE(t);
      const std::vector<TermEntry> all = tokens_between(0, t + 1), used = entries(g, t);
      const TermAnswer exact = attend_to(head, g, t, all), answer = attend_to(head, g, t, used);
      const std::vector<double> zero(exact.out.size());
      double squares = 0, fro = 0;
      for (Index j = 0; j <= t; ++j) {
        squares += std::exp(2 * (head.logit(g, t, j) - exact.log_z));
        for (const double v : head.value(j)) fro += v * v;
      }
      const double error = distance(answer.out, exact.out), norm = distance(exact.out, zero);
      CHECK(metric(measured, row, replay::Metric::rel_err) == Approx(error / norm).epsilon(2e-4));
      CHECK(metric(measured, row, replay::Metric::err_bound_fro) ==
            Approx(error / std::sqrt(squares * fro)).epsilon(2e-4));
      CHECK(metric(measured, row, replay::Metric::err_bound_op) >=
            metric(measured, row, replay::Metric::err_bound_fro));
      CHECK(std::abs(metric(measured, row, replay::Metric::log_z_err) - (answer.log_z - exact.log_z)) < 1e-4);
      for (const replay::Metric k : replay::all_metrics()) {
        const auto& info = info_of(k);
        CAPTURE(info.name);
        const float measure = measured.metrics[row][k];
        CHECK((std::isnan(measure) || (measure >= info.limits.lo && measure <= info.limits.hi + 1e-6)));
      }
      if (!std::isnan(metric(measured, row, replay::Metric::mass_err)))
        check_decomposition(head, g, t, used, exact, norm, measured, row);
      for (std::size_t c = 0; c < answer.out.size(); ++c) {
        const float out = measured.raw.value().output.at(row * answer.out.size() + c);
        CHECK(std::abs(out - answer.out[c]) < 1e-4 * (1 + std::abs(answer.out[c])));
      }
    }
  }
}

replay::ReplayRequest request_of(std::vector<const methods::MethodInfo*> methods, Index budget) {
  replay::ReplayRequest request;
  for (const methods::MethodInfo* info : methods)
    request.methods.push_back({info, info->bind ? info->bind({}) : methods::Params{}});
  request.budgets = {Budget::tokens(budget)};
  return request;
}

replay::ReplayRequest request_of(const methods::MethodInfo& method, const std::vector<methods::Assignment>& settings,
                                 Index budget) {
  replay::ReplayRequest request = request_of({&method}, budget);
  request.methods[0].params = method.bind(settings);
  return request;
}

}  // namespace kvbench::testing
