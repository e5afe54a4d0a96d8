// SPDX-License-Identifier: Apache-2.0
// attention-matching: keeps the keys that reference queries attend to most, and gives each of them a weight and a value
// of its own, such that these queries get the sums and the answers of the whole context. Both are least-squares fits.
// Fast KV Compaction via Attention Matching, arXiv 2602.16284, section 3; adamzweiger/compaction,
// algorithms/highest_attention_keys.py and omp.py, configurations AM-HighestAttnKeys-basic and AM-OMP-basic.
//
// The reference queries are those of the context that the trace holds, of all query heads of the group; each sees every
// token of the context, as in the released code. E_rj = exp(logit - row maximum), y_r = sum_j E_rj.
// form=basic: the B tokens of the largest root mean square of the softmax weight over the queries are kept, ties to the
//   lower. Their weights w are the least squares of E_kept w = y, clamped to [e^-3, e^3], then two steps of projected
//   gradient descent.
// form=omp: tokens are added one by one, each time that whose E has the largest inner product with y - E_kept w, and w
//   becomes the least squares clamped to [1e-12, e^7]. In the end tokens with w < e^-7 are left out for good and others
//   are added, three times at most.
// The values C are the least squares of softmax(logit + ln w) C = exact output of the context. Both sums have the
// weights w. Decoded tokens are kept exactly.
//
// Parameters:
//   form      basic (default) | omp
//   queries   reference queries of the group, at most, evenly spaced over those in the trace; default 2048 (no source:
//             the released query configuration draws up to 100000 of self-generated texts and of the context)
//   max_pairs of rows compared per head; above it is infeasible
// Complexity: O(R n (d + dv) + R B min(R, B)) for R queries, form=omp O(R n B + B^3) per budget; O(B (d + dv)) per
// query. With n = 32768, d = 128, R = 128 and B = n / 4 about 2.8 exact passes of 256 queries, because fits run in
// fp64; form=omp, which adds token by token, more than a thousand.
// Memory: B (d + dv + 1) numbers.
// Deviations: the headline results recompute the queries with the layers before compacted, and generate texts to query;
// a replay has the context's own queries. Budgets per head that were optimised beforehand are not part of it. Fits run
// in fp64 by Cholesky of normal equations with 1e-10 of the mean diagonal, in place of fp32 lstsq; power iterations
// start from equal components instead of random ones. The released weights are stored as logarithms in the cache's
// type.
#include <algorithm>
#include <cmath>

#include <kvbench/methods/merging/attention_fits.hpp>
#include <kvbench/methods/merging/merged_context.hpp>
#include <kvbench/methods/merging/methods.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct AttentionMatchingParams {
  enum class Form { basic, omp };
  Form form = Form::basic;
  Index queries = 2048;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, AttentionMatchingParams& params) {
  visitor.choice("form", params.form, {"basic", "omp"},
                 "keys of the largest weights, or by orthogonal matching pursuit");
  visitor.integer("queries", params.queries, {.min = 1}, "reference queries of the group, at most");
  fields(visitor, params.limit);
}

using Form = AttentionMatchingParams::Form;

constexpr WeightBounds basic_bounds = {0.049787068367863944, 20.085536923187668};  // e^-3, e^3
constexpr WeightBounds omp_bounds = {1e-12, 1096.6331584284585};                   // e^7
constexpr double least_omp_weight = 9.118819655545162e-4;                          // e^-7
constexpr int descents = 2;                                                        // of form=basic
constexpr int drops = 3;                                                           // of form=omp
constexpr Index block_rows = 256;

/// The reference queries, and what the whole context gives them.
struct References {
  Buffer<const float> queries;       ///< [R, d]
  std::vector<double> max, sums;     ///< [R] of the logits, and y
  std::vector<double> outputs;       ///< [R, dv]
  std::vector<float> square_shares;  ///< [n] softmax weights squared, summed over the queries
  Buffer<const float> columns;       ///< [n, R] E transposed; form=omp only

  Index count() const { return queries.rows(); }
};

/// The rows of the trace's observed queries that are reference queries.
Buffer<const float> reference_queries(const HeadPrompt& head, Index most, Backend& backend) {
  const Index positions = std::ssize(head.observed_positions);
  const Index count = std::min(positions, std::max<Index>(1, most / head.group));
  if (count == positions) return head.observed;
  std::vector<std::int32_t> rows;
  for (Index g = 0; g < head.group; ++g) {
    for (Index i = 0; i < count; ++i) rows.push_back(static_cast<std::int32_t>(g * positions + i * positions / count));
  }
  return gathered(head.observed, std::move(rows), backend);
}

class ReferencePass {
 public:
  ReferencePass(const HeadPrompt& head, Buffer<const float> queries, bool columns, Backend& backend)
      : head_(head), backend_(backend) {
    const Index n = head.tokens();
    out_.queries = std::move(queries);
    out_.square_shares.assign(static_cast<std::size_t>(n), 0);
    if (columns) columns_.resize(static_cast<std::size_t>(n * out_.count()));
    for (Index r = 0; r < out_.count(); r += block_rows) run(r, std::min(block_rows, out_.count() - r));
    if (columns) out_.columns = backend.adopt(std::move(columns_), n, out_.count());
  }
  References take() { return std::move(out_); }

 private:
  /// Every query sees all tokens.
  std::vector<std::int32_t> all_tokens(Index rows) const {
    return std::vector(static_cast<std::size_t>(rows), static_cast<std::int32_t>(head_.tokens()));
  }

  kernels::ExactAttention<Buffer> pass(Index begin, Index rows, bool keep_scores) const {
    kernels::ExactAttention<Buffer> op{
        .queries = out_.queries.slice(begin, rows),
        .keys = head_.keys,
        .values = head_.values,
        .first = backend_.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0), rows),
        .last = backend_.adopt(all_tokens(rows), rows),
        .scale = head_.scale,
        .out = backend_.allocate<float>(rows, head_.values.cols()),
        .max = backend_.allocate<float>(rows),
        .log_sum_exp = backend_.allocate<float>(rows)};
    if (keep_scores) op.scores = backend_.allocate<float>(rows, head_.tokens());
    return op;
  }

  void run(Index begin, Index rows) {
    const bool columns = !columns_.empty();
    const auto exact = pass(begin, rows, columns);
    backend_.run(exact);
    std::vector<float> twice = backend_.read(exact.log_sum_exp);
    const std::vector<float> max = backend_.read(exact.max), outputs = backend_.read(exact.out);
    out_.outputs.insert(out_.outputs.end(), outputs.begin(), outputs.end());
    for (std::size_t r = 0; r < max.size(); ++r) {
      out_.max.push_back(max[r]);
      out_.sums.push_back(std::exp(static_cast<double>(twice[r]) - max[r]));
      twice[r] *= 2;
    }
    // Squares of softmax weights are exp(2 logit - 2 log_sum_exp).
    const ScoredRows doubled =
        scored_rows(out_.queries.slice(begin, rows), head_.keys, all_tokens(rows), 2 * head_.scale, backend_);
    const auto squares = backend_.allocate<float>(1, head_.tokens());
    backend_.run(kernels::ColumnSums<Buffer>{
        .scores = doubled.scores, .log_sum_exp = backend_.adopt(std::move(twice), rows), .out = squares});
    const HostView<float> added = backend_.on_host(Buffer<const float>(squares));
    for (std::size_t j = 0; j < added.size(); ++j) out_.square_shares[j] += added[j];
    if (columns) transpose(begin, rows, exact);
  }

  void transpose(Index begin, Index rows, const kernels::ExactAttention<Buffer>& exact) {
    const auto shares = backend_.allocate<float>(rows, head_.tokens());
    backend_.run(kernels::SoftmaxRows<Buffer>{
        .scores = exact.scores, .log_sum_exp = exact.max, .out = shares, .norm = backend_.allocate<float>(rows)});
    const std::vector<float> host = backend_.read(shares);
    for (Index j = 0; j < head_.tokens(); ++j) {
      for (Index r = 0; r < rows; ++r)
        columns_[static_cast<std::size_t>(j * out_.count() + begin + r)] =
            host[static_cast<std::size_t>(r * head_.tokens() + j)];
    }
  }

  const HeadPrompt& head_;
  Backend& backend_;
  References out_;
  std::vector<float> columns_;
};

/// The tokens that form=omp keeps, in the order in which they were added.
std::vector<TokenId> pursue(const References& refs, Index count, Backend& backend) {
  const Index n = refs.columns.rows(), rows = refs.count();
  GrowingFit fit(refs.sums, count);
  std::vector<TokenId> kept;
  std::vector<bool> out(static_cast<std::size_t>(n), false);
  std::vector<double> weights;
  const auto add = [&](TokenId id) {
    fit.add(backend.read(refs.columns.slice(id, 1)));
    kept.push_back(id);
    out[static_cast<std::size_t>(id)] = true;
  };
  const auto refit = [&] {
    weights = fit.weights();
    for (double& w : weights) w = std::clamp(w, omp_bounds.low, omp_bounds.high);
  };
  for (int round = 0;; ++round) {
    while (std::ssize(kept) < count) {
      const auto residual = backend.adopt(fit.residual(weights), 1, rows);
      const std::vector<float> gains = backend.read(inner_products(residual, refs.columns, backend));
      TokenId best = -1;
      for (std::size_t j = 0; j < gains.size(); ++j) {
        if (!out[j] && (best < 0 || gains[j] > gains[static_cast<std::size_t>(best)])) best = static_cast<TokenId>(j);
      }
      if (best < 0) return kept;  // all others were left out
      add(best);
      refit();
    }
    std::vector<TokenId> stays;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (weights[k] >= least_omp_weight) stays.push_back(kept[k]);
    }
    if (round == drops || stays.empty() || stays.size() == kept.size()) return kept;
    fit.clear();
    kept.clear();
    for (const TokenId id : stays) add(id);
    refit();
  }
}

/// Logits of the reference queries for the kept tokens: [R, kept].
std::vector<double> kept_logits(const HeadPrompt& head, const References& refs, const std::vector<TokenId>& ids,
                                Backend& backend) {
  const auto products = inner_products(refs.queries, gathered(head.keys, ids, backend), backend);
  std::vector<double> logits;
  for (const float product : backend.read(products)) logits.push_back(static_cast<double>(product) * head.scale);
  return logits;
}

std::unique_ptr<CompressedCache> fitted_cache(const HeadPrompt& head, const References& refs, Form form, Index budget,
                                              Backend& backend) {
  std::vector<TokenId> ids;
  if (form == Form::basic) {
    const auto scores = backend.adopt(std::vector(refs.square_shares), 1, head.tokens());
    ids = backend.read(best_columns(scores, 0, head.tokens(), budget, backend));
  } else {
    ids = pursue(refs, budget, backend);
    std::ranges::sort(ids);
  }
  const Index kept = std::ssize(ids), rows = refs.count();
  const std::vector<double> logits = kept_logits(head, refs, ids, backend);
  std::vector<double> shares(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    shares[i] = std::exp(logits[i] - refs.max[i / static_cast<std::size_t>(kept)]);
  const bool basic = form == Form::basic;
  const std::vector<double> weights =
      bounded_least_squares(shares, rows, kept, refs.sums, basic ? basic_bounds : omp_bounds, basic ? descents : 0);
  for (Index r = 0; r < rows; ++r) {
    double* const row = shares.data() + r * kept;
    const double* const own = logits.data() + r * kept;
    const double top = *std::max_element(own, own + kept);
    double sum = 0;
    for (Index k = 0; k < kept; ++k) sum += row[k] = weights[static_cast<std::size_t>(k)] * std::exp(own[k] - top);
    for (Index k = 0; k < kept; ++k) row[k] /= sum;
  }
  const auto values = least_squares(shares, rows, kept, refs.outputs, head.values.cols());
  const Buffer<const float> weight = backend.adopt(std::vector<float>(weights.begin(), weights.end()), 1, kept);
  EntryTable table{
      .ids = backend.adopt(std::move(ids), 1, kept),
      .weight_num = weight,
      .weight_den = weight,
      .own_values = backend.adopt(std::vector<float>(values.begin(), values.end()), kept, head.values.cols())};
  return std::make_unique<MergedContext>(head, std::move(table), "weights", backend);
}

MakeCache prepare(const HeadPrompt& head, const AttentionMatchingParams& params, Backend& backend) {
  if (head.tokens() > 0 && (!head.observed.present() || head.observed_positions.empty())) {
    throw Unavailable(
        "attention-matching fits to queries of the context, and there are none; replay a trace that has them "
        "(--queries)");
  }
  const auto references = std::make_shared<std::optional<References>>();
  return [=, &backend](Index budget, std::uint32_t) -> std::unique_ptr<CompressedCache> {
    const Index n = head.tokens();
    if (budget >= n) return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, n)});
    const bool omp = params.form == Form::omp;
    const Buffer<const float> queries = reference_queries(head, params.queries, backend);
    const auto rows = static_cast<double>(queries.rows()), kept = static_cast<double>(budget);
    check_pairs(params.limit, "attention-matching",
                rows * static_cast<double>(n) * (omp ? 1 + kept / static_cast<double>(head.keys.cols()) : 2),
                "lower the budget or attention-matching.queries");
    if (!*references) *references = ReferencePass(head, queries, omp, backend).take();
    return fitted_cache(head, **references, params.form, budget, backend);
  };
}

}  // namespace

MethodInfo attention_matching_method() {
  return with_params<AttentionMatchingParams>(
      {
          .name = "attention-matching",
          .paper = "Fast KV Compaction via Attention Matching, arXiv 2602.16284, section 3",
          .summary = "tokens with weights and values fitted to what the context gives its own queries",
          .notes = "AM-HighestAttnKeys-basic and AM-OMP-basic (form=omp) of the released code, with the queries of the "
                   "context that the trace holds. The headline results recompute the queries with earlier layers "
                   "compacted, generate texts to query, and use budgets per head.",
          .complexity = {.compress = {"O(R n (d + dv) + R B min(R, B)), R reference queries", 1},
                         .memory = {"B (d + dv + 1)"}},
          .kind = Kind::merging,
          .needs = {Part::observed_queries},
          .own_values = true,
          .properties = {.key_shift = Property::no("the fits amplify the rounding of the logits"),
                         .nested_budgets = Property::no("form=omp leaves out tokens whose weight falls"),
                         .weight_sum = WeightSum::free},
      },
      prepare);
}

}  // namespace kvbench::methods
