// SPDX-License-Identifier: Apache-2.0
// Entries within budget and footprint, declared weights, nested budgets, equal bytes.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

using methods::Footprint, methods::FootprintArray, methods::Element;

constexpr Index tried_budgets[] = {1, 2, 5, 13, 33, 40, 47, 48, 60};
constexpr Index shape_tokens = 48;  // of Shape

bool stores_plain_numbers(const FootprintArray& array) {
  return array.element == Element::kv || array.element == Element::f32 || array.element == Element::f16;
}

/// Numbers in the arrays that hold keys and values, those of the deployment's cache.
Index kept_numbers(const Footprint& arrays) {
  Index numbers = 0;
  for (const FootprintArray& array : arrays) {
    if (array.element == Element::kv) numbers += array.rows * array.cols;
  }
  return numbers;
}

/// Numbers that the entries of query i need in memory: a key for each token of N or D, a value for each of N.
Index needed_numbers(const std::vector<std::vector<Entry>>& rows, const HeadData& head, Index i) {
  std::set<TokenId> keys, values;
  const Index m = static_cast<Index>(rows.size()) / head.group;
  for (Index g = 0; g < head.group; ++g) {
    for (const Entry& entry : rows[static_cast<std::size_t>(g * m + i)]) {
      if (entry.num != 0 || entry.den != 0) keys.insert(entry.id);
      if (entry.num != 0) values.insert(entry.id);
    }
  }
  return std::ssize(keys) * head.d + std::ssize(values) * head.dv;
}

bool weighted(const std::vector<std::vector<Entry>>& rows) {
  return std::ranges::any_of(rows, [](const auto& row) {
    return std::ranges::any_of(row, [](const Entry& entry) { return entry.num != 1 || entry.den != 1; });
  });
}

void require_footprint(const Footprint& arrays, const std::vector<std::vector<Entry>>& rows, const HeadData& head) {
  Index numbers = 0;
  bool meta = false;
  for (const FootprintArray& array : arrays) {
    require(!array.name.empty(), "an array of footprint() has no name");
    require(array.rows >= 0 && array.cols >= 0, "the array '{}' of footprint() has {} rows of {} numbers", array.name,
            array.rows, array.cols);
    if (!array.meta() && stores_plain_numbers(array)) numbers += array.rows * array.cols;
    meta |= array.meta() && array.rows * array.cols > 0;
  }
  const bool codes = std::ranges::any_of(
      arrays, [](const FootprintArray& array) { return !array.meta() && !stores_plain_numbers(array); });
  for (Index i = 0; !codes && i < std::ssize(rows) / head.group; ++i) {
    const Index needed = needed_numbers(rows, head, i);
    require(numbers >= needed, "entries() answers by {} numbers of keys and values, and footprint() holds {}", needed,
            numbers);
  }
  require(!weighted(rows) || meta, "entries have weights, and footprint() has no array of Content::meta for them");
}

/// Kinds that are bound by the budget hold it: per kv head, or on average over the heads of a layer.
void require_budget(const Row& row, const std::vector<Footprint>& arrays, const std::vector<Result>& results,
                    const Heads& heads, Index budget) {
  using methods::Kind;
  const Kind kind = row.info->kind;
  const bool per_head = row.info->granularity == methods::Granularity::query_head ||
                        row.params.text().find("per=query_head") != std::string::npos;
  const Index copies = per_head ? heads[0].group : 1;
  std::vector<Index> entries(results[0].entries.size(), 0);
  Index numbers = 0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    numbers += kept_numbers(arrays[h]);
    for (std::size_t r = 0; r < entries.size(); ++r) entries[r] += std::ssize(ids_of(results[h].entries[r]));
  }
  const Index allowed = std::ssize(heads) * budget;
  if (kind == Kind::eviction || kind == Kind::merging || kind == Kind::retrieval) {
    const Index most = std::ranges::max(entries);
    require(most <= allowed, "{} entries on {} kv heads answer a query, and the budget allows {}", most, heads.size(),
            allowed);
  }
  if (kind == Kind::eviction || kind == Kind::merging || kind == Kind::sampling) {
    const Index most = copies * allowed * (heads[0].d + heads[0].dv);
    require(numbers <= most, "footprint() holds {} numbers of keys and values on {} kv heads, and the budget allows {}",
            numbers, heads.size(), most);
  }
}

void require_protected(const methods::Protected& fixed, Index budget, bool planned) {
  require(fixed.sinks >= 0 && fixed.recent >= 0, "protected_tokens() has negative numbers");
  require(planned || fixed.sinks + fixed.recent <= budget, "protected_tokens() has {} sinks and {} recent tokens",
          fixed.sinks, fixed.recent);
}

/// The bytes of all heads and, but in Kind::retrieval, the entries that answer their queries, in prefill and decode;
/// absent where the method refuses the budget.
std::optional<std::pair<double, Index>> amounts(Trial& trial, const Heads& heads, Index budget, std::uint32_t seed) {
  const Instance instance = trial.try_open(heads, budget, seed);
  if (!instance.session) return std::nullopt;
  std::vector<Result> results = trial.prefill(instance, heads);
  for (auto& head : trial.decode(instance, heads)) std::ranges::move(head, std::back_inserter(results));
  double bytes = 0;
  Index entries = 0;
  for (const Footprint& arrays : instance.session->footprint()) {
    for (const FootprintArray& array : arrays)
      bytes += static_cast<double>(array.rows * array.cols) * element_bytes(array.element, Element::f16);
  }
  for (const Result& result : results) {
    for (const auto& row : result.entries) entries += std::ssize(row);
  }
  return std::pair(bytes, trial.info().kind == methods::Kind::retrieval ? 0 : entries);
}

}  // namespace

std::string entries_hold_the_budget(Trial& trial) {
  const Heads heads = trial.heads();
  const bool planned = trial.info().divides(trial.row().params);
  std::string refusal;
  bool ran = false;
  for (const Index budget : tried_budgets) {
    const Instance instance = trial.try_open(heads, budget);
    if (!instance.session) {
      refusal = instance.refusal;
      continue;
    }
    ran |= budget >= 13;
    const auto results = trial.prefill(instance, heads);
    require_finite(results);
    const auto footprints = instance.session->footprint();
    const auto fixed = instance.session->protected_tokens();
    for (std::size_t h = 0; h < heads.size(); ++h) {
      require_footprint(footprints[h], results[h].entries, heads[h]);
      require_protected(fixed[h], budget, planned);
    }
    // A plan may give this layer more than the mean.
    if (!planned && lifted(trial.row(), "budget").empty())
      require_budget(trial.row(), footprints, results, heads, budget);
    const auto decoded = trial.decode(instance, heads);
    for (std::size_t h = 0; h < heads.size(); ++h)
      require_footprint(instance.session->footprint()[h], decoded[h].back().entries, heads[h]);
  }
  if (ran) return {};
  const std::string sentence =
      fmt::format("it has no result at any budget from 13 to 60 of a context of 48 tokens: {}", refusal);
  if (trial.limited() || (trial.row().params.text().empty() && lifted(trial.row(), "runs").empty()))
    throw Broken(sentence);
  throw methods::Unavailable(sentence);  // settings may ask for a longer context
}

std::string plans_hold_the_budget(Trial& trial) {
  if (!trial.info().divides(trial.row().params)) return "it has no plan";
  methods::ModelContext model{.prompt_group = "", .layers = {0, 1, 2, 3}, .tokens = shape_tokens};
  if (trial.info().score_of_head) model.head_scores = {{0, {3, 9, 1}}, {1, {2, 4, 8}}, {2, {7, 7, 7}}, {3, {0, 0, 5}}};
  for (const Index budget : {8, 40, 100}) {
    std::vector<Index> layers;
    try {
      layers = trial.info().plan(model, budget, trial.row().params);
    } catch (const methods::Infeasible&) {
      continue;
    }
    require(layers.size() == 4, "a plan for 4 layers has {}", layers.size());
    Index sum = 0;
    for (const Index layer : layers) {
      require(layer >= 1, "a plan gives a layer {} tokens", layer);
      sum += std::min<Index>(layer, shape_tokens);
    }
    // Equal steps rounded down may miss the share of the last layer by two tokens, the mean by one.
    require(sum <= 4 * budget + 4, "a plan gives 4 layers {} tokens at a budget of {}", sum, budget);
  }
  return {};
}

std::string weights_are_as_declared(Trial& trial) {
  using methods::WeightSum;
  const WeightSum declared = trial.info().properties.weight_sum;
  const Heads heads = trial.heads();
  for (const Index budget : tried_budgets) {
    const Instance instance = trial.try_open(heads, budget);
    if (!instance.session) continue;
    for (const Result& result : trial.prefill(instance, heads)) {
      for (const auto& entries : result.entries) {
        double sum = 0;
        for (const Entry& entry : entries) {
          require(entry.num >= 0, "a weight is {}", entry.num);
          require(declared != WeightSum::ones || (entry.num == 1 && entry.den == 1), "weights are {} and {}, not 1",
                  entry.num, entry.den);
          sum += entry.den;
        }
        const double most = static_cast<double>(shape_tokens) * (1 + 1e-5),
                     least = static_cast<double>(shape_tokens) * (1 - 1e-5);
        require(declared != WeightSum::context || (sum >= least && sum <= most),
                "weights of a context of {} tokens sum to {}", shape_tokens, sum);
        require(declared != WeightSum::at_most_context || sum <= most, "weights of a context of {} tokens sum to {}",
                shape_tokens, sum);
      }
    }
  }
  return {};
}

std::string budgets_are_nested(Trial& trial) {
  if (const std::string reason = reason_against(trial.info().properties.nested_budgets); !reason.empty()) return reason;
  const Heads heads = trial.heads();
  std::vector<std::vector<Ids>> before(heads.size());
  for (const Index budget : tried_budgets) {
    const Instance instance = trial.try_open(heads, budget);
    if (!instance.session) continue;
    const auto results = trial.prefill(instance, heads);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      std::vector<Ids> kept;
      for (const auto& entries : results[h].entries) kept.push_back(ids_of(entries));
      for (std::size_t r = 0; r < before[h].size(); ++r)
        require(std::ranges::includes(kept[r], before[h][r]), "a token of the budget before is not kept");
      before[h] = kept;
    }
  }
  return {};
}

std::string bytes_are_equal(Trial& trial) {
  if (const std::string reason = reason_against(trial.info().properties.equal_bytes); !reason.empty()) return reason;
  const bool planned = trial.info().divides(trial.row().params);  // layers have budgets of their own
  for (const Index budget : tried_budgets) {
    std::optional<std::pair<double, Index>> first;
    for (const std::uint32_t other : {0u, 1u, 2u, 3u}) {
      Heads heads = trial.heads({}, 8 * other);
      for (HeadData& head : heads) {
        head.layer = LayerId(planned ? 1 : static_cast<int>(other));
        if (other == 3) head.keys.assign(head.keys.size(), 1);  // no two are apart
      }
      const auto own = amounts(trial, heads, budget, other);
      if (!own) continue;
      if (!first) first = own;
      require(own == first, "it takes {} bytes and {} entries, and {} and {} on other heads; deny `equal_bytes`",
              own->first, own->second, first->first, first->second);
    }
  }
  return {};
}

}  // namespace kvbench::testing
