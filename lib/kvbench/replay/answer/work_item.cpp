// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/work_item.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/answer/budget_search.hpp>
#include <kvbench/replay/answer/configuration_run.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/replay/plan/needs.hpp>
#include <kvbench/replay/records/span_shares.hpp>

namespace kvbench::replay {
namespace {

/// The part of a work item's progress that stands for making its caches; the rest stands for answering queries. Which
/// of the two takes longer depends on the methods.
constexpr double making_part = 0.5;

class WorkItemRun {
 public:
  WorkItemRun(const WorkItemTask& task, std::vector<HeadSlabs> slabs, Backend& backend)
      : task_(task), backend_(backend), prepared_(task.kept != nullptr ? *task.kept : own_prepared_) {
    const WorkItem& item = task.item;
    for (std::size_t h = 0; h < slabs.size(); ++h) {
      heads_.push_back(place_head(task.trace, item.prompt, item.place(h), std::move(slabs[h]), backend));
      prompts_.push_back(heads_.back().prompt);
      if (task.request.calibration && calibrates()) {
        prompts_.back().calibration =
            load_calibration(*task.request.calibration, layer().layer, item.kv_heads[h], backend);
      }
    }
    for (const Head& head : heads_) {
      noise_floors_.emplace_back(head, layer());
      context_mass_.emplace_back(head);
    }
  }

  void run() {
    Groups groups;
    const std::vector<std::size_t> order = order_of_making();
    for (std::size_t i = 0; i < order.size(); ++i) {
      check_stop();
      start(order[i], groups);
      task_.part_done(making_part * static_cast<double>(i + 1) / static_cast<double>(order.size()));
    }
    own_prepared_.reset();
    if (!groups.empty()) answer_all(groups);
    for (auto& [key, group] : groups) group.finish();
    for (const auto& [c, first] : equal_) copy_results(first, c);
    for (const auto& [c, cost] : shared_costs_) check_cost(c, cost);
  }

  OpenCaches open() && {
    OpenCaches opened;
    attempt(0, [&] {
      const LayerChoice choice = choice_of(0);
      const PreparedMethod& method = prepared_for(choice);
      opened.caches = make(0, allowed_budget(0, choice, method), method).caches;
      opened.observes = choice.method.info->observes;
    });
    opened.heads = std::move(heads_);
    return opened;
  }

 private:
  /// The configurations of a method and seed, which are answered together. With `standalone`, and of a plan, each
  /// configuration is a group.
  using Groups = std::map<std::tuple<std::size_t, std::uint32_t, std::size_t>, Together>;

  void check_stop() const {
    if (task_.stop != nullptr && task_.stop->load()) throw Interrupted();
  }
  const trace::LayerInfo& layer() const {
    return task_.trace.prompts[task_.item.prompt.prompt].layers[task_.item.layer];
  }
  bool calibrates() const {
    return std::ranges::any_of(task_.item.methods,
                               [&](std::size_t m) { return task_.request.methods[m].info->calibrates(); });
  }
  bool dense() const { return keeps_whole(task_.request, layer().layer); }
  /// The method and the budget of a configuration here. Throws methods::Infeasible where a plan has none.
  LayerChoice choice_of(std::size_t c) const {
    return choice_at(task_.request, task_.plan.configurations[c], layer().layer, task_.item.kv_heads.front());
  }
  ConfigurationResult& result(std::size_t head, std::size_t c) { return task_.results[head].results[c]; }

  /// Runs `work` for a configuration and returns true. What a method may throw ends the configuration: it becomes its
  /// status, and false is returned. Faults of input files, memory exhaustion, I/O errors and interruption pass through.
  bool attempt(std::size_t c, const std::function<void()>& work) {
    try {
      work();
      return true;
    } catch (const methods::Unavailable& error) {
      end(c, Status::skipped, error.what());
    } catch (const methods::Infeasible& error) {
      end(c, Status::infeasible, error.what());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const Interrupted&) {
      throw;
    } catch (const IoError&) {
      throw;
    } catch (const Error&) {
      throw;
    } catch (const methods::Failed& failure) {
      task_.failure(failure.details());
      end(c, Status::failed, failure.what());
    } catch (const std::exception& error) {
      end(c, Status::failed, error.what());
    }
    return false;
  }

  void end(std::size_t c, Status status, const char* reason) {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      result(h, c).status = status;
      result(h, c).reason = reason;
      result(h, c).dense |= status == Status::skipped && !layer().has_methods();
    }
  }

  bool decodes() const { return task_.item.prompt.appends() && task_.request.decoded == Decoded::method; }

  /// The configurations ordered by method, seed and falling budget: results that a method computes on first use, at the
  /// largest budget, are then reused at the others.
  std::vector<std::size_t> order_of_making() const {
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < task_.plan.configurations.size(); ++c) {
      if (task_.item.runs(task_.plan.configurations[c].method)) order.push_back(c);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t c) {
      const Configuration& key = task_.plan.configurations[c];
      const Index budget =
          budget_tokens(task_.item.prompt, task_.request.budgets[key.budget], task_.request.protect_outside);
      return std::tuple(key.method, key.seed, -budget);
    });
    return order;
  }

  /// The method of the configuration, prepared once for all of its configurations; for each with `standalone`.
  const PreparedMethod& prepared(const MethodChoice& choice) {
    if (prepared_ && same(prepared_->method, choice) && !task_.request.standalone) return *prepared_;
    PreparedMethod& out = prepared_.emplace();
    out.method = choice;
    out.spent = measured(backend_, [&] {
      try {
        check_available(choice, layer(), task_.item.prompt, decodes());
        const methods::MethodInfo& exact = methods::find_method("exact");
        out.make = dense() ? exact.prepare(prompts_, exact.bind({}), backend_)
                           : choice.info->prepare(prompts_, choice.params, backend_);
      } catch (...) {
        out.failure = std::current_exception();
      }
    });
    return out;
  }

  /// The budget of the caches of a configuration: tokens that the method may keep itself, or a level of a quantiser,
  /// from 1. Throws methods::Infeasible where there is none.
  Index allowed_budget(std::size_t c, const LayerChoice& choice, const PreparedMethod& method) {
    const PromptPlan& prompt = task_.item.prompt;
    const auto report = [&](Index tokens) {  // protected tokens included
      for (std::size_t h = 0; h < heads_.size(); ++h) result(h, c).budget_tokens = tokens;
    };
    const bool levels = choice.method.info->kind == methods::Kind::quantisation;
    std::optional<BudgetSearch> search;
    if (levels || choice.budget.cost())
      search.emplace(task_, choice, task_.plan.configurations[c].seed, prompts_, heads_, backend_,
                     options_of(choice.method));
    const Index tokens = levels   ? prompt.base
                         : search ? search->tokens(method)
                                  : budget_tokens(prompt, choice.budget, task_.request.protect_outside);
    report(tokens);
    const Index budget =
        levels ? search->level() : LayerTokens(task_, choice.method, backend_).in_layer(tokens, layer().layer);
    if (!levels) report(budget + prompt.protect_first + prompt.protect_last);
    if (const auto cost = search ? search->shared_cost(budget) : std::nullopt) shared_costs_[c] = *cost;
    return budget;
  }

  std::vector<ConfigurationResult*> results_of(std::size_t c) {
    std::vector<ConfigurationResult*> results;
    for (std::size_t h = 0; h < heads_.size(); ++h) results.push_back(&result(h, c));
    return results;
  }

  /// Ends a configuration whose caches do not cost what those cost by which its budget was found.
  void check_cost(std::size_t c, double expected) {
    if (result(0, c).status != Status::ok) return;
    const double outside = outside_bytes(task_.item.prompt, task_.request.protect_outside);
    const double cost = cost_share(*choice_of(c).budget.cost(), outside, results_of(c));
    if (cost == expected) return;
    end(c, Status::failed,
        fmt::format(
            "its caches cost {:.6g} % of the full cache here and {:.6g} % on another head, layer or seed of the "
            "same shape, by which its budget was found; deny its property `equal_bytes`",
            100 * cost, 100 * expected)
            .c_str());
  }

  struct Made {
    methods::Caches caches;
    Spent spent;
  };
  /// The prepared method of a configuration. Throws as preparing it did.
  const PreparedMethod& prepared_for(const LayerChoice& choice) {
    const PreparedMethod& method = prepared(choice.method);
    if (method.failure) std::rethrow_exception(method.failure);
    return method;
  }
  /// The caches of a configuration at what allowed_budget() returned. Throws as the method does.
  Made make(std::size_t c, Index budget, const PreparedMethod& method) {
    Made made;
    made.spent = method.spent +
                 measured(backend_, [&] { made.caches = method.make(budget, task_.plan.configurations[c].seed); });
    return made;
  }

  /// Whether nothing is computed together with other configurations.
  bool is_alone(const Configuration& key) const {
    return task_.request.standalone || plan_of(task_.request.methods[key.method]) != nullptr;
  }

  /// Whether the configuration has the results of an earlier one, which are then copied: their budgets let the method
  /// keep the same, such as every token.
  bool is_equal(std::size_t c, Index budget) {
    const Configuration& key = task_.plan.configurations[c];
    if (is_alone(key)) return false;
    // Its errors are rounding, which all budgets measure.
    if (task_.request.methods[key.method].info->kind == methods::Kind::exact) return false;
    const auto [first, added] = firsts_.try_emplace({key.method, key.seed, budget}, c);
    if (!added) equal_[c] = first->second;
    return !added;
  }

  void copy_results(std::size_t from, std::size_t to) {
    for (std::size_t h = 0; h < heads_.size(); ++h) result(h, to) = result(h, from);
  }

  void start(std::size_t c, Groups& groups) {
    for (std::size_t h = 0; h < heads_.size(); ++h) result(h, c).dense = dense();
    attempt(c, [&] {
      const LayerChoice choice = choice_of(c);
      const PreparedMethod& method = prepared_for(choice);
      const Index budget = allowed_budget(c, choice, method);
      if (is_equal(c, budget)) return;
      Made made = make(c, budget, method);
      std::vector<ConfigurationResult*> results = results_of(c);
      for (ConfigurationResult* r : results) {
        r->compress_s = made.spent.seconds;
        r->compress_flops = made.spent.flops;
        r->peak_bytes = static_cast<double>(made.spent.peak_bytes);
      }
      const auto attempt_one = [this](std::size_t one, const std::function<void()>& work) {
        return attempt(one, work);
      };
      const Configuration& key = task_.plan.configurations[c];
      Together& group = groups.try_emplace({key.method, key.seed, is_alone(key) ? c : 0}, attempt_one).first->second;
      ConfigurationRun::Options options = options_of(choice.method);
      const bool has_spans = !task_.trace.prompts[task_.item.prompt.prompt].spans.empty();
      if (has_spans && holds_tokens(*choice.method.info)) options.held_of = task_.item.prompt.base;
      group.add(c, std::make_unique<ConfigurationRun>(std::move(made.caches), std::move(options), heads_,
                                                      std::move(results), backend_));
    });
  }

  ConfigurationRun::Options options_of(const MethodChoice& choice) {
    const methods::MethodInfo& info = *choice.info;
    std::span<NoiseFloor> floors;
    // With numbers of 16 bits its answer is another one than that of the exact pass, and is measured as such.
    if (info.kind == methods::Kind::exact && choice.params.text().empty()) floors = noise_floors_;
    return {.decode = decodes(),
            .observes = info.observes && decodes(),
            .recall_sinks = task_.request.recall_sinks,
            .standalone = task_.request.standalone,
            .selects = info.kind == methods::Kind::retrieval,
            .noise_floors = floors,
            .context_mass = context_mass_,
            .keep_raw = task_.options.keep_raw,
            .keep_exact = task_.options.keep_exact,
            .kv_element = task_.request.kv_element,
            .notes = notes_on(choice, task_.request, task_.trace, dense())};
  }

  /// The tokens that the harness keeps exactly.
  std::vector<TokenId> fixed_tokens() const {
    const PromptPlan& prompt = task_.item.prompt;
    std::vector<TokenId> ids;
    const auto add = [&](Index begin, Index end) {
      for (Index t = begin; t < end; ++t) ids.push_back(static_cast<TokenId>(t));
    };
    add(0, prompt.protect_first);
    add(prompt.context - prompt.protect_last, prompt.context);
    if (!decodes()) add(prompt.context, prompt.tokens);
    return ids;
  }

  void answer_all(Groups& groups) {
    const double queries = static_cast<double>(heads_.front().queries_per_head() * std::ssize(groups));
    double answered = 0;
    for_each_block(heads_, fixed_tokens(), backend_, [&](std::span<HeadBlock> blocks) {
      for (std::size_t h = 0; h < heads_.size(); ++h) context_mass_[h].add(blocks[h].exact);
      for (auto& [key, group] : groups) {
        check_stop();
        group.each([&](std::size_t c) {
          for (std::size_t h = 0; h < heads_.size(); ++h) result(h, c).exact_s += blocks[h].exact.seconds;
        });
        group.answer(blocks, backend_);
        answered += static_cast<double>(blocks.front().exact.visible_first.size());
        task_.part_done(making_part + (1 - making_part) * answered / queries);
      }
    });
  }

  const WorkItemTask& task_;
  Backend& backend_;
  std::vector<Head> heads_;
  std::vector<methods::HeadPrompt> prompts_;  ///< of the heads
  std::vector<NoiseFloor> noise_floors_;      ///< of the heads
  std::vector<ContextMass> context_mass_;     ///< of the heads
  std::optional<PreparedMethod> own_prepared_;
  std::optional<PreparedMethod>& prepared_;                                      ///< the last one
  std::map<std::tuple<std::size_t, std::uint32_t, Index>, std::size_t> firsts_;  ///< by method, seed and budget
  std::map<std::size_t, std::size_t> equal_;    ///< configurations with the results of such a first one
  std::map<std::size_t, double> shared_costs_;  ///< by configuration, at its budget (BudgetSearch::shared_cost())
};

}  // namespace

OpenCaches open_caches(const WorkItemTask& task, std::vector<HeadSlabs> slabs, Backend& backend) {
  return WorkItemRun(task, std::move(slabs), backend).open();
}

void run_work_item(const WorkItemTask& task, std::vector<HeadSlabs> slabs, Backend& backend) {
  WorkItemRun(task, std::move(slabs), backend).run();
}

}  // namespace kvbench::replay
