// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/unit.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <tuple>

#include <kvbench/methods/registry.hpp>
#include <kvbench/methods/stages/head_caches.hpp>
#include <kvbench/replay/answer/budget_group.hpp>
#include <kvbench/replay/plan/needs.hpp>

namespace kvbench {
namespace {

/// A cache of a Prepared or a PreparedLayer. Adds to `charge` what it took and what it was spared.
template <class P>
auto make_charged(const P& prepared, Index budget, std::uint32_t seed, Spent& charge, Backend& backend) {
  prepared.take_spared();  // of a budget that could not be made
  decltype(prepared.make(budget, seed)) cache;
  const Spent own = measured(backend, [&] { cache = prepared.make(budget, seed); });
  charge = charge + prepared.take_spared() + own;
  return cache;
}

/// What prepare() left for one method, or why it could not.
struct PreparedMethod {
  std::vector<std::shared_ptr<const Prepared>> heads;  ///< of single heads, or
  std::shared_ptr<const PreparedLayer> layer;
  std::exception_ptr failure;  ///< why there is none of them
  Spent spent;

  /// Charges what the cache would take alone.
  std::unique_ptr<LayerCache> make(Index budget, std::uint32_t seed, Spent& charge, Backend& backend) const {
    if (layer) return make_charged(*layer, budget, seed, charge, backend);
    auto caches = std::make_unique<HeadCaches>();
    for (const auto& head : heads) caches->add(make_charged(*head, budget, seed, charge, backend));
    return caches;
  }
};

/// Runs `work`; what a method may throw becomes a status. Memory exhaustion and interruption pass through.
template <class F>
void guard(Status& status, std::string& reason, F work) {
  try {
    work();
  } catch (const Unavailable& error) {
    status = Status::skipped, reason = error.what();
  } catch (const Infeasible& error) {
    status = Status::infeasible, reason = error.what();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const IoError&) {
    throw;
  } catch (const std::exception& error) {
    status = Status::failed, reason = error.what();
  }
}

class UnitRun {
 public:
  UnitRun(const trace::Reader& reader, const ReplayPlan& plan, const WorkItem& unit, const ReplayRequest& request,
          const RunOptions& options, std::vector<HeadSlabs> slabs, Backend& backend, const std::atomic<bool>* stop,
          std::span<HeadResult> results)
      : reader_(reader),
        plan_(plan),
        unit_(unit),
        request_(request),
        keep_raw_(options.keep_raw),
        backend_(backend),
        stop_(stop),
        results_(results) {
    for (std::size_t h = 0; h < slabs.size(); ++h) {
      heads_.push_back(place_head(reader.info(), unit.prompt, unit.place(h), std::move(slabs[h]), backend));
    }
  }

  void run() {
    Groups groups;
    for (const std::size_t c : order_of_making()) {
      check_stop();
      start(c, groups);
    }
    prepared_.reset();
    if (!groups.empty()) answer_all(groups);
    for (auto& [key, group] : groups) group.finish(cell_guard());
  }

 private:
  using Groups = std::map<std::pair<std::size_t, std::uint32_t>, BudgetGroup>;  ///< by method and seed

  BudgetGroup::Guard cell_guard() {
    return [this](std::size_t cell, const std::function<void()>& work) { return guard_cell(cell, work); };
  }

  void check_stop() const {
    if (stop_ != nullptr && stop_->load()) throw Interrupted();
  }
  const trace::LayerInfo& layer() const { return reader_.info().prompts[unit_.prompt.prompt].layers[unit_.layer]; }
  bool dense() const { return layer().layer < request_.dense_layers; }
  const MethodChoice& method_of(std::size_t cell) const { return request_.methods[plan_.configurations[cell].method]; }
  CellResult& result(std::size_t head, std::size_t cell) { return results_[head].cells[cell]; }

  template <class F>
  bool guard_cell(std::size_t cell, F work) {
    Status status = Status::ok;
    std::string reason;
    guard(status, reason, work);
    if (status == Status::ok) return true;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      result(h, cell).status = status;
      result(h, cell).reason = reason;
    }
    return false;
  }

  /// Throws Unavailable where this layer or trace cannot feed the method.
  void check_needs(const MethodInfo& info) const {
    if (unit_.prompt.protocol == Protocol::stream && !info.streaming) {
      throw Unavailable(fmt::format("{} compresses a whole context at once; it is no streaming algorithm", info.name));
    }
    const TokenMap& map = heads_.front().map;
    if (info.whole_context && !map.identity()) {
      throw Unavailable(fmt::format("{} names tokens of the whole context; leave --protect out", info.name));
    }
    if (const auto reason = lacking(info, layer(), map.first, unit_.prompt.context)) throw Unavailable(*reason);
    if (info.observes && decodes()) {
      const auto steps = static_cast<Index>(heads_.front().positions.size());
      if (steps != heads_.front().positions.back() + 1 - unit_.prompt.context) {
        throw Unavailable(
            "the method observes every decode step, and the trace lacks queries of some; dump with --queries all");
      }
    }
  }

  bool decodes() const { return unit_.prompt.appends() && request_.decoded == Decoded::method; }

  /// The unit's cells as Prepared::make() wants them, method by method.
  std::vector<std::size_t> order_of_making() const {
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < plan_.configurations.size(); ++c) {
      if (unit_.runs(plan_.configurations[c].method)) order.push_back(c);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t c) {
      const Configuration& cell = plan_.configurations[c];
      const Index budget = budget_tokens(unit_.prompt, request_.budgets[cell.budget], request_.protect_outside);
      return std::tuple(cell.method, cell.seed, -budget);
    });
    return order;
  }

  /// Of the cell's method; that of the method before is dropped.
  PreparedMethod& prepared(std::size_t cell) {
    const std::size_t m = plan_.configurations[cell].method;
    if (prepared_ && prepared_of_ == m) return *prepared_;
    prepared_of_ = m;
    PreparedMethod& out = prepared_.emplace();
    const MethodChoice& choice = request_.methods[m];
    out.spent = measured(backend_, [&] {
      try {
        check_needs(*choice.info);
        if (dense()) {
          const MethodInfo& exact = find_method("exact");
          for (const Head& head : heads_) out.heads.push_back(exact.prepare(head.prompt, exact.bind({}), backend_));
        } else if (unit_.layer_methods) {
          std::vector<HeadPrompt> prompts;
          for (const Head& head : heads_) prompts.push_back(head.prompt);
          out.layer = choice.info->prepare_layer(prompts, choice.params, backend_);
        } else {
          out.heads = {choice.info->prepare(heads_.front().prompt, choice.params, backend_)};
        }
      } catch (...) {
        out.failure = std::current_exception();
      }
    });
    return out;
  }

  /// Tokens that the method itself may keep.
  Index method_budget(std::size_t cell) {
    const MethodChoice& choice = method_of(cell);
    const PromptPlan& prompt = unit_.prompt;
    Index budget = budget_tokens(prompt, request_.budgets[plan_.configurations[cell].budget], request_.protect_outside);
    const bool too_large = budget > prompt.base;
    if (choice.info->plan && !too_large) {
      const auto layers = choice.info->plan(reader_.info().num_layers, prompt.base, budget, choice.params);
      // A plan may hand a layer more than there is: the mean is what was asked for, and that fits.
      budget = std::min(layers.at(static_cast<std::size_t>(layer().layer)), prompt.base);
    }
    for (std::size_t h = 0; h < heads_.size(); ++h) result(h, cell).budget_tokens = budget;
    const Index own = budget - prompt.protect_first - prompt.protect_last;
    if (too_large) {
      throw Infeasible(fmt::format("the budget of {} tokens is larger than the context of {}", budget, prompt.base));
    }
    if (own < 1)
      throw Infeasible(fmt::format("the budget of {} tokens does not exceed the {} protected ones", budget, budget - own));
    return own;
  }

  void start(std::size_t c, Groups& groups) {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      result(h, c).dense = dense();
      result(h, c).context_tokens = unit_.prompt.base;
    }
    guard_cell(c, [&] {
      PreparedMethod& method = prepared(c);
      if (method.failure) std::rethrow_exception(method.failure);
      const Index budget = method_budget(c);
      const std::uint32_t seed = plan_.configurations[c].seed;
      Spent charge = method.spent;
      std::unique_ptr<LayerCache> cache = method.make(budget, seed, charge, backend_);
      std::vector<CellResult*> results;
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        CellResult& r = result(h, c);
        r.compress_s = charge.seconds;
        r.compress_flops = charge.flops;
        r.peak_bytes = static_cast<double>(charge.peak_bytes);
        results.push_back(&r);
      }
      const MethodInfo& info = *method_of(c).info;
      const CellRun::Options options{.decode = decodes(),
                                     .observes = info.observes && decodes(),
                                     .recall_sinks = request_.recall_sinks,
                                     .standalone = request_.standalone,
                                     .selects = info.kind == Kind::select,
                                     .keep_raw = keep_raw_,
                                     .kv_element = request_.kv_element};
      groups[{plan_.configurations[c].method, seed}].add(
          c, budget, std::make_unique<CellRun>(std::move(cache), options, heads_, std::move(results)));
    });
  }

  /// Tokens that the harness keeps exactly whatever the method does.
  std::vector<TokenId> fixed_tokens() const {
    const PromptPlan& prompt = unit_.prompt;
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
    const std::vector<TokenId> fixed = fixed_tokens();
    const Index total = heads_.front().queries_per_head();
    const Index step = block_queries(heads_.front(), score_bytes / static_cast<double>(heads_.size()));
    for (Index begin = 0; begin < total; begin += step) {
      std::vector<SharedBlock> blocks;
      for (const Head& head : heads_) blocks.emplace_back(head, begin, std::min(step, total - begin), fixed, backend_);
      for (auto& [key, group] : groups) {
        check_stop();
        group.each_cell([&](std::size_t cell) {
          for (std::size_t h = 0; h < heads_.size(); ++h) result(h, cell).exact_s += blocks[h].exact.seconds;
        });
        group.answer(blocks, cell_guard(), backend_);
      }
    }
  }

  const trace::Reader& reader_;
  const ReplayPlan& plan_;
  const WorkItem& unit_;
  const ReplayRequest& request_;
  const bool keep_raw_;
  Backend& backend_;
  const std::atomic<bool>* stop_;
  std::span<HeadResult> results_;
  std::vector<Head> heads_;
  std::optional<PreparedMethod> prepared_;
  std::size_t prepared_of_ = 0;  ///< method
};

}  // namespace

void run_unit(const trace::Reader& reader, const ReplayPlan& plan, const WorkItem& unit, const ReplayRequest& request,
              const RunOptions& options, std::vector<HeadSlabs> slabs, Backend& backend, const std::atomic<bool>* stop,
              std::span<HeadResult> results) {
  UnitRun(reader, plan, unit, request, options, std::move(slabs), backend, stop, results).run();
}

}  // namespace kvbench
