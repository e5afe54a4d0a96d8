// SPDX-License-Identifier: Apache-2.0
// wildcat: a few keys of each bin of tokens stand for all of its keys, with the weights by which they give nearly the
// same exponentials for every query. WildCat: Near-Linear Attention in Theory and Practice, arXiv 2602.10056;
// microsoft/wildcat, wildcat/compresskv.py, compress_kv.py, rp_nystrom.py and
// examples/kvcache/presses/compresskv_press.py. Read: that code in several versions, and the abstract of the paper.
//
// The `sinks` first and `recent` last tokens are kept exactly. Those between are cut into bins of equal size, and what
// is left over joins the recent ones; a budget of B tokens has as many bins as give `rank` tokens each. Within a bin of
// m keys, with k the key minus the mean of all keys of the context, R = max |k| and s the scale of logits:
//   kernel: K(i, j) = exp(s <k_i, k_j> / tau^2), tau^2 = b / (2 W(b / 6.3832)), b = ln m / (s R^2) + 2, W Lambert's
//     function; tau=fixed: tau^2 = 3.94582, of a later version
//   coreset S: `rank` keys by randomly pivoted Cholesky, each drawn in proportion to the diagonal of the residual of K
//   weights W = K_SS^-1 K_S,all. The key of s in S stays, its value becomes that of row s of W V, in the numerator with
//     the weight 1, and its weight in the denominator is the sum of row s of W, which may be negative.
// Answers are clamped, channel by channel, to the least and largest value of all tokens so far; where the denominator
// is not positive, as negative weights can make it, the answer is 0 before that (released: where its share of the sum
// without weights is at most 1e-20). Decoded tokens are kept exactly.
//
// Parameters:
//   rank    tokens of each bin; default 12 (examples/kvcache/benchmark.sh). Where the budget leaves fewer, one bin
//   bins    0 (default): as many as the budget has for `rank`; otherwise this number, which share the budget: 1 is the
//           global coreset of the WildCat module
//   sinks   tokens; default 32 (released)
//   recent  tokens; default 32 (released)
//   tau     lambert (default) | fixed
//   max_pairs of rows compared per head; above it is infeasible
// Complexity: O(n r (d + dv + r)) once for bins of rank r, in fp64, at d = 128 about 2 exact passes of 256 queries;
// O(B (d + dv)) per query.
// Memory: B (d + dv) numbers, a weight for each token of a coreset, two vectors of dv numbers of 16 bits.
// Deviations: the kernel is computed in fp64 instead of fp32; one uniform number draws a key in place of a Gumbel
// variable for each key, which is the same law; keys that are combinations of those chosen are never drawn, where the
// released code divides by what rounding left of them, so that a bin may keep fewer than `rank`. The weights of exact
// tokens, which are 1, are not stored. A budget of all tokens keeps them exactly.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/methods/merging/methods.hpp>
#include <kvbench/methods/merging/nystrom.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct WildcatParams {
  enum class Tau { lambert, fixed };
  Index rank = 12, bins = 0, sinks = 32, recent = 32;
  Tau tau = Tau::lambert;
  PairLimit limit{0x1p31};  ///< a minute or more on one core at d = 128, in fp64
};
void fields(ParamVisitor& visitor, WildcatParams& params) {
  visitor.integer("rank", params.rank, {.min = 1}, "tokens of each bin");
  visitor.integer("bins", params.bins, {.min = 0}, "bins that share the budget; 0: as many as have `rank` tokens each");
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens, kept exactly");
  visitor.integer("recent", params.recent, {.min = 0}, "last tokens of the context, kept exactly");
  visitor.choice("tau", params.tau, {"lambert", "fixed"},
                 "temperature of the kernel: by the norms of the keys, or one");
  fields(visitor, params.limit);
}

/// What of a context a budget keeps: `sinks` first tokens, `bins` of `size` tokens with a coreset of `rank` each, and
/// all tokens behind them.
struct Layout {
  Index sinks = 0, bins = 0, size = 0, rank = 0;

  Index end() const { return sinks + bins * size; }  ///< of the bins
};

Layout layout_of(Index n, Index budget, const WildcatParams& params) {
  const Index middle = n - params.sinks - params.recent, most = budget - params.sinks - params.recent;
  if (most < std::max<Index>(1, params.bins)) {
    throw Infeasible(
        fmt::format("wildcat keeps {} sinks and {} recent tokens exactly, and a budget of {} leaves too few "
                    "for its coresets; raise the budget, or lower wildcat.sinks, recent or bins",
                    params.sinks, params.recent, budget));
  }
  Index bins = params.bins > 0 ? params.bins : std::max<Index>(1, most / params.rank);
  const auto rank = [&] { return (most - middle % bins) / bins; };  // the left over tokens take of the budget, too
  while (params.bins == 0 && bins > 1 && rank() < params.rank) --bins;
  if (rank() < 1)
    throw Infeasible(fmt::format("wildcat has {} tokens for {} bins and the {} left over; lower wildcat.bins", most,
                                 bins, middle % bins));
  return {params.sinks, bins, middle / bins, params.bins > 0 ? rank() : std::min(rank(), params.rank)};
}

/// Least and largest value by channel.
class Extremes {
 public:
  /// Of values [n, dv], n > 0.
  explicit Extremes(std::span<const float> values, Index dv) : low_(values.begin(), values.begin() + dv), high_(low_) {
    extend(values);
  }
  void extend(std::span<const float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      float& low = low_[i % low_.size()];
      float& high = high_[i % low_.size()];
      low = std::min(low, values[i]), high = std::max(high, values[i]);
    }
  }
  bool contains(std::span<const float> row) const {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (row[c] < low_[c] || row[c] > high_[c]) return false;
    }
    return true;
  }
  /// [2, dv]
  Buffer<const float> rows(Backend& backend) const {
    std::vector<float> both = low_;
    both.insert(both.end(), high_.begin(), high_.end());
    return backend.adopt(std::move(both), 2, std::ssize(low_));
  }

 private:
  std::vector<float> low_, high_;
};

/// The tokens of all coresets, with their sums over their bins.
struct Cores {
  std::vector<TokenId> ids;
  std::vector<float> weights, values;  ///< [ids] of the denominator, [ids, dv] of the numerator
};

class Compression {
 public:
  Compression(const HeadPrompt& head, const WildcatParams& params, const Layout& layout, std::uint32_t seed,
              Backend& backend)
      : head_(head),
        params_(params),
        layout_(layout),
        draws_(seed, "wildcat", head),
        keys_(backend.on_host(head.keys)),
        values_(backend.on_host(head.values)),
        mean_(static_cast<std::size_t>(head.keys.cols()), 0) {
    for (std::size_t i = 0; i < keys_.size(); ++i) mean_[i % mean_.size()] += keys_[i];
    for (double& x : mean_) x /= static_cast<double>(head.tokens());
  }

  Cores run() {
    for (Index b = 0; b < layout_.bins; ++b) add_bin(layout_.sinks + b * layout_.size);
    return std::move(out_);
  }

 private:
  /// The keys of a bin, centred and scaled, such that K(i, j) = exp(<k_i, k_j>).
  std::vector<double> scaled_keys(Index begin) const {
    const std::size_t d = mean_.size(), size = static_cast<std::size_t>(layout_.size) * d;
    std::vector<double> keys(size);
    double most = 0, square = 0;
    for (std::size_t i = 0; i < size; ++i) {
      keys[i] = keys_[static_cast<std::size_t>(begin) * d + i] - mean_[i % d];
      square = (i % d == 0 ? 0 : square) + keys[i] * keys[i];
      most = std::max(most, square);
    }
    const double radius = static_cast<double>(head_.scale) * most;
    if (radius == 0) return keys;  // of any temperature
    const bool fixed = params_.tau == WildcatParams::Tau::fixed;
    const double factor =
        std::sqrt(static_cast<double>(head_.scale) / (fixed ? 3.94582 : kernel_temperature(layout_.size, radius)));
    for (double& x : keys) x *= factor;
    return keys;
  }

  void add_bin(Index begin) {
    const auto uniform = [&](Index step) { return draws_.uniform(begin, static_cast<std::uint32_t>(step)); };
    const Coreset core = nystrom_coreset(scaled_keys(begin), head_.keys.cols(), layout_.rank, uniform);
    const auto size = static_cast<std::size_t>(layout_.size), dv = static_cast<std::size_t>(head_.values.cols());
    for (std::size_t s = 0; s < core.members.size(); ++s) {
      double weight = 0;
      std::vector<double> value(dv, 0);
      for (std::size_t j = 0; j < size; ++j) {
        const double w = core.weights[s * size + j];
        const auto row = values_.begin() + static_cast<Index>((static_cast<std::size_t>(begin) + j) * dv);
        weight += w;
        for (std::size_t c = 0; c < dv; ++c) value[c] += w * row[static_cast<Index>(c)];
      }
      out_.ids.push_back(static_cast<TokenId>(begin + core.members[s]));
      out_.weights.push_back(static_cast<float>(weight));
      out_.values.insert(out_.values.end(), value.begin(), value.end());
    }
  }

  const HeadPrompt& head_;
  const WildcatParams& params_;
  const Layout& layout_;
  Draws draws_;
  HostView<float> keys_, values_;
  std::vector<double> mean_;
  Cores out_;
};

class WildcatCache : public HeadCache {
 public:
  WildcatCache(const HeadPrompt& head, const Layout& layout, Cores cores, Backend& backend)
      : HeadCache(head, backend), layout_(layout), context_(head.tokens()), range_(backend.on_host(head.values), dv_) {
    const Index width = std::ssize(cores.ids);
    cores_ = {.ids = backend.adopt(std::move(cores.ids), 1, width),
              .weight_den = backend.adopt(std::move(cores.weights), 1, width),
              .own_values = backend.adopt(std::move(cores.values), width, dv_),
              .range = range_.rows(backend)};
  }

  /// One that widens the range, and all after it that do not.
  Index takes(const TokenBlock& tokens) override {
    const HostView<float> values = backend_.on_host(tokens.values);
    Extremes range = range_;
    range.extend(row(values, 0));
    Index count = 1;
    while (count < tokens.size() && range.contains(row(values, count))) ++count;
    return count;
  }
  void append(const TokenBlock& tokens) override {
    range_.extend(backend_.on_host(tokens.values));
    cores_.range = range_.rows(backend_);
    appended_ += tokens.size();
  }
  EntryTables entries(const QueryBlock&) const override {
    EntryTables tables;
    add_exact(0, layout_.sinks, tables);
    tables.push_back(cores_);
    add_exact(layout_.end(), context_ + appended_, tables);
    return tables;
  }
  Footprint footprint() const override {
    const Index cores = cores_.ids.cols(), exact = layout_.sinks + context_ - layout_.end() + appended_;
    Footprint arrays = kept_footprint(exact + cores, d_, dv_);
    arrays.push_back({.name = "weights", .element = Element::f32, .rows = cores, .cols = 1, .content = Content::meta});
    arrays.push_back(
        {.name = "range of values", .element = Element::f16, .rows = 2, .cols = dv_, .content = Content::meta});
    return arrays;
  }
  Protected protected_tokens() const override {
    return {.sinks = layout_.sinks, .recent = context_ - layout_.end(), .decoded = true};
  }

 private:
  std::span<const float> row(const HostView<float>& values, Index i) const {
    return std::span(values).subspan(static_cast<std::size_t>(i * dv_), static_cast<std::size_t>(dv_));
  }
  void add_exact(Index begin, Index end, EntryTables& tables) const {
    if (begin < end) tables.push_back({.ids = backend_.adopt(token_range(begin, end - begin), 1, end - begin)});
  }

  Layout layout_;
  Index context_;
  Index appended_ = 0;
  Extremes range_;
  EntryTable cores_;
};

MakeCache prepare(const HeadPrompt& head, const WildcatParams& params, Backend& backend) {
  return [head, params, &backend](Index budget, std::uint32_t seed) -> std::unique_ptr<CompressedCache> {
    const Index n = head.tokens();
    if (budget >= n) return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = token_range(0, n)});
    const Layout layout = layout_of(n, budget, params);
    const auto rank = static_cast<double>(layout.rank), d = static_cast<double>(head.keys.cols());
    check_pairs(params.limit, "wildcat", static_cast<double>(layout.bins * layout.size) * rank * (1 + rank / d),
                "raise wildcat.bins");
    Cores cores = Compression(head, params, layout, seed, backend).run();
    const auto finite = [](float x) { return std::isfinite(x); };
    if (!std::ranges::all_of(cores.weights, finite) || !std::ranges::all_of(cores.values, finite))
      throw Infeasible("numbers overflow: sums of weighted values exceed fp32");
    return std::make_unique<WildcatCache>(head, layout, std::move(cores), backend);
  };
}

}  // namespace

MethodInfo wildcat_method() {
  return with_params<WildcatParams>(
      {
          .name = "wildcat",
          .paper = "WildCat, arXiv 2602.10056, CompressKV",
          .summary = "a few keys of each bin stand for all of its keys, with Nyström weights and values",
          .notes = "The released compression of caches, in bins of rank 12; bins=1 is the coreset of the module. "
                   "Released versions differ in the temperature (tau). Weights may be negative: answers are clamped to "
                   "the range of all values, and are 0 before that where the denominator is not positive.",
          .complexity = {.compress = {"O(n r (d + dv + r)), r tokens of each bin", 1},
                         .memory = {"B (d + dv) + B + 2 dv"}},
          .kind = Kind::merging,
          .seeded = true,
          .own_values = true,
          .whole_context = true,
          .properties = {.head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("another number of bins has other coresets"),
                         .equal_bytes = Property::no("equal keys leave a coreset smaller"),
                         .weight_sum = WeightSum::free},
      },
      prepare);
}

}  // namespace kvbench::methods
