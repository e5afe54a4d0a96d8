// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/given_scores.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <kvbench/methods/stages/competition.hpp>
#include <kvbench/methods/stages/score_only.hpp>

namespace kvbench::methods {
namespace {

struct GivenScoresParams {
  enum class Scope { head, layer, model };
  Scope scope = Scope::head;
  Index sinks = 0, recent = 0;
};

void fields(ParamVisitor& visitor, GivenScoresParams& params) {
  visitor.choice("scope", params.scope, {"head", "layer", "model"},
                 "where tokens compete: B of each kv head, H B of each layer, or L H B of the model");
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that are always kept");
  visitor.integer("recent", params.recent, {.min = 0}, "last tokens that are always kept");
}

class ScoreTable {
 public:
  explicit ScoreTable(GivenScores scores) : given_(std::move(scores)) {}

  /// The scores of a head. Throws Unavailable where the file has none, and Error where they are of another shape.
  TokenScores of(const HeadPrompt& head, const GivenScoresParams& params, Backend& backend) const {
    const LayerScores& layer = layer_of(head);
    const Index n = head.tokens(), recent = std::min(params.recent, n);
    const auto begin = layer.values.begin() + head.head.value * layer.tokens;
    return {backend.adopt(std::vector<float>(begin, begin + n), 1, n), std::min(params.sinks, n - recent), recent};
  }

  /// The budgets of the layers of a model whose heads compete for one budget.
  std::vector<Index> plan(const ModelContext& context, Index budget, const GivenScoresParams& params) const {
    const auto& layers = layers_of(context.prompt_group);
    const Index kept = std::min(budget, context.tokens), recent = std::min(params.recent, context.tokens);
    const TokenScores rule{.sinks = std::min(params.sinks, context.tokens - recent), .recent = recent};
    const Protected fixed = protected_within(rule, kept);
    const Index protects = fixed.sinks + fixed.recent, each = kept - protects;
    std::vector<Index> budgets(context.layers.size(), kept);
    if (kept == context.tokens || each == 0) return budgets;
    const auto ranking = ranking_of(context, rule);
    std::vector<double> parts;
    const Index heads = layers.begin()->second.heads;
    for (const Index won : ranking->won(each * heads * static_cast<Index>(ranking->competitors())))
      parts.push_back(static_cast<double>(won) / static_cast<double>(heads));
    std::vector<Index> shares = rounded_shares(parts, *ranking, heads);
    for (Index& share : shares) {
      if (share + protects > 0) continue;
      share = 1;
      --*std::ranges::max_element(shares);
    }
    auto share = shares.begin();
    for (std::size_t l = 0; l < budgets.size(); ++l) {
      if (layers.contains(context.layers[l])) budgets[l] = protects + *share++;
    }
    return budgets;
  }

  const GivenScores& given() const { return given_; }

 private:
  const std::map<std::int64_t, LayerScores>& layers_of(const std::string& prompt) const {
    const auto found = given_.prompts.find(prompt);
    if (found != given_.prompts.end()) return found->second;
    throw Unavailable(
        fmt::format("{} has no scores of prompt '{}'; write them with kvbench.write_scores(), or leave the "
                    "prompt out with --prompts",
                    given_.file, prompt));
  }

  const LayerScores& layer_of(const HeadPrompt& head) const {
    const auto& layers = layers_of(head.prompt_group);
    const auto found = layers.find(head.layer.value);
    if (found == layers.end())
      throw Unavailable(
          fmt::format("{} has no scores of layer {} of prompt '{}'; write those of every layer with "
                      "kvbench.write_scores()",
                      given_.file, head.layer.value, head.prompt_group));
    const LayerScores& layer = found->second;
    if (layer.heads != head.num_kv_heads)
      throw Error(
          "{}: /prompts/{}/{} has scores of {} kv heads, and the layer has {}; write it again with "
          "kvbench.write_scores()",
          given_.file, head.prompt_group, head.layer.value, layer.heads, head.num_kv_heads);
    if (layer.tokens < head.tokens())
      throw Unavailable(
          fmt::format("{} has scores of the first {} tokens of prompt '{}', and the context has {}; write those of "
                      "all its tokens with kvbench.write_scores()",
                      given_.file, layer.tokens, head.prompt_group, head.tokens()));
    return layer;
  }

  /// The layers in one ranking, which is computed once.
  std::shared_ptr<const Competition> ranking_of(const ModelContext& context, const TokenScores& rule) const {
    const std::lock_guard lock(mutex_);
    auto& ranking = rankings_[{context.prompt_group, context.tokens, rule.sinks, rule.recent}];
    if (ranking) return ranking;
    std::vector<std::vector<float>> scores;
    for (const auto& [number, layer] : layers_of(context.prompt_group)) {
      if (!std::ranges::binary_search(context.layers, number)) continue;
      std::vector<float>& own = scores.emplace_back();
      for (Index h = 0; h < layer.heads; ++h) {
        const auto begin = layer.values.begin() + h * layer.tokens;
        own.insert(own.end(), begin + rule.sinks, begin + std::min(context.tokens, layer.tokens) - rule.recent);
      }
    }
    return ranking = std::make_shared<const Competition>(scores);
  }

  GivenScores given_;
  mutable std::mutex mutex_;  ///< plans are made by the threads of all work items
  mutable std::map<std::tuple<std::string, Index, Index, Index>, std::shared_ptr<const Competition>> rankings_;
};

/// The best tokens of all heads.
std::vector<Index> best_of_layer(const Competition& heads, Index each, Index /*protected_tokens*/) {
  return heads.won(each * static_cast<Index>(heads.competitors()));
}

}  // namespace

MethodInfo given_scores_method(const std::string& name, GivenScores scores) {
  using Scope = GivenScoresParams::Scope;
  const auto table = std::make_shared<const ScoreTable>(std::move(scores));
  const auto scope_of = [](const Params& params) { return params.as<GivenScoresParams>().scope; };
  MethodInfo info = with_scores(
      with_schema<GivenScoresParams>(score_only_row(
          {.name = name,
           .paper = "the scores of a file; KVzip, arXiv 2505.23416, and others",
           .summary = "the tokens with the best scores of a file, per kv head, per layer or over the model",
           .notes = "docs/scores.md says how to write the file and what the scopes are.",
           .complexity = {.compress = {"O(n log n)", 1}},
           .granularity = Granularity::layer,
           .whole_context = true,
           .trace_sha256 = table->given().trace_sha256,
           .properties = {.head_permutation = Property::no("the scores are those of numbered heads"),
                          .nested_budgets = Property::no(
                              "scope=model: a layer's rounded budget can fall by a token where the budget grows")},
           .independent_heads = [=](const Params& params) { return scope_of(params) == Scope::head; }})),
      [table](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
        std::vector<TokenScores> all;
        for (const HeadPrompt& head : heads) all.push_back(table->of(head, params.as<GivenScoresParams>(), backend));
        return all;
      });
  info.plan = [table](const ModelContext& context, Index budget, const Params& params) {
    return table->plan(context, budget, params.as<GivenScoresParams>());
  };
  info.planned = [=](const Params& params) { return scope_of(params) == Scope::model; };
  info.prepare = [=, of_heads = info.prepare, scores_of = info.scores](std::span<const HeadPrompt> heads,
                                                                       const Params& params, Backend& backend) {
    if (scope_of(params) == Scope::head) return of_heads(heads, params, backend);
    return compete(name, heads, scores_of(heads, params, backend), best_of_layer, backend);
  };
  return info;
}

}  // namespace kvbench::methods
