// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/vattention.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/retrieval/exact_logits.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>

namespace kvbench::methods {
namespace {

/// The parts of a budget.
struct Division {
  Index sinks = 0, window = 0, heavy = 0;
  Index samples = 0;  ///< at most so many; less than 2: none
};

Division divide(const VattentionParams& params, Index budget) {
  Division part{.sinks = std::min(params.sinks, budget / 4), .window = std::min(params.window, budget / 4)};
  part.heavy = budget - part.sinks - part.window;
  if (params.base == 0) return part;
  if (params.samples == VattentionParams::Samples::beyond) {
    part.samples = std::numeric_limits<std::int32_t>::max();
    return part;
  }
  const auto heavy = static_cast<Index>(params.heavy * static_cast<double>(part.heavy));
  if (part.heavy - heavy < 2) return part;
  part.samples = std::exchange(part.heavy, heavy) - heavy;
  return part;
}

/// How often the present row has drawn each token; taken tokens are marked.
class Marks {
 public:
  explicit Marks(Index tokens) : row_(static_cast<std::size_t>(tokens), -1), count_(row_.size(), 0) {}

  void next_row() { ++present_; }
  void take(std::int32_t id) { reset(id, -1); }
  bool taken(std::int32_t id) const { return row_[at(id)] == present_ && count_[at(id)] < 0; }
  /// The number of draws of a token that is not taken, this one included.
  std::int32_t draw(std::int32_t id) {
    if (row_[at(id)] != present_) reset(id, 0);
    return ++count_[at(id)];
  }
  std::int32_t drawn(std::int32_t id) const { return count_[at(id)]; }

 private:
  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }
  void reset(std::int32_t id, std::int32_t count) {
    row_[at(id)] = present_;
    count_[at(id)] = count;
  }

  std::int32_t present_ = -1;
  std::vector<std::int32_t> row_, count_;
};

/// The sample of one query of one query head.
class Sample {
 public:
  /// `logits` are those of the query, `exact` the tokens of E; the tokens first, ..., first + size - 1 are drawn.
  /// `row` numbers the draws.
  Sample(const float* logits, std::span<const std::int32_t> exact, Index first, Index size, const Draws& draws,
         Index row)
      : logits_(logits), exact_(exact), first_(first), size_(size), draws_(draws), row_(row) {}

  /// The token of a draw of the first sample (0), or of the second (1).
  std::int32_t token(Index draw, int sample) const {
    const PhiloxBlock words = draws_.block(row_, static_cast<std::uint32_t>(draw));
    const double u = uniform52(words.x[2 * sample], words.x[2 * sample + 1]);
    return static_cast<std::int32_t>(first_ + static_cast<Index>(u * static_cast<double>(size_)));
  }

  /// m, by a first sample of `base` tokens.
  Index needed(Index base, double quantile, double eps, bool once) const {
    std::vector<std::int32_t> drawn;
    for (Index i = 0; i < base; ++i) drawn.push_back(token(i, 0));
    float top = -std::numeric_limits<float>::infinity();
    for (const std::int32_t id : exact_) top = std::max(top, logits_[id]);
    for (const std::int32_t id : drawn) top = std::max(top, logits_[id]);
    const double deviation = std::max(deviation_of(drawn, top), 1e-8);
    if (once) drawn = distinct(drawn);
    const double scale = static_cast<double>(size_) / static_cast<double>(base);
    return vattention_samples(quantile, deviation, sum(exact_, top) + scale * sum(drawn, top), eps, base, size_);
  }

 private:
  /// The drawn tokens once each, in increasing order. There are many: a bit for each token is faster than a sort.
  std::vector<std::int32_t> distinct(const std::vector<std::int32_t>& drawn) const {
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(size_) / 64 + 1, 0);
    for (const std::int32_t id : drawn) {
      const auto place = static_cast<std::size_t>(id - first_);
      bits[place / 64] |= std::uint64_t{1} << place % 64;
    }
    std::vector<std::int32_t> ids;
    for (std::size_t w = 0; w < bits.size(); ++w) {
      for (std::uint64_t left = bits[w]; left != 0; left &= left - 1)
        ids.push_back(static_cast<std::int32_t>(first_ + static_cast<Index>(w) * 64 + std::countr_zero(left)));
    }
    return ids;
  }
  double sum(std::span<const std::int32_t> ids, float top) const {
    double sum = 0;
    for (const std::int32_t id : ids) sum += std::exp(static_cast<double>(logits_[id] - top));
    return sum;
  }
  double deviation_of(std::span<const std::int32_t> ids, float top) const {
    const auto count = static_cast<double>(ids.size());
    std::vector<double> exponentials;
    for (const std::int32_t id : ids) exponentials.push_back(std::exp(static_cast<double>(logits_[id] - top)));
    const double mean = std::accumulate(exponentials.begin(), exponentials.end(), 0.0) / count;
    double squares = 0;
    for (const double x : exponentials) squares += (x - mean) * (x - mean);
    return std::sqrt(squares / (count - 1));
  }

  const float* logits_;
  std::span<const std::int32_t> exact_;
  Index first_, size_;
  const Draws& draws_;
  Index row_;
};

class VattentionCache : public HeadCache {
 public:
  VattentionCache(const HeadPrompt& head, const VattentionParams& params, Index budget, std::uint32_t seed,
                  Backend& backend)
      : HeadCache(head, backend),
        params_(params),
        part_(divide(params, budget)),
        quantile_(normal_quantile(1 - params.delta)),
        draws_(seed, "vattention", head),
        tokens_(head.tokens()),
        budget_(budget) {}

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { tokens_ += tokens.size(); }

  EntryTables entries(const QueryBlock& queries) const override {
    require_exact_logits(queries, "vattention");
    if (tokens_ == 0 || queries.size() == 0) return {};
    return {table_of(choose(queries))};
  }

  Footprint footprint() const override {
    const bool beyond = params_.samples == VattentionParams::Samples::beyond;
    const Index chosen = group_ * (beyond ? tokens_ : std::min(budget_, tokens_));
    Footprint arrays = retrieved_footprint(tokens_, d_, dv_);
    arrays.front().extra = static_cast<double>(group_ * (tokens_ > budget_ ? first_sample(beside_ends(tokens_)) : 0));
    arrays.push_back(chosen_tokens(chosen));
    arrays.push_back({.name = "weights",
                      .element = Element::f32,
                      .rows = chosen,
                      .cols = 1,
                      .read = Read::with_entry,
                      .content = Content::meta});
    return arrays;
  }

  TokenRange retrievable() const override { return {.count = tokens_}; }

  std::vector<Note> notes() const override {
    if (cut_ == 0) return {};
    return {{"queries of query heads whose samples the budget cut, so that eps and delta do not hold", cut_}};
  }

 private:
  struct Chosen {
    std::vector<std::int32_t> ids;
    std::vector<float> weights;  ///< of the last of the ids; those before have weight 1
  };

  std::vector<Chosen> choose(const QueryBlock& queries) const {
    const Index m = queries.size(), rows = group_ * m;
    std::vector<Index> ends;
    for (const std::int32_t last : backend_.read(queries.last)) ends.push_back(std::min<Index>(last, tokens_));
    const std::vector<std::int32_t> heavy = heavy_tokens(queries.scores, ends);
    const HostView<float> logits = backend_.on_host(queries.scores);
    Marks marks(tokens_);
    std::vector<Chosen> chosen;
    for (Index r = 0; r < rows; ++r) {
      const Index end = ends[static_cast<std::size_t>(r % m)];
      Chosen& row = chosen.emplace_back();
      row.ids.reserve(static_cast<std::size_t>(std::min(end, budget_)));
      const auto take = [&](Index first, Index last) {
        for (Index j = first; j < last; ++j) row.ids.push_back(static_cast<std::int32_t>(j));
      };
      if (end <= budget_) {
        take(0, end);
        continue;
      }
      take(0, part_.sinks);
      row.ids.insert(row.ids.end(), heavy.begin() + r * part_.heavy, heavy.begin() + (r + 1) * part_.heavy);
      take(end - part_.window, end);
      if (part_.samples < 2) continue;
      const Index number = queries.positions[static_cast<std::size_t>(r % m)] * group_ + r / m;
      const float* const own = logits.data() + r * queries.scores.cols();
      const Index size = beside_ends(end);
      add_samples(row, Sample(own, row.ids, part_.sinks, size, draws_, number), size, marks);
    }
    return chosen;
  }

  /// The k tokens between first and recent ones with the largest logits: [G*m, k].
  std::vector<std::int32_t> heavy_tokens(const Buffer<const float>& scores, const std::vector<Index>& ends) const {
    if (part_.heavy == 0) return {};
    const Index rows = scores.rows();
    std::vector<std::int32_t> first(static_cast<std::size_t>(rows), static_cast<std::int32_t>(part_.sinks)), last;
    for (Index r = 0; r < rows; ++r) {
      const Index end = ends[static_cast<std::size_t>(r) % ends.size()] - part_.window;
      last.push_back(static_cast<std::int32_t>(std::max(part_.sinks, end)));
    }
    const auto ids = backend_.allocate<std::int32_t>(rows, part_.heavy);
    backend_.run(kernels::TopK<Buffer>{.scores = scores,
                                       .first = backend_.adopt(std::move(first), rows),
                                       .last = backend_.adopt(std::move(last), rows),
                                       .ids = ids});
    return backend_.read(ids);
  }

  /// Of the first `end` tokens those between first and recent ones, which are sampled.
  Index beside_ends(Index end) const { return end - part_.window - part_.sinks; }
  /// Tokens of the first sample of `size` ones, of which a query reads the keys.
  Index first_sample(Index size) const {
    const auto share = static_cast<Index>(params_.base * static_cast<double>(size));
    return std::min({std::max<Index>(2, share), part_.samples, size});
  }

  void add_samples(Chosen& row, const Sample& sample, Index size, Marks& marks) const {
    const bool once = params_.repeats == VattentionParams::Repeats::once;
    const Index base = first_sample(size);
    const Index wanted = base < 2 ? base : sample.needed(base, quantile_, params_.eps, once);
    const Index count = std::min(wanted, part_.samples);
    if (count < wanted) ++cut_;
    marks.next_row();
    for (const std::int32_t id : row.ids) marks.take(id);
    const std::size_t exact = row.ids.size();
    for (Index i = 0; i < count; ++i) {
      const std::int32_t id = sample.token(i, 1);
      if (!marks.taken(id) && marks.draw(id) == 1) row.ids.push_back(id);
    }
    const double weight = static_cast<double>(size) / static_cast<double>(count);
    for (std::size_t s = exact; s < row.ids.size(); ++s)
      row.weights.push_back(static_cast<float>(weight * (once ? 1 : marks.drawn(row.ids[s]))));
  }

  EntryTable table_of(const std::vector<Chosen>& chosen) const {
    std::size_t width = 0;
    for (const Chosen& row : chosen) width = std::max(width, row.ids.size());
    std::vector<std::int32_t> ids(chosen.size() * width, -1);
    std::vector<float> weights(ids.size(), 1);
    for (std::size_t r = 0; r < chosen.size(); ++r) {
      const Chosen& row = chosen[r];
      std::ranges::copy(row.ids, ids.begin() + static_cast<std::ptrdiff_t>(r * width));
      const std::size_t exact = row.ids.size() - row.weights.size();
      std::ranges::copy(row.weights, weights.begin() + static_cast<std::ptrdiff_t>(r * width + exact));
    }
    const Index rows = std::ssize(chosen), slots = static_cast<Index>(width);
    const Buffer<const float> weight = backend_.adopt(std::move(weights), rows, slots);
    return {.per_head = true,
            .per_query = true,
            .ids = backend_.adopt(std::move(ids), rows, slots),
            .weight_num = weight,
            .weight_den = weight};
  }

  VattentionParams params_;
  Division part_;
  double quantile_;
  Draws draws_;
  Index tokens_, budget_;
  mutable double cut_ = 0;
};

MakeCache prepare(const HeadPrompt& head, const VattentionParams& params, Backend& backend) {
  return [head, params, &backend](Index budget, std::uint32_t seed) {
    return std::make_unique<VattentionCache>(head, params, budget, seed, backend);
  };
}

}  // namespace

Index vattention_samples(double quantile, double deviation, double denominator, double eps, Index base, Index size) {
  const double ratio = quantile * deviation * static_cast<double>(size) / std::max(eps * denominator, 1e-8);
  const auto wanted = static_cast<Index>(std::clamp(ratio * ratio, 1.0, static_cast<double>(size)));
  return std::clamp(wanted, base, size);
}

void fields(ParamVisitor& visitor, VattentionParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that answer every query, at most a quarter of B");
  visitor.integer("window", params.window, {.min = 0}, "last tokens that answer every query, at most a quarter of B");
  visitor.real("heavy", params.heavy, {.min = 0, .max = 1}, "share of the rest of B for the largest logits");
  visitor.real("base", params.base, {.min = 0, .max = 1}, "tokens of the first sample, as a share; 0: no samples");
  visitor.real("eps", params.eps, {.min = 1e-6, .max = 1}, "relative error of the denominator");
  visitor.real("delta", params.delta, {.min = 1e-12, .max = 0.5}, "probability of a larger error");
  visitor.choice("samples", params.samples, {"within", "beyond"}, "samples within the budget, or in addition to it");
  visitor.choice("repeats", params.repeats, {"once", "each"}, "how often a token counts that is drawn several times");
}

MethodInfo vattention_method() {
  return with_params<VattentionParams>(
      {
          .name = "vattention",
          .paper = "vAttention, arXiv 2510.05688, sections 3 and 4",
          .summary = "first, recent and top tokens, and a weighted sample of the others whose size bounds the error of "
                     "the denominator",
          .notes = "Top-k by exact logits, as in the released configuration vattention_oracle: it reads every key, so "
                   "compare its error, not its bytes. The paper's density follows from the data (samples=beyond); "
                   "within a budget the row says how many queries it cut. The released code counts a token once that "
                   "is drawn twice (repeats=once), draws top tokens again, and takes sigma of all tokens between "
                   "first and recent ones.",
          .complexity = {.compress = {"O(1)"},
                         .query = {"O(n + B (d + dv)), on the logits of the exact pass", 1},
                         .memory = {"n (d + dv) + 2 G B", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .streaming = true,
          .seeded = true,
          .properties = {.key_shift = Property::no("rounding of the logits may change the number of samples"),
                         .head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("the number of samples depends on those drawn first"),
                         .weight_sum = WeightSum::free},
          .draws =
              [](const Params& params) {
                const auto& own = params.as<VattentionParams>();
                return own.base > 0 && own.heavy < 1;
              },
      },
      prepare);
}

}  // namespace kvbench::methods
