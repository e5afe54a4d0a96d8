// SPDX-License-Identifier: Apache-2.0
#include <support/fakes.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::testing {
namespace {

using Ids = std::vector<TokenId>;

/// A method whose caches are `Cache(head, budget, backend)`.
template <class Cache>
methods::MethodInfo fake(methods::MethodInfo info) {
  info.paper = "none";
  info.summary = "a method for tests";
  methods::MakeCache (*prepare)(const methods::HeadPrompt&, const methods::NoParams&, Backend&) =
      [](const methods::HeadPrompt& head, const methods::NoParams&, Backend& backend) -> methods::MakeCache {
    return [head, &backend](Index budget, std::uint32_t) { return std::make_unique<Cache>(head, budget, backend); };
  };
  return methods::with_params<methods::NoParams>(std::move(info), prepare);
}

/// Tokens of all heads by falling attention mass.
std::vector<std::tuple<float, std::size_t, TokenId>> rank_of_layer(std::span<const methods::HeadPrompt> heads,
                                                                   Backend& backend) {
  std::vector<std::tuple<float, std::size_t, TokenId>> ranking;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const std::vector<float> sums = backend.read(heads[h].column_sums);
    const Index n = heads[h].tokens();
    for (Index j = 0; j < n; ++j) {
      float mass = 0;
      for (Index g = 0; g < heads[h].group; ++g) mass += sums[static_cast<std::size_t>(g * n + j)];
      ranking.push_back({-mass, h, static_cast<TokenId>(j)});
    }
  }
  std::ranges::sort(ranking);
  return ranking;
}

methods::MakeCaches shared_layer(std::span<const methods::HeadPrompt> layer, const methods::NoParams&,
                                 Backend& backend) {
  for (const methods::HeadPrompt& head : layer) {
    if (!head.column_sums.present())
      throw methods::Unavailable("fake-shared-layer needs the column sums of every head");
  }
  const std::vector<methods::HeadPrompt> heads(layer.begin(), layer.end());
  return [heads, ranking = rank_of_layer(layer, backend), &backend](Index budget, std::uint32_t) {
    std::vector<Ids> kept(heads.size());
    const std::size_t total = std::min(ranking.size(), static_cast<std::size_t>(budget) * heads.size());
    for (std::size_t i = 0; i < total; ++i) kept[std::get<1>(ranking[i])].push_back(std::get<2>(ranking[i]));
    methods::Caches caches;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      std::ranges::sort(kept[h]);
      caches.push_back(
          std::make_unique<methods::KeptCache>(backend, heads[h], methods::KeptTokens{.ids = std::move(kept[h])}));
    }
    return caches;
  };
}

class SpreadValues : public methods::CompressedCache {
 public:
  SpreadValues(const methods::HeadPrompt& head, Index budget, Backend& backend)
      : backend_(backend), d_(head.keys.cols()), dv_(head.values.cols()), budget_(budget) {
    take(head.values);
  }
  void append(const methods::TokenBlock& tokens) override { take(tokens.values); }
  methods::EntryTables entries(const methods::QueryBlock&) const override {
    const Index first = std::max<Index>(0, tokens_ - budget_);
    return {{.ids = backend_.adopt(methods::token_range(first, tokens_ - first), 1, tokens_ - first),
             .own_values =
                 backend_.adopt(std::vector<float>(values_.begin() + first * dv_, values_.begin() + tokens_ * dv_),
                                tokens_ - first, dv_)}};
  }
  methods::Footprint footprint() const override { return methods::kept_footprint(std::min(tokens_, budget_), d_, dv_); }

 private:
  void take(const Buffer<const float>& values) {
    const std::vector<float> rows = backend_.read(values);
    values_.insert(values_.end(), rows.begin(), rows.end());
    for (Index i = 0; i < values.rows(); ++i) {
      const Index leaving = tokens_++ - budget_;
      for (Index c = leaving * dv_; leaving >= 0 && c < (leaving + 1) * dv_; ++c) {
        for (const Index next : {1, 2}) {
          if (leaving + next < tokens_)
            values_[static_cast<std::size_t>(c + next * dv_)] += values_[static_cast<std::size_t>(c)] / 2;
        }
      }
    }
  }

  Backend& backend_;
  Index d_, dv_, budget_, tokens_ = 0;
  std::vector<float> values_;  ///< of all tokens; those in the window include merged shares
};

class MergePairs : public methods::KeptCache {
 public:
  MergePairs(const methods::HeadPrompt& head, Index, Backend& backend)
      : methods::KeptCache(backend, head, {}), n_(head.tokens()) {
    const Index groups = (n_ + 1) / 2;
    merged_.ids = backend.adopt(evens(), 1, groups);
    std::vector<float> degree(static_cast<std::size_t>(groups), 2);
    if (n_ % 2 != 0) degree.back() = 1;
    merged_.weight_num = backend.adopt(degree, 1, groups);
    merged_.weight_den = merged_.weight_num;
    merged_.own_keys = means(head.keys, backend);
    merged_.own_values = means(head.values, backend);
  }
  methods::EntryTables entries(const methods::QueryBlock& queries) const override {
    methods::EntryTables tables = methods::KeptCache::entries(queries);
    tables.front() = merged_;
    return tables;
  }
  methods::Footprint footprint() const override {
    methods::Footprint arrays = methods::KeptCache::footprint();
    for (methods::FootprintArray& array : arrays) array.rows += merged_.ids.cols();
    arrays.push_back({.name = "degrees",
                      .element = methods::Element::i32,
                      .rows = merged_.ids.cols(),
                      .cols = 1,
                      .content = methods::Content::meta});
    return arrays;
  }

 private:
  Ids evens() const {
    Ids ids;
    for (Index j = 0; j < n_; j += 2) ids.push_back(static_cast<TokenId>(j));
    return ids;
  }
  Buffer<float> means(const Buffer<const float>& matrix, Backend& backend) const {
    const std::vector<float> rows = backend.read(matrix);
    const Index cols = matrix.cols();
    std::vector<float> out;
    for (Index j = 0; j < n_; j += 2) {
      const Index partner = std::min(j + 1, n_ - 1);
      for (Index c = 0; c < cols; ++c) {
        out.push_back(
            (rows[static_cast<std::size_t>(j * cols + c)] + rows[static_cast<std::size_t>(partner * cols + c)]) / 2);
      }
    }
    return backend.adopt(std::move(out), (n_ + 1) / 2, cols);
  }

  Index n_;
  methods::EntryTable merged_;
};

class TwoSets : public methods::KeptCache {
 public:
  TwoSets(const methods::HeadPrompt& head, Index, Backend& backend)
      : methods::KeptCache(backend, head, {}), n_(head.tokens()), backend_(backend) {}
  methods::EntryTables entries(const methods::QueryBlock& queries) const override {
    methods::EntryTables tables = methods::KeptCache::entries(queries);
    std::vector<float> num, den;
    for (Index j = 0; j < n_; ++j) {
      num.push_back(j % 2 == 0 ? 2.0f : 0.0f);
      den.push_back(j % 2 == 0 ? 0.0f : 2.0f);
    }
    tables.front() = {.ids = backend_.adopt(methods::token_range(0, n_), 1, n_),
                      .weight_num = backend_.adopt(std::move(num), 1, n_),
                      .weight_den = backend_.adopt(std::move(den), 1, n_)};
    tables.push_back({.ids = backend_.adopt(Ids{0}, 1, 1), .weight_num = backend_.adopt(std::vector<float>{0}, 1, 1)});
    return tables;
  }
  methods::Footprint footprint() const override {
    methods::Footprint arrays = methods::KeptCache::footprint();
    for (methods::FootprintArray& array : arrays) array.rows += n_;
    arrays.push_back(
        {.name = "weights", .element = methods::Element::f32, .rows = 2, .cols = 1, .content = methods::Content::meta});
    return arrays;
  }

 private:
  Index n_;
  Backend& backend_;
};

class Observer : public methods::CompressedCache {
 public:
  Observer(const methods::HeadPrompt& head, Index budget, Backend& backend)
      : backend_(backend), d_(head.keys.cols()), dv_(head.values.cols()), budget_(budget), next_(head.tokens()) {
    for (Index j = std::max<Index>(0, next_ - budget); j < next_; ++j) mass_[static_cast<TokenId>(j)] = 0;
  }
  void append(const methods::TokenBlock&) override { mass_[static_cast<TokenId>(next_++)] = 0; }
  methods::EntryTables entries(const methods::QueryBlock&) const override {
    Ids ids;
    for (const auto& [id, mass] : mass_) ids.push_back(id);
    const Index width = std::ssize(ids);
    return {{.ids = backend_.adopt(std::move(ids), 1, width)}};
  }
  void observe(const methods::QueryBlock&, const methods::EntryTables& entries,
               std::span<const Buffer<const float>> weights) override {
    const Ids ids = backend_.read(entries[0].ids);
    const std::vector<float> shares = backend_.read(weights[0]);
    for (std::size_t i = 0; i < shares.size(); ++i) mass_.at(ids[i % ids.size()]) += shares[i];
    if (std::ssize(mass_) <= budget_) return;
    mass_.erase(std::ranges::min_element(mass_, {}, [](const auto& kept) { return kept.second; }));
  }
  methods::Footprint footprint() const override {
    const Index kept = std::ssize(mass_);
    methods::Footprint arrays = methods::kept_footprint(kept, d_, dv_);
    arrays.push_back({.name = "mass",
                      .element = methods::Element::f32,
                      .rows = kept,
                      .cols = 1,
                      .read = methods::Read::never,
                      .content = methods::Content::meta});
    return arrays;
  }

 private:
  Backend& backend_;
  Index d_, dv_, budget_, next_;
  std::map<TokenId, float> mass_;
};

class Striped : public methods::CompressedCache {
 public:
  Striped(const methods::HeadPrompt& head, Index, Backend& backend)
      : backend_(backend), group_(head.group), d_(head.keys.cols()), dv_(head.values.cols()), tokens_(head.tokens()) {}
  Index takes(const methods::TokenBlock& tokens) override { return tokens.size(); }
  void append(const methods::TokenBlock& tokens) override { tokens_ += tokens.size(); }
  methods::EntryTables entries(const methods::QueryBlock& queries) const override {
    Ids ids;
    for (Index g = 0; g < group_; ++g) {
      for (const std::int32_t position : queries.positions) {
        for (Index j = 0; j < tokens_; ++j) {
          ids.push_back(j == 0 || j % 3 == (position + g) % 3 ? static_cast<TokenId>(j) : -1);
        }
      }
    }
    return {
        {.per_head = true, .per_query = true, .ids = backend_.adopt(std::move(ids), group_ * queries.size(), tokens_)}};
  }
  methods::Footprint footprint() const override {
    methods::Footprint arrays = methods::kept_footprint(tokens_, d_, dv_);
    for (methods::FootprintArray& array : arrays)
      array.tier = methods::Tier::slow, array.read = methods::Read::with_entry;
    return arrays;
  }

 private:
  Backend& backend_;
  Index group_, d_, dv_, tokens_;
};

class LastTokens : public methods::KeptCache {
 public:
  LastTokens(const methods::HeadPrompt& head, Index budget, Backend& backend)
      : methods::KeptCache(backend, head,
                           {.ids = methods::token_range(head.tokens() - std::min(budget, head.tokens()),
                                                        std::min(budget, head.tokens()))}) {}
};

}  // namespace

methods::MethodInfo fake_shared_layer() {
  methods::MethodInfo info;
  info.name = "fake-shared-layer", info.paper = "none", info.summary = "a method for tests";
  info.granularity = methods::Granularity::layer;
  info.needs = {methods::Part::column_sums};
  return methods::with_params<methods::NoParams>(std::move(info), shared_layer);
}
methods::MethodInfo fake_spread_values() {
  return fake<SpreadValues>({.name = "fake-spread-values", .kind = methods::Kind::merging, .streaming = true});
}
methods::MethodInfo fake_merge_pairs() {
  return fake<MergePairs>({.name = "fake-merge-pairs",
                           .kind = methods::Kind::merging,
                           .properties = {.weight_sum = methods::WeightSum::context}});
}
methods::MethodInfo fake_two_sets() {
  return fake<TwoSets>({.name = "fake-two-sets",
                        .kind = methods::Kind::sampling,
                        .properties = {.weight_sum = methods::WeightSum::free}});
}
methods::MethodInfo fake_observer() { return fake<Observer>({.name = "fake-observer", .observes = true}); }
methods::MethodInfo fake_striped() {
  return fake<Striped>(
      {.name = "fake-striped", .kind = methods::Kind::retrieval, .granularity = methods::Granularity::query_head});
}
methods::MethodInfo fake_planned() {
  methods::MethodInfo info = fake<LastTokens>({.name = "fake-planned", .granularity = methods::Granularity::model});
  info.plan = [](const methods::ModelContext& context, Index budget, const methods::Params&) {
    const Index num_layers = std::ssize(context.layers);
    std::vector<Index> budgets;
    for (Index l = 0; l < num_layers; ++l)
      budgets.push_back(std::max<Index>(1, 2 * budget * (l + 1) / (num_layers + 1)));
    return budgets;
  };
  return info;
}

}  // namespace kvbench::testing
