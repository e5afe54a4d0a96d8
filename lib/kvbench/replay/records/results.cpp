// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/results.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/enumeration.hpp>

namespace kvbench::replay {

std::string_view name_of(Status status) {
  constexpr std::string_view names[] = {"ok", "skipped", "failed", "infeasible"};
  return name_in(names, status);
}

std::string_view name_of(Protocol protocol) {
  constexpr std::string_view names[] = {"auto", "prefill", "decode", "stream"};
  return name_in(names, protocol);
}

Bytes& Bytes::operator+=(const Bytes& other) {
  for (const auto field : {&Bytes::kv, &Bytes::meta, &Bytes::fast, &Bytes::slow, &Bytes::read, &Bytes::full})
    this->*field += other.*field;
  return *this;
}

double Bytes::of(CostKind cost) const {
  switch (cost) {
    case CostKind::memory:
      return kv + meta;
    case CostKind::fast:
      return fast;
    case CostKind::read:
      return read;
  }
  return NAN;
}

namespace {

/// The square of |sum over the heads of their parts [begin, end)|.
double square_of_sum(std::span<const HeadResult> layer, std::size_t configuration, std::size_t begin, std::size_t end) {
  double squares = 0;
  for (std::size_t k = begin; k < end; ++k) {
    double sum = 0;
    for (const HeadResult& head : layer) sum += head.results[configuration].residual[k];
    squares += sum * sum;
  }
  return squares;
}

/// The stream and what exact attention adds to it count as orthogonal, because a trace has the norm of the first alone.
void set_residual_errors(std::span<HeadResult> layer, std::size_t configuration) {
  const std::vector<float>& first = layer.front().results[configuration].residual;
  const std::size_t queries = layer.front().positions.size(), columns = queries == 0 ? 0 : first.size() / queries / 2;
  const bool complete = std::ranges::all_of(layer, [&](const HeadResult& head) {
    const ConfigurationResult& result = head.results[configuration];
    return result.status == Status::ok && !result.residual.empty() && result.residual.size() == first.size();
  });
  for (std::size_t i = 0; complete && i < queries; ++i) {
    const std::size_t begin = 2 * i * columns;
    const double error = square_of_sum(layer, configuration, begin, begin + columns);
    const double exact = square_of_sum(layer, configuration, begin + columns, begin + 2 * columns);
    MetricRow& row = layer.front().results[configuration].metrics[i];
    row[Metric::residual_err] = static_cast<float>(std::sqrt(error));
    row[Metric::stream_err] = static_cast<float>(std::sqrt(error / (1 + exact)));
  }
  for (HeadResult& head : layer) head.results[configuration].residual = {};
}

}  // namespace

void set_layer_metrics(std::span<HeadResult> heads) {
  const auto layer_of = [](const HeadResult& head) { return std::pair(head.place.prompt, head.place.layer); };
  for (std::size_t begin = 0, end = 0; begin < heads.size(); begin = end) {
    while (end < heads.size() && layer_of(heads[end]) == layer_of(heads[begin])) ++end;
    for (std::size_t c = 0; c < heads[begin].results.size(); ++c)
      set_residual_errors(heads.subspan(begin, end - begin), c);
  }
}

}  // namespace kvbench::replay
