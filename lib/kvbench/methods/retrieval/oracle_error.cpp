// SPDX-License-Identifier: Apache-2.0
// oracle-error: B weighted tokens for a whole block of evaluated queries, chosen and weighted with these queries at
// hand, so that the error of their answers is small: how far could any weighted subset of B tokens go?
//
// Greedy forward selection adds the token that lowers the squared relative error of the block most, and weights of
// the chosen tokens are fitted again (stages/token_weights.hpp states the objective and the tolerances). All queries
// and query heads of the block share the set and its weights. A block is what the harness evaluates at once: as many
// queries as 40 MB of logits allow, all of them in most traces. It is a ceiling with hindsight, not a bound: greedy
// selection need not find the best set, and with weights of its own for each query, dv + 1 tokens answer without error.
// Parameters: none. In prefill the candidates are the tokens of the context, in decode also the decoded ones so far,
// those of the block included. A budget of all candidates keeps them with weight 1.
// Complexity: O(R n B + n B^2) per block of R query rows, on the host in fp64. Infeasible above 2^24 pairs of a
// candidate with a query row or a kept token.
// Memory: B tokens and B weights.
// Deviations: none (no paper defines it).
#include <algorithm>
#include <cmath>

#include <kvbench/methods/retrieval/exact_logits.hpp>
#include <kvbench/methods/retrieval/methods.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/token_weights.hpp>

namespace kvbench::methods {
namespace {

using SharedFit = std::shared_ptr<PerBlock<WeightFit>>;

class OracleErrorCache : public HeadCache {
 public:
  OracleErrorCache(const HeadPrompt& head, Index budget, SharedFit fit, Backend& backend)
      : HeadCache(head, backend), fit_(std::move(fit)), budget_(budget), values_(backend.read(head.values)) {}

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override {
    const std::vector<float> values = backend_.read(tokens.values);
    values_.insert(values_.end(), values.begin(), values.end());
  }

  EntryTables entries(const QueryBlock& queries) const override {
    require_exact_logits(queries, "oracle-error");
    if (tokens() == 0) return {};
    if (budget_ >= tokens()) return all_tokens();
    WeightFit::check_size(group_ * queries.size(), tokens(), budget_);
    const WeightFit& fit = fit_->of(queries, tokens(), [&] { return fit_of(queries); });
    const std::vector<Index> chosen = fit.greedy(budget_);
    const std::vector<double> weights = fit.weights(chosen, std::vector<double>(chosen.size(), 1.0));
    return table(chosen, weights);
  }

  Footprint footprint() const override {
    const Index kept = std::min(budget_, tokens());
    return {
        {.name = "keys", .rows = kept, .cols = d_, .read = Read::with_entry},
        {.name = "values", .rows = kept, .cols = dv_, .read = Read::with_entry, .content = Content::values},
        {.name = "weights",
         .element = Element::f32,
         .rows = kept,
         .cols = 1,
         .read = Read::with_entry,
         .content = Content::meta},
    };
  }

 private:
  Index tokens() const { return std::ssize(values_) / dv_; }

  EntryTables all_tokens() const {
    std::vector<std::int32_t> ids;
    for (Index t = 0; t < tokens(); ++t) ids.push_back(static_cast<std::int32_t>(t));
    return {{.ids = backend_.adopt(std::move(ids), 1, tokens())}};
  }

  WeightFit fit_of(const QueryBlock& queries) const {
    const Index m = queries.size(), rows = group_ * m, columns = queries.scores.cols();
    const std::vector<float> scores = backend_.read(queries.scores), sums = backend_.read(queries.log_sum_exp);
    const std::vector<std::int32_t> first = backend_.read(queries.first), last = backend_.read(queries.last);
    std::vector<float> shares(static_cast<std::size_t>(rows * tokens()));
    for (Index r = 0; r < rows; ++r) {
      const auto i = static_cast<std::size_t>(r % m);
      for (Index t = first[i]; t < std::min<Index>(last[i], tokens()); ++t) {
        shares[static_cast<std::size_t>(r * tokens() + t)] =
            std::exp(scores[static_cast<std::size_t>(r * columns + t)] - sums[static_cast<std::size_t>(r)]);
      }
    }
    return {dv_, std::move(shares), values_, backend_.read(queries.outputs)};
  }

  EntryTables table(const std::vector<Index>& chosen, const std::vector<double>& fitted) const {
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      if (!(fitted[k] > 0)) continue;
      ids.push_back(static_cast<std::int32_t>(chosen[k]));
      weights.push_back(static_cast<float>(fitted[k]));
    }
    const Index count = std::ssize(ids);
    if (count == 0) return {};
    const Buffer<const float> weight = backend_.adopt(std::move(weights), 1, count);
    return {{.ids = backend_.adopt(std::move(ids), 1, count), .weight_num = weight, .weight_den = weight}};
  }

  SharedFit fit_;
  Index budget_;
  std::vector<float> values_;  // [tokens, dv]
};

MakeCache prepare_oracle_error(const HeadPrompt& head, const NoParams&, Backend& backend) {
  return [head, fit = std::make_shared<PerBlock<WeightFit>>(), &backend](Index budget, std::uint32_t /*seed*/) {
    return std::make_unique<OracleErrorCache>(head, budget, fit, backend);
  };
}

}  // namespace

MethodInfo oracle_error_method() {
  return with_params<NoParams>(
      {
          .name = "oracle-error",
          .paper = "reference",
          .summary = "B weighted tokens for all evaluated queries of a block, chosen with these queries at hand: a "
                     "ceiling with hindsight",
          .notes =
              "Greedy selection, not a bound. It costs seconds per head; `all` leaves it out, and it must be named.",
          .complexity = {.compress = {"O(1)"},
                         .query = {"O(n B + n B^2 / R) of a block of R query rows", 1},
                         .memory = {"B (d + dv + 1)"}},
          .kind = Kind::retrieval,
          .granularity = Granularity::kv_head,
          .properties = {.key_shift = Property::no("rounding of the logits may change the order of selection"),
                         .nested_budgets = Property::no("tokens lose their weight as others join"),
                         .weight_sum = WeightSum::free},
      },
      prepare_oracle_error);
}

}  // namespace kvbench::methods
