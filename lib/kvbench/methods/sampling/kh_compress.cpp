// SPDX-License-Identifier: Apache-2.0
// kh-compress: a context is halved in rounds, each time within buckets of twice the size, and a pair of neighbours
// keeps the token that balances the exponential kernel of those kept and dropped before. Low-rank thinning, arXiv
// 2502.12063, section 3 (KH-Compress, Thinformer); microsoft/thinformer, thinformer/thinformer.py.
//
// Of a context of n tokens every (n / n4)-th of the first ones is taken, n4 the largest power of 4 up to n. Rounds
// 1, ..., log4 n4 - g halve buckets of 4^(g+1), 2 4^(g+1), ... consecutive tokens and leave 2^g sqrt(n4). With
// K(i, j) = exp(s (<k_i, k_j> - max |k|^2)) (<v_i, v_j> + max |v|_inf^2), the kernel of the difference of a pair
// D = K on (phi(first) - phi(second)), and sums S of signs times D over earlier pairs of the bucket, the second token
// of a pair is kept where u sqrt(D_ii) max_{j <= i} sqrt(D_jj) <= S_i, u uniform in (-L, L), L = 1/2 + ln(2 / (p S)), S
// the tokens of the bucket, p = delta / (4^(g+1) (log4 n4 - g) n4); the first pair of a bucket keeps its first token.
// With chance 1/2 all buckets of a round keep the other halves instead.
// A budget of B tokens takes the largest g with 2^g sqrt(n4) <= B.
//
// Parameters:
//   delta   default 0.5 (released code)
//   weight  context (default): each kept token has the weight n / kept in both sums, as decoded tokens beside them have
//           the weight 1 | one: the released attention, which has no other tokens
// Complexity: O(n^1.5 2^g (d + dv)) once, with n = 32768, d = 128 and B = n / 4 about 17 exact passes of 256 queries,
// which are linear in n; O(B (d + dv)) per query. Memory: B (d + dv) numbers, and B weights.
// Deviations: none known but the default weight. A budget of all tokens keeps them exactly.
#include <algorithm>
#include <cmath>

#include <kvbench/methods/sampling/methods.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct KhCompressParams {
  enum class Weight { context, one };
  double delta = 0.5;
  Weight weight = Weight::context;
};
void fields(ParamVisitor& visitor, KhCompressParams& params) {
  visitor.real("delta", params.delta, {.min = 1e-12, .max = 1}, "failure probability of the halving");
  visitor.choice("weight", params.weight, {"context", "one"}, "of kept tokens: n / kept, or 1 as in the released code");
}

/// <a, a>, <b, b> and <a, b> of each pair (a, b) of neighbouring rows.
struct PairProducts {
  std::vector<double> own, cross;  ///< [n], [n / 2]
};
PairProducts pair_products(const Buffer<const float>& rows, Backend& backend) {
  const Index pairs = rows.rows() / 2;
  std::vector<std::int32_t> labels;
  for (Index i = 0; i < 2 * pairs; ++i) labels.push_back(static_cast<std::int32_t>(i / 2));
  const auto means = backend.allocate<float>(pairs, rows.cols());
  backend.run(kernels::MeanRows<Buffer>{.rows = rows,
                                        .labels = backend.adopt(std::move(labels), 2 * pairs),
                                        .out = means,
                                        .mass = backend.allocate<float>(pairs)});
  PairProducts out{squared_norms(rows, backend), {}};
  const std::vector<double> of_means = squared_norms(means, backend);
  for (std::size_t p = 0; p < of_means.size(); ++p)
    out.cross.push_back(2 * of_means[p] - (out.own[2 * p] + out.own[2 * p + 1]) / 2);
  return out;
}

/// The number of halving rounds and the failure probability p.
struct Compression {
  Index log4 = 0, g = 0;
  double chance = 0;

  Index start() const { return Index{1} << (2 * log4); }
  Index rounds() const { return log4 - g; }
};

class KernelHalving {
 public:
  KernelHalving(const HeadPrompt& head, const Compression& plan, std::uint32_t seed, Backend& backend)
      : head_(head), plan_(plan), draws_(seed, "kh-compress", head), backend_(backend) {}

  std::vector<TokenId> run() {
    const Index stride = head_.tokens() / plan_.start();
    std::vector<TokenId> ids;
    for (Index j = 0; j < plan_.start(); ++j) ids.push_back(static_cast<TokenId>(j * stride));
    set_bounds(ids);
    Index bucket = Index{4} << (2 * plan_.g);
    for (Index round = 0; round < plan_.rounds(); ++round, bucket *= 2)
      ids = halved(ids, bucket, static_cast<std::uint32_t>(round));
    return ids;
  }

 private:
  /// The largest |k|^2 and the largest square of a component of a value.
  void set_bounds(const std::vector<TokenId>& ids) {
    for (const double norm : squared_norms(rows_at(head_.keys, ids, backend_), backend_))
      shift_ = std::max(shift_, norm * static_cast<double>(head_.scale));
    const Buffer<const float> values = rows_at(head_.values, ids, backend_);
    const auto extremes = backend_.allocate<float>(1, 2 * values.cols());
    backend_.run(kernels::PageBounds<Buffer>{.rows = values, .page = values.rows(), .out = extremes});
    for (const float x : backend_.read(extremes)) offset_ = std::max(offset_, static_cast<double>(x) * x);
  }

  /// a_i = sqrt(D_ii) max_{j <= i} sqrt(D_jj) of the pairs, the maximum within their bucket.
  std::vector<double> thresholds(const Buffer<const float>& keys, const Buffer<const float>& values,
                                 Index bucket) const {
    const PairProducts k = pair_products(keys, backend_), v = pair_products(values, backend_);
    const auto kernel = [&](double key, double value) {
      return std::exp(static_cast<double>(head_.scale) * key - shift_) * (value + offset_);
    };
    std::vector<double> out;
    double most = 0;
    for (std::size_t p = 0; p < k.cross.size(); ++p) {
      if (p % static_cast<std::size_t>(bucket / 2) == 0) most = 0;
      const double square = kernel(k.own[2 * p], v.own[2 * p]) + kernel(k.own[2 * p + 1], v.own[2 * p + 1]) -
                            2 * kernel(k.cross[p], v.cross[p]);
      const double root = std::sqrt(std::max(0.0, square));
      most = std::max(most, root);
      out.push_back(root * most);
    }
    return out;
  }

  std::vector<TokenId> halved(const std::vector<TokenId>& ids, Index bucket, std::uint32_t round) const {
    const Index n = std::ssize(ids), blocks = n / bucket, pairs = bucket / 2;
    const Buffer<const float> keys = rows_at(head_.keys, ids, backend_), values = rows_at(head_.values, ids, backend_);
    const std::vector<double> a = thresholds(keys, values, bucket);
    const double size = static_cast<double>(bucket), log = 0.5 + std::log(2 / (plan_.chance * size));
    // The walk keeps the first token where its uniform is below 1/2 - step S; with the step of the largest a of a
    // bucket, u a_i > S for a uniform number scaled by a_i / max a.
    std::vector<float> steps;
    std::vector<double> uniforms;
    for (Index b = 0; b < blocks; ++b) {
      const auto begin = a.begin() + b * pairs;
      const double most = *std::max_element(begin, begin + pairs);
      steps.push_back(static_cast<float>(most > 0 ? 1 / (2 * log * most) : 1));
      for (Index p = 0; p < pairs; ++p) {
        const Index row = b * bucket + 2 * p;
        const double u = draws_.uniform(ids[static_cast<std::size_t>(row)], round);
        const double scaled = 0.5 + (u - 0.5) * (most > 0 ? begin[p] / most : 0);
        uniforms.insert(uniforms.end(), 2, scaled);
      }
    }
    std::vector<std::int32_t> starts;
    for (Index b = 0; b <= blocks; ++b) starts.push_back(static_cast<std::int32_t>(b * bucket));
    const std::vector<float> shifts(static_cast<std::size_t>(blocks), static_cast<float>(shift_));
    const auto signs = backend_.allocate<std::int32_t>(n);
    backend_.run(kernels::BalanceWalk<Buffer>{.keys = keys,
                                              .values = values,
                                              .starts = backend_.adopt(std::move(starts), blocks + 1),
                                              .shift = backend_.adopt(std::vector(shifts), blocks),
                                              .step = backend_.adopt(std::move(steps), blocks),
                                              .scale = head_.scale,
                                              .value_offset = static_cast<float>(offset_),
                                              .first_positive = true,
                                              .pairs = true,
                                              .uniforms = backend_.adopt(std::move(uniforms), n),
                                              .signs = signs,
                                              .fails = backend_.allocate<std::int32_t>(blocks)});
    const int kept = draws_.uniform(0, round + 1000) < 0.5 ? 1 : -1;
    const std::vector<std::int32_t> host = backend_.read(signs);
    std::vector<TokenId> out;
    for (std::size_t i = 0; i < host.size(); ++i) {
      if (host[i] == kept) out.push_back(ids[i]);
    }
    return out;
  }

  const HeadPrompt& head_;
  Compression plan_;
  Draws draws_;
  Backend& backend_;
  double shift_ = 0, offset_ = 0;
};

Compression plan_of(Index tokens, Index budget, double delta) {
  Compression plan;
  while (Index{4} << (2 * plan.log4) <= tokens) ++plan.log4;
  const Index root = Index{1} << plan.log4;
  if (budget < root) {
    throw Infeasible(
        fmt::format("kh-compress keeps at least {} of {} tokens, the root of the largest power of 4 among them; raise "
                    "the budget of {}",
                    root, tokens, budget));
  }
  while (plan.g < plan.log4 && root << (plan.g + 1) <= budget) ++plan.g;
  const double rounds = static_cast<double>(std::max<Index>(1, plan.rounds()));
  plan.chance = delta / (static_cast<double>(Index{4} << (2 * plan.g)) * rounds * static_cast<double>(plan.start()));
  return plan;
}

MakeCache prepare(const HeadPrompt& head, const KhCompressParams& params, Backend& backend) {
  return [head, params, &backend](Index budget, std::uint32_t seed) {
    const Index n = head.tokens();
    if (budget >= n) return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, n)});
    KeptTokens kept{.ids = KernelHalving(head, plan_of(n, budget, params.delta), seed, backend).run()};
    if (params.weight == KhCompressParams::Weight::context) {
      const double weight = static_cast<double>(n) / static_cast<double>(kept.ids.size());
      kept.weight.assign(kept.ids.size(), static_cast<float>(weight));
    }
    return std::make_unique<KeptCache>(backend, head, std::move(kept));
  };
}

}  // namespace

MethodInfo kh_compress_method() {
  return with_params<KhCompressParams>(
      {
          .name = "kh-compress",
          .paper = "Low-rank thinning, arXiv 2502.12063, section 3",
          .summary = "tokens halved in growing buckets, each pair by the exponential kernel of those before",
          .notes = "The released attention has the kept tokens alone, with equal weights (weight=one); beside decoded "
                   "tokens each stands for n / kept of the context. Sizes are 2^g times the root of the largest power "
                   "of 4 in the context, so that a budget keeps more than half of its tokens at least where n is such "
                   "a power.",
          .complexity = {.compress = {"O(n^1.5 2^g (d + dv))", 1}, .memory = {"B (d + dv) + B"}},
          .kind = Kind::sampling,
          .seeded = true,
          .properties = {.key_shift = Property::no("the kernel is of inner products of the keys"),
                         .head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("another g has other buckets"),
                         .weight_sum = WeightSum::free},
      },
      prepare);
}

}  // namespace kvbench::methods
