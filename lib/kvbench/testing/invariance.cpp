// SPDX-License-Identifier: Apache-2.0
// Properties that a row declares or gives a reason against: exactness, scaling, shifts, numbering of heads.
#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

constexpr double tolerance = 1e-4;  // answers are of size 1, sums in fp32

void require_close(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  const double difference = max_difference(a, b);
  require(difference < tolerance, "answers differ by {:.3g} from those {}", difference, what);
}

void require_all_close(const std::vector<Result>& a, const std::vector<Result>& b, const char* what) {
  for (std::size_t h = 0; h < a.size(); ++h) require_close(a[h].answers, b[h].answers, what);
}

void require_exact(const Result& result, const HeadData& head, Index begin, Index end, Index tokens, Backend& backend) {
  const methods::QueryBlock block = query_block(head, begin, end, tokens, backend);
  require_close(result.answers, exact_answer(head, block, backend),
                "of exact attention; deny `full_budget_exact` if they should");
}

}  // namespace

std::string full_budget_is_exact(Trial& trial) {
  if (std::string reason = reason_against(trial.info().properties.full_budget_exact); !reason.empty()) return reason;
  const Heads heads = trial.heads();
  for (const Index budget : {48, 49, 500}) {
    const auto results = trial.prefill(trial.open(heads, budget), heads);
    for (std::size_t h = 0; h < heads.size(); ++h)
      require_exact(results[h], heads[h], heads[h].n, heads[h].total, heads[h].total, trial.backend());
  }
  if (trial.limited()) return {};
  // A budget of context and decoded tokens drops no token.
  const auto decoded = trial.decode(trial.open(heads, 500), heads);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    for (std::size_t i = 0; i < decoded[h].size(); ++i) {
      const Index position = heads[h].n + static_cast<Index>(i);
      require_exact(decoded[h][i], heads[h], position, position + 1, position + 1, trial.backend());
    }
  }
  return {};
}

std::string values_scale(Trial& trial) {
  if (std::string reason = reason_against(trial.info().properties.value_scaling); !reason.empty()) return reason;
  const Heads heads = trial.heads();
  Heads scaled = heads;
  for (HeadData& head : scaled) {
    for (float& value : head.values) value *= 4;
  }
  const auto before = trial.prefill(trial.open(heads, 24), heads);
  auto after = trial.prefill(trial.open(scaled, 24), scaled);
  for (Result& result : after) {
    for (float& x : result.answers) x /= 4;
  }
  require_all_close(before, after, "of four times the values, divided by four");
  return {};
}

std::string keys_shift(Trial& trial) {
  if (std::string reason = reason_against(trial.info().properties.key_shift); !reason.empty()) return reason;
  const Heads heads = trial.heads();
  Heads shifted = heads;
  for (HeadData& head : shifted) {
    for (std::size_t i = 0; i < head.keys.size(); ++i)
      head.keys[i] += 0.25f * static_cast<float>(i % static_cast<std::size_t>(head.d)) - 0.5f;
  }
  for (const Index budget : {24, 40}) {
    require_all_close(trial.prefill(trial.open(heads, budget), heads),
                      trial.prefill(trial.open(shifted, budget), shifted), "of shifted keys");
  }
  return {};
}

std::string heads_permute(Trial& trial) {
  if (std::string reason = reason_against(trial.info().properties.head_permutation); !reason.empty()) return reason;
  const Heads heads = trial.heads();
  Heads moved(heads.rbegin(), heads.rend());
  for (std::size_t h = 0; h < moved.size(); ++h) moved[h].head = KvHeadId(static_cast<std::int64_t>(h) + 4);
  const auto before = trial.prefill(trial.open(heads, 24), heads);
  const auto after = trial.prefill(trial.open(moved, 24), moved);
  for (std::size_t h = 0; h < heads.size(); ++h)
    require(before[h] == after[heads.size() - 1 - h], "a head with another index has another result");
  return {};
}

}  // namespace kvbench::testing
