// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/magicpig.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <kvbench/kernels/normal.hpp>
#include <kvbench/methods/retrieval/exact_logits.hpp>
#include <kvbench/methods/retrieval/hash_tables.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

constexpr Index block_tokens = 1024;
constexpr double least_chance = 1e-4;  // added to u in the released code

/// The context of a head, hashed with the projections of a seed.
struct Hashed {
  Buffer<const float> projections;  ///< [K L, d]
  Buffer<const float> mean;         ///< [1, d]
  std::vector<float> norms;         ///< [n] of the centred keys
  HashTables tables;
};

Buffer<const float> projections_of(const HeadPrompt& head, const MagicpigParams& params, std::uint32_t seed,
                                   Backend& backend) {
  const Draws draws(seed, "magicpig", head);
  const Index rows = params.bits * params.tables, d = head.keys.cols();
  std::vector<float> gaussian;
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < d; ++c) {
      gaussian.push_back(static_cast<float>(standard_normal(draws.block(r, static_cast<std::uint32_t>(c)))));
    }
  }
  return backend.adopt(std::move(gaussian), rows, d);
}

/// The mean of the keys outside first and last tokens; of all keys where there are no others.
Buffer<const float> mean_key(const HeadPrompt& head, const MagicpigParams& params, Backend& backend) {
  const Index n = head.tokens();
  const bool others = n > params.sinks + params.window;
  const Index first = others ? params.sinks : 0, count = others ? n - params.sinks - params.window : n;
  return mean_of_rows(head.keys.slice(first, count), backend);
}

Hashed hash(const HeadPrompt& head, const MagicpigParams& params, std::uint32_t seed, Backend& backend) {
  const Index n = head.tokens();
  const auto projections = projections_of(head, params, seed, backend), mean = mean_key(head, params, backend);
  // <k - mean, g> > 0 where <k, g> > <mean, g>.
  const std::vector<float> thresholds = backend.read(inner_products(mean, projections, backend));
  std::vector<std::uint16_t> codes;
  for (Index j = 0; j < n; j += block_tokens) {
    const auto products = inner_products(head.keys.slice(j, std::min(block_tokens, n - j)), projections, backend);
    const HostView<float> host = backend.on_host(Buffer<const float>(products));
    const auto part = codes_of({host.data(), host.size()}, thresholds, static_cast<int>(params.bits));
    codes.insert(codes.end(), part.begin(), part.end());
  }
  const auto distances = backend.allocate<float>(n, 1);
  backend.run(kernels::SquaredDistances<Buffer>{.points = head.keys, .centres = mean, .out = distances});
  std::vector<float> norms = backend.read(distances);
  for (float& norm : norms) norm = std::sqrt(norm);
  return {projections, mean, std::move(norms), HashTables(codes, params.tables, static_cast<int>(params.bits))};
}

class MagicpigCache : public HeadCache {
 public:
  MagicpigCache(const HeadPrompt& head, std::shared_ptr<const Hashed> hashed, const MagicpigParams& params,
                Index budget, Backend& backend)
      : HeadCache(head, backend),
        hashed_(std::move(hashed)),
        params_(params),
        context_(head.tokens()),
        scale_(head.scale) {
    sinks_ = std::min({params.sinks, budget, context_});
    window_ = std::min({params.window, (budget - sinks_) / 2, context_ - sinks_});
    room_ = std::max<Index>(0, std::min(budget, context_) - sinks_ - window_);
  }

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { appended_ += tokens.size(); }

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables;
    add_resident(0, sinks_, backend_, tables);
    if (offloaded() > 0 && room_ > 0 && queries.size() > 0) tables.push_back(found(queries));
    add_resident(context_ - window_, window_ + appended_, backend_, tables);
    return tables;
  }

  Footprint footprint() const override {
    const Index kept = sinks_ + window_ + appended_, chosen = group_ * std::min(room_, offloaded());
    const auto meta = [](const char* name, Element element, Index rows, Index cols, Read read) {
      return FootprintArray{
          .name = name, .element = element, .rows = rows, .cols = cols, .read = read, .content = Content::meta};
    };
    const auto of_tables = [&](const char* name, Index rows, Index cols, double read) {
      FootprintArray array = meta(name, Element::i32, rows, cols, Read::with_entry);
      array.share = 0, array.extra = queries_ > 0 ? read / queries_ : 0;
      return array;
    };
    Footprint arrays = retrieved_footprint(offloaded(), d_, dv_, "hashed ");
    arrays.insert(arrays.end(),
                  {
                      {.name = "first and last keys", .rows = kept, .cols = d_},
                      {.name = "first and last values", .rows = kept, .cols = dv_, .content = Content::values},
                      of_tables("bounds of buckets", params_.tables << params_.bits, 2, buckets_),
                      of_tables("tokens by code", offloaded() * params_.tables, 1, entries_),
                      meta("norms of keys", Element::f32, offloaded(), 1, Read::with_entry),
                      meta("mean key", Element::kv, 1, d_, Read::every_query),
                      chosen_tokens(chosen),
                      meta("weights", Element::f32, chosen, 1, Read::with_entry),
                  });
    return arrays;
  }

  Protected protected_tokens() const override { return {.sinks = sinks_, .recent = window_, .decoded = true}; }
  TokenRange retrievable() const override { return {.first = sinks_, .count = offloaded()}; }

 private:
  Index offloaded() const { return context_ - sinks_ - window_; }

  EntryTable found(const QueryBlock& queries) const {
    require_exact_logits(queries, "magicpig");
    const Index rows = queries.queries.rows();
    const std::vector<float> zeros(static_cast<std::size_t>(params_.bits * params_.tables), 0);
    const auto codes = codes_of(backend_.read(inner_products(queries.queries, hashed_->projections, backend_)), zeros,
                                static_cast<int>(params_.bits));
    std::vector<HashTables::Found> found;
    queries_ += static_cast<double>(queries.size());
    Index width = 1;
    for (Index r = 0; r < rows; ++r) {
      const std::span own(codes.data() + r * params_.tables, static_cast<std::size_t>(params_.tables));
      found.push_back(hashed_->tables.find(own, sinks_, context_ - window_, room_));
      buckets_ += static_cast<double>(found.back().asked), entries_ += static_cast<double>(found.back().read);
      width = std::max<Index>(width, std::ssize(found.back().tokens));
    }
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows * width), -1);
    for (Index r = 0; r < rows; ++r)
      std::ranges::copy(found[static_cast<std::size_t>(r)].tokens, ids.begin() + r * width);
    const Buffer<const float> weight = backend_.adopt(weights(queries, found, width), rows, width);
    return {.per_head = true,
            .per_query = true,
            .ids = backend_.adopt(std::move(ids), rows, width),
            .weight_num = weight,
            .weight_den = weight};
  }

  std::vector<float> weights(const QueryBlock& queries, const std::vector<HashTables::Found>& found,
                             Index width) const {
    const Index rows = queries.queries.rows();
    const HostView<float> scores = backend_.on_host(queries.scores);
    const std::vector<float> shift = backend_.read(inner_products(queries.queries, hashed_->mean, backend_));
    const std::vector<double> norms = squared_norms(queries.queries, backend_);
    std::vector<float> out(static_cast<std::size_t>(rows * width), 1);
    for (Index r = 0; r < rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      const float* const logits = scores.data() + r * queries.scores.cols();
      float* const weight = out.data() + r * width;
      for (std::size_t k = 0; k < found[row].tokens.size(); ++k) {
        const auto id = static_cast<std::size_t>(found[row].tokens[k]);
        const double product = static_cast<double>(logits[id] / scale_ - shift[row]);
        const double size = std::sqrt(norms[row]) * static_cast<double>(hashed_->norms[id]);
        const double angle = std::acos(size > 0 ? std::clamp(product / size, -1.0, 1.0) : 0.0);
        weight[k] = static_cast<float>(1 / (found_twice(angle, params_.bits, found[row].tables) + least_chance));
      }
    }
    return out;
  }

  std::shared_ptr<const Hashed> hashed_;
  MagicpigParams params_;
  Index context_;
  float scale_;
  Index sinks_ = 0, window_ = 0, room_ = 0;
  Index appended_ = 0;
  // What the data decide: of all queries so far, and over their query heads, the buckets read and the tokens in them.
  mutable double queries_ = 0, buckets_ = 0, entries_ = 0;
};

MakeCache prepare(const HeadPrompt& head, const MagicpigParams& params, Backend& backend) {
  // Budgets share the tables of a seed; those of another seed are dropped.
  const auto hashed = std::make_shared<std::map<std::uint32_t, std::shared_ptr<const Hashed>>>();
  return [=, &backend](Index budget, std::uint32_t seed) {
    if (!hashed->contains(seed)) hashed->clear();
    const auto compute = [&] { return std::make_shared<const Hashed>(hash(head, params, seed, backend)); };
    return std::make_unique<MagicpigCache>(head, computed_once(*hashed, seed, compute), params, budget, backend);
  };
}

}  // namespace

double found_twice(double angle, Index bits, Index tables) {
  const double agree = std::pow(1 - angle / std::numbers::pi, static_cast<double>(bits)), differ = 1 - agree;
  const auto l = static_cast<double>(tables);
  return 1 - std::pow(differ, l - 1) * (l * agree + differ);
}

void fields(ParamVisitor& visitor, MagicpigParams& params) {
  visitor.integer("bits", params.bits, {.min = 1, .max = 16}, "K: bits of a code");
  visitor.integer("tables", params.tables, {.min = 2, .max = 4096}, "L: tables, each with a code of every token");
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that answer every query and are not hashed");
  visitor.integer("window", params.window, {.min = 0}, "last tokens that answer every query and are not hashed");
}

MethodInfo magicpig_method() {
  return with_params<MagicpigParams>(
      {
          .name = "magicpig",
          .paper = "MagicPIG, arXiv 2410.16179, sections 3 and 4",
          .summary = "tokens that share two hash codes with the query, weighted by the inverse of their chance to",
          .notes = "The released code has no budget; here each query asks as many of its tables as find no more tokens "
                   "than the budget allows. Its layers 0, 16, 32 and 48 are whole: --dense-layers 1 keeps the first. "
                   "The tables take more memory than the cache of small heads; they lie in the memory of the host.",
          .complexity = {.compress = {"O(n K L d)", 1},
                         .query = {"O(K L d + E + B (d + dv)), E tokens in the buckets asked"},
                         .memory = {"n (d + dv + L) + 2^(K+1) L", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .seeded = true,
          .properties = {.full_budget_exact = Property::no("tokens that share fewer than two codes never answer"),
                         .head_permutation = Property::no("draws are keyed by the head"),
                         .weight_sum = WeightSum::free},
      },
      prepare);
}

}  // namespace kvbench::methods
