// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/work_item.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <tuple>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/answer/together.hpp>
#include <kvbench/replay/measure/spent.hpp>
#include <kvbench/replay/plan/needs.hpp>

namespace kvbench {
namespace {

/// What prepare() returned for a method, or why it could not.
struct PreparedMethod {
  std::size_t method = 0;
  MakeLayerCache make;
  std::exception_ptr failure;
  Spent spent;
};

/// Runs `work`; what a method may throw becomes a status. Memory exhaustion, I/O errors and interruption pass through.
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

class WorkItemRun {
 public:
  WorkItemRun(const trace::Reader& reader, const ReplayPlan& plan, const WorkItem& item, const ReplayRequest& request,
              const RunOptions& options, std::vector<HeadSlabs> slabs, Backend& backend, const std::atomic<bool>* stop,
              std::span<HeadResult> results)
      : reader_(reader),
        plan_(plan),
        item_(item),
        request_(request),
        options_(options),
        backend_(backend),
        stop_(stop),
        results_(results) {
    for (std::size_t h = 0; h < slabs.size(); ++h) {
      heads_.push_back(place_head(reader.info(), item.prompt, item.place(h), std::move(slabs[h]), backend));
      prompts_.push_back(heads_.back().prompt);
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
    for (auto& [key, group] : groups) group.finish(status_guard());
  }

 private:
  /// Configurations that are answered together: those of a method and seed. Standalone ones are alone.
  using Groups = std::map<std::tuple<std::size_t, std::uint32_t, std::size_t>, Together>;

  Together::Guard status_guard() {
    return [this](std::size_t configuration, const std::function<void()>& work) { return guarded(configuration, work); };
  }

  void check_stop() const {
    if (stop_ != nullptr && stop_->load()) throw Interrupted();
  }
  const trace::LayerInfo& layer() const { return reader_.info().prompts[item_.prompt.prompt].layers[item_.layer]; }
  bool dense() const { return layer().layer < request_.dense_layers; }
  const MethodChoice& method_of(std::size_t c) const { return request_.methods[plan_.configurations[c].method]; }
  CellResult& result(std::size_t head, std::size_t c) { return results_[head].cells[c]; }

  template <class F>
  bool guarded(std::size_t c, F work) {
    Status status = Status::ok;
    std::string reason;
    guard(status, reason, work);
    if (status == Status::ok) return true;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      result(h, c).status = status;
      result(h, c).reason = reason;
    }
    return false;
  }

  /// Throws Unavailable where this layer or trace cannot feed the method.
  void check_needs(const MethodInfo& info) const {
    if (item_.prompt.protocol == Protocol::stream && !info.streaming) {
      throw Unavailable(fmt::format("{} compresses a whole context at once; it is not a streaming algorithm", info.name));
    }
    const TokenMap& map = heads_.front().map;
    if (info.whole_context && !map.identity()) {
      throw Unavailable(fmt::format("{} names tokens of the whole context; leave --protect out", info.name));
    }
    if (const auto reason = lacking(info, layer(), map.first, item_.prompt.context)) throw Unavailable(*reason);
    if (info.observes && decodes()) {
      const auto steps = static_cast<Index>(heads_.front().positions.size());
      if (steps != heads_.front().positions.back() + 1 - item_.prompt.context) {
        throw Unavailable(
            "the method observes every decode step, and the trace lacks queries of some; dump with --queries all");
      }
    }
  }

  bool decodes() const { return item_.prompt.appends() && request_.decoded == Decoded::method; }

  /// Configurations method by method and seed by seed, the largest budget first: what a method computes when it is first needed then
  /// serves the others.
  std::vector<std::size_t> order_of_making() const {
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < plan_.configurations.size(); ++c) {
      if (item_.runs(plan_.configurations[c].method)) order.push_back(c);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t c) {
      const Configuration& key = plan_.configurations[c];
      const Index budget = budget_tokens(item_.prompt, request_.budgets[key.budget], request_.protect_outside);
      return std::tuple(key.method, key.seed, -budget);
    });
    return order;
  }

  /// The configuration's method, prepared once for all configurations, or for each where they are standalone.
  const PreparedMethod& prepared(std::size_t c) {
    const std::size_t m = plan_.configurations[c].method;
    if (prepared_ && prepared_->method == m && !request_.standalone) return *prepared_;
    PreparedMethod& out = prepared_.emplace();
    out.method = m;
    const MethodChoice& choice = request_.methods[m];
    out.spent = measured(backend_, [&] {
      try {
        check_needs(*choice.info);
        const MethodInfo& exact = find_method("exact");
        out.make = dense() ? exact.prepare(prompts_, exact.bind({}), backend_)
                           : choice.info->prepare(prompts_, choice.params, backend_);
      } catch (...) {
        out.failure = std::current_exception();
      }
    });
    return out;
  }

  /// Tokens that the method itself may keep.
  Index method_budget(std::size_t c) {
    const MethodChoice& choice = method_of(c);
    const PromptPlan& prompt = item_.prompt;
    Index budget = budget_tokens(prompt, request_.budgets[plan_.configurations[c].budget], request_.protect_outside);
    const bool too_large = budget > prompt.base;
    if (choice.info->plan && !too_large) {
      const auto layers = choice.info->plan(reader_.info().num_layers, prompt.base, budget, choice.params);
      // A plan may give a layer more than there is: the mean is what was asked for, and that fits.
      budget = std::min(layers.at(static_cast<std::size_t>(layer().layer)), prompt.base);
    }
    for (std::size_t h = 0; h < heads_.size(); ++h) result(h, c).budget_tokens = budget;
    const Index own = budget - prompt.protect_first - prompt.protect_last;
    if (too_large) {
      throw Infeasible(fmt::format("the budget of {} tokens is larger than the context of {}", budget, prompt.base));
    }
    if (own < 1) {
      throw Infeasible(fmt::format("the budget of {} tokens does not exceed the {} protected ones", budget, budget - own));
    }
    return own;
  }

  void start(std::size_t c, Groups& groups) {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      result(h, c).dense = dense();
      result(h, c).context_tokens = item_.prompt.base;
    }
    guarded(c, [&] {
      const PreparedMethod& method = prepared(c);
      if (method.failure) std::rethrow_exception(method.failure);
      const Index budget = method_budget(c);
      const Configuration& key = plan_.configurations[c];
      std::unique_ptr<LayerCache> cache;
      const Spent spent = method.spent + measured(backend_, [&] { cache = method.make(budget, key.seed); });
      std::vector<CellResult*> results;
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        CellResult& r = result(h, c);
        r.compress_s = spent.seconds;
        r.compress_flops = spent.flops;
        r.peak_bytes = static_cast<double>(spent.peak_bytes);
        results.push_back(&r);
      }
      groups[{key.method, key.seed, request_.standalone ? c : 0}].add(
          c, std::make_unique<ConfigurationRun>(std::move(cache), options_of(c), heads_, std::move(results)));
    });
  }

  ConfigurationRun::Options options_of(std::size_t c) const {
    const MethodInfo& info = *method_of(c).info;
    return {.decode = decodes(),
            .observes = info.observes && decodes(),
            .recall_sinks = request_.recall_sinks,
            .standalone = request_.standalone,
            .selects = info.kind == Kind::retrieval,
            .keep_raw = options_.keep_raw,
            .kv_element = request_.kv_element};
  }

  /// Tokens that the harness keeps exactly whatever the method does.
  std::vector<TokenId> fixed_tokens() const {
    const PromptPlan& prompt = item_.prompt;
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
      std::vector<HeadBlock> blocks;
      for (const Head& head : heads_) blocks.emplace_back(head, begin, std::min(step, total - begin), fixed, backend_);
      for (auto& [key, group] : groups) {
        check_stop();
        group.each([&](std::size_t c) {
          for (std::size_t h = 0; h < heads_.size(); ++h) result(h, c).exact_s += blocks[h].exact.seconds;
        });
        group.answer(blocks, status_guard(), backend_);
      }
    }
  }

  const trace::Reader& reader_;
  const ReplayPlan& plan_;
  const WorkItem& item_;
  const ReplayRequest& request_;
  const RunOptions& options_;
  Backend& backend_;
  const std::atomic<bool>* stop_;
  std::span<HeadResult> results_;
  std::vector<Head> heads_;
  std::vector<HeadPrompt> prompts_;  ///< of the heads
  std::optional<PreparedMethod> prepared_;
};

}  // namespace

void run_work_item(const trace::Reader& reader, const ReplayPlan& plan, const WorkItem& item, const ReplayRequest& request,
                   const RunOptions& options, std::vector<HeadSlabs> slabs, Backend& backend, const std::atomic<bool>* stop,
                   std::span<HeadResult> results) {
  WorkItemRun(reader, plan, item, request, options, std::move(slabs), backend, stop, results).run();
}

}  // namespace kvbench
