// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/noise_floor.hpp>

#include <algorithm>

#include <kvbench/replay/exact/fp64_attention.hpp>

namespace kvbench::replay {

bool NoiseFloor::samples(Index query) const {
  const Index queries = head_->queries_per_head();
  return (query + 1) * sample_size / queries > query * sample_size / queries;
}

RowState NoiseFloor::row(Index g, Index query, Backend& backend) {
  if (keys_.empty()) {
    keys_ = backend.on_host(head_->tokens.keys);
    values_ = backend.on_host(head_->tokens.values);
  }
  std::vector<Row>& of_query = rows_[static_cast<std::size_t>(query)];
  for (Index next = std::ssize(of_query); next < head_->group; ++next) of_query.push_back(compute(next, query));
  const Row& row = of_query[static_cast<std::size_t>(g)];
  return {.max = row.log_sum_exp, .den = 1, .num = row.out};
}

NoiseFloor::Row NoiseFloor::compute(Index g, Index query) const {
  const auto d = static_cast<std::size_t>(head_->tokens.keys.cols());
  const auto row = static_cast<std::size_t>(g * head_->queries_per_head() + query);
  const Index last = Index{head_->positions[static_cast<std::size_t>(query)]} + 1;
  const Index first = window_ > 0 ? std::max<Index>(0, last - window_) : 0;
  const Fp64Attention exact =
      fp64_attention(std::span(head_->queries).subspan(row * d, d), {keys_.data(), keys_.size()},
                     {values_.data(), values_.size()}, first, last, scale_);
  return {exact.log_sum_exp, {exact.out.begin(), exact.out.end()}};
}

}  // namespace kvbench::replay
