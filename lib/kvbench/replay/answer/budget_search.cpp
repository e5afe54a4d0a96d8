// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/budget_search.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/stages/per_block.hpp>

namespace kvbench::replay {
namespace {

/// The scores of all heads of the calibration text.
const std::map<std::int64_t, std::vector<float>>& head_scores(const Calibration& text, const MethodChoice& choice,
                                                              Backend& backend) {
  HeadScores& scores = *text.head_scores;
  const std::lock_guard lock(scores.mutex);
  const std::string key =
      fmt::format("{}[{}] {} {}", choice.info->name, choice.params.text(), backend.name(), backend.isa());
  return methods::computed_once(scores.known, key, [&] {
    std::map<std::int64_t, std::vector<float>> layers;
    for (const trace::LayerInfo& layer : text.trace->info().prompts[text.prompt].layers) {
      for (Index h = 0; h < text.trace->info().num_kv_heads; ++h) {
        const auto head = load_calibration(text, layer.layer, h, backend);
        layers[layer.layer].push_back(choice.info->score_of_head(*head, choice.params, backend));
      }
    }
    return layers;
  });
}

}  // namespace

/// The budgets of the layers of the model, by depth, at a budget of `tokens`.
const std::vector<Index>& LayerTokens::divided(Index tokens) const {
  if (planned_ && planned_->first == tokens) return planned_->second;
  const PromptPlan& prompt = task_.item.prompt;
  const trace::TraceInfo& trace = task_.trace;
  methods::ModelContext context{.prompt_group = trace.prompts[prompt.prompt].id, .tokens = prompt.base};
  context.layers.assign(trace.cache_layers.begin(), trace.cache_layers.end());
  for (Index l = 0; trace.cache_layers.empty() && l < trace.num_layers; ++l) context.layers.push_back(l);
  if (choice_.info->score_of_head && task_.request.calibration)
    context.head_scores = head_scores(*task_.request.calibration, choice_, backend_);
  return planned_.emplace(tokens, choice_.info->plan(context, tokens, choice_.params)).second;
}

Index LayerTokens::in_layer(Index tokens, std::int64_t layer) const {
  const PromptPlan& prompt = task_.item.prompt;
  if (tokens > prompt.base) {
    throw methods::Infeasible(
        fmt::format("the budget of {} tokens is larger than the context of {}", tokens, prompt.base));
  }
  // A plan may give a layer more than the context; the mean over the layers is the budget and fits.
  if (choice_.info->divides(choice_.params))
    tokens = std::min(divided(tokens).at(static_cast<std::size_t>(task_.trace.depth_of(layer))), prompt.base);
  const Index fixed = prompt.protect_first + prompt.protect_last;
  if (tokens <= fixed) {
    throw methods::Infeasible(
        fmt::format("the budget of {} tokens does not exceed the {} protected tokens", tokens, fixed));
  }
  return tokens - fixed;
}

BudgetSearch::BudgetSearch(const WorkItemTask& task, const LayerChoice& choice, std::uint32_t seed,
                           std::span<const methods::HeadPrompt> prompts, std::span<const Head> heads, Backend& backend,
                           ConfigurationRun::Options options)
    : task_(task),
      choice_(choice.method),
      budget_(choice.budget),
      seed_(seed),
      layer_(task.trace.prompts[task.item.prompt.prompt].layers[task.item.layer].layer),
      layers_(choice.of_layer ? std::vector{layer_} : task.item.prompt.layers),
      outside_(outside_bytes(task.item.prompt, task.request.protect_outside)),
      prompts_(prompts),
      heads_(heads),
      backend_(backend),
      own_(task, choice.method, backend),
      options_(std::move(options)) {
  if (heads.front().window == 0 || !choice_.info->rounds_windows()) return;
  unlimited_.assign(heads.begin(), heads.end());
  unlimited_views_.assign(prompts.begin(), prompts.end());
  for (Head& head : unlimited_) head.window = 0;
  for (methods::HeadPrompt& prompt : unlimited_views_) prompt.window = 0;
  heads_ = unlimited_, prompts_ = unlimited_views_;
}

void BudgetSearch::check_stop() const {
  if (task_.stop != nullptr && task_.stop->load()) throw Interrupted();
}

/// Whether the cost is that of every work item of the same shape. Which rows a method of retrieval reads depends on the
/// query.
bool BudgetSearch::shares(CostKind cost) const {
  return task_.costs != nullptr && choice_.info->properties.equal_bytes.holds &&
         (cost != CostKind::read || choice_.info->kind != methods::Kind::retrieval);
}

/// All from which a shared cost follows, beside the request and the model.
std::string BudgetSearch::key_of(CostKind cost, Index budget) const {
  const PromptPlan& prompt = task_.item.prompt;
  const methods::HeadPrompt& head = prompts_.front();
  return fmt::format("{}[{}] {} {} {} {} {} {} {} {} observed {} evaluated {}", choice_.info->name,
                     choice_.params.text(), static_cast<int>(cost), budget, heads_.size(), options_.decode,
                     prompt.context, prompt.protect_first, prompt.protect_last, head.window,
                     fmt::join(head.observed_positions, " "), fmt::join(heads_.front().positions, " "));
}

std::optional<double> BudgetSearch::shared_cost(Index budget) const {
  const std::optional<CostKind> cost = budget_.cost();
  return cost && !whole(layer_) && shares(*cost) && unlimited_.empty() ? task_.costs->find(key_of(*cost, budget))
                                                                       : std::nullopt;
}

/// The cost of the caches of this budget, which make() makes where it is not shared. Otherwise a search has caches of
/// its own: the run's would keep what they compute first, and its costs would depend on which work item searched.
double BudgetSearch::cost_of(CostKind cost, Index budget, const std::function<methods::Caches()>& make) const {
  check_stop();
  if (!shares(cost)) return cost_share(cost, make(), options_, outside_, heads_, backend_);
  return task_.costs->at(key_of(cost, budget), [&] {
    if (!make_) make_ = choice_.info->prepare(prompts_, choice_.params, backend_);
    return cost_share(cost, make_(budget, seed_), options_, outside_, heads_, backend_);
  });
}

/// What makes the caches of which costs are the mean.
const methods::MakeCaches& BudgetSearch::maker(const PreparedMethod& method) const {
  if (unlimited_.empty()) return method.make;
  if (!make_) make_ = choice_.info->prepare(prompts_, choice_.params, backend_);
  return make_;
}

/// The mean cost over the layers that are replayed, each at its own part of the budget, computed on the heads of this
/// work item: the caches of methods that divide a budget among layers have the same size in every layer, with all heads
/// together.
double BudgetSearch::cost_at(CostKind cost, Index tokens, const PreparedMethod& method) const {
  std::map<Index, double> layers;  // number of layers by own tokens
  double total = 0;
  for (const std::int64_t layer : layers_) {
    if (whole(layer))
      total += 1;
    else
      layers[own_.in_layer(tokens, layer)] += 1;
  }
  for (const auto& [own, count] : layers)
    total += count * cost_of(cost, own, [&, own = own] { return maker(method)(own, seed_); });
  return total / static_cast<double>(layers_.size());
}

/// The heads as if they were of another layer.
std::vector<methods::HeadPrompt> BudgetSearch::prompts_in_layer(std::int64_t layer) const {
  std::vector<methods::HeadPrompt> prompts(prompts_.begin(), prompts_.end());
  for (methods::HeadPrompt& prompt : prompts) prompt.layer = LayerId(layer), prompt.depth = task_.trace.depth_of(layer);
  return prompts;
}

StoredBytes BudgetSearch::bytes_in_layer(std::int64_t layer, Index level) const {
  const std::vector<methods::HeadPrompt> heads = prompts_in_layer(layer);
  const auto codecs =
      choice_.info->quantiser.layer_codecs(heads, choice_.params, static_cast<std::size_t>(level - 1), seed_, backend_);
  return stored_bytes(codecs.front(), heads.front().keys.cols(), heads.front().values.cols());
}

/// As cost_at() for a level of a quantiser, whose codecs may depend on the number of the layer.
double BudgetSearch::cost_at_level(CostKind cost, Index level) const {
  std::map<StoredBytes, std::pair<std::int64_t, double>> alike;  // a layer, and how many are stored like it
  double total = 0;
  for (const std::int64_t layer : layers_) {
    if (whole(layer)) {
      total += 1;
      continue;
    }
    const StoredBytes bytes = shares(cost) ? StoredBytes{} : bytes_in_layer(layer, level);
    alike.try_emplace(bytes, layer, 0).first->second.second += 1;
  }
  for (const auto& [bytes, layers] : alike) {
    total += layers.second * cost_of(cost, level, [&, layer = layers.first] {
               return choice_.info->prepare(prompts_in_layer(layer), choice_.params, backend_)(level, seed_);
             });
  }
  return total / static_cast<double>(layers_.size());
}

/// Throws Infeasible where the layers that are kept whole cost more than the budget, whatever the others hold.
void BudgetSearch::check_whole_cost(double limit) const {
  const auto count = std::ranges::count_if(layers_, [&](std::int64_t l) { return whole(l); });
  const double cost = static_cast<double>(count) / static_cast<double>(layers_.size());
  if (cost <= limit) return;
  throw methods::Infeasible(
      fmt::format("{} of {} layers are kept whole, which costs {:.4g} % of the full cache; the budget is {:.4g} %",
                  count, layers_.size(), 100 * cost, 100 * limit));
}

/// The budget as a percentage, for advice: "12.5%". Shares are of the tokens that are not protected outside it.
std::string BudgetSearch::percentage() const {
  if (budget_.is_share()) return budget_.text().substr(0, budget_.text().rfind('%') + 1);
  const PromptPlan& prompt = task_.item.prompt;
  const Index base = budget_base(prompt, task_.request.protect_outside);
  const Index tokens = budget_.resolve(base, prompt.token_bytes);
  return fmt::format("{:.3g}%", std::min(100.0, 100.0 * static_cast<double>(tokens) / static_cast<double>(base)));
}

/// The same, or the least share in which the quantiser can keep the cache where that is more.
std::string BudgetSearch::percentage_in_bits() const {
  const std::string same = percentage();
  try {
    const double least = std::ceil(100 * cost_at_level(CostKind::memory, 1));
    return std::stod(same) < least ? fmt::format("{:.0f}%", least) : same;
  } catch (const methods::Unavailable&) {  // the format does not fit these heads at any budget
    return same;
  }
}

Index BudgetSearch::level() const {
  const std::vector<std::string> levels = choice_.info->quantiser.levels(choice_.params);
  if (whole(layer_)) return std::ssize(levels);
  if (!budget_.cost()) {
    throw methods::Infeasible(fmt::format(
        "{} keeps every token in fewer bits, so that a budget in tokens does not apply; use one of memory, such as "
        "--budget {}mem",
        choice_.info->name, percentage_in_bits()));
  }
  check_whole_cost(budget_.share());
  return largest_within(
      budget_.share(), 1, std::ssize(levels), [&](Index level) { return cost_at_level(*budget_.cost(), level); },
      [&](Index level) { return "at " + levels[static_cast<std::size_t>(level - 1)]; });
}

Index BudgetSearch::tokens(const PreparedMethod& method) const {
  const Index tokens = budget_tokens(task_.item.prompt, budget_, task_.request.protect_outside);
  check_whole_cost(budget_.share());
  if (whole(layer_)) return tokens;
  try {
    return largest_within(budget_.share(), tokens, task_.item.prompt.base,
                          [&](Index trial) { return cost_at(*budget_.cost(), trial, method); });
  } catch (const methods::Infeasible& infeasible) {
    if (choice_.info->kind != methods::Kind::retrieval || budget_.cost() != CostKind::memory) throw;
    throw methods::Infeasible(
        fmt::format("{}; it keeps every token: limit its reads with --budget {}read", infeasible.what(), percentage()));
  }
}

}  // namespace kvbench::replay
