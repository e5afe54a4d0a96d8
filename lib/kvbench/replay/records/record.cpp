// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/record.hpp>

#include <algorithm>
#include <map>

#include <kvbench/core/parallel_for.hpp>
#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/replay/records/figures.hpp>

namespace kvbench::replay {
namespace {

class Summarizer {
 public:
  Summarizer(const ReplayResults& results, Grain grain) : results_(results), grain_(grain) {
    for (const Configuration& one : results.configurations) ++of_method_[one.method];
  }

  std::vector<Record> run(std::size_t threads) {
    Heads all;
    std::vector<Heads> prompts;  // the heads of a prompt are adjacent
    for (const HeadResult& head : results_.heads) {
      if (all.empty() || all.back()->place.prompt != head.place.prompt) prompts.emplace_back();
      prompts.back().push_back(&head);
      all.push_back(&head);
    }
    if (prompts.size() > 1) add_prompt(all, std::nullopt);
    for (const Heads& heads : prompts) add_prompt(heads, heads.front()->place.prompt);
    parallel_for(records_.size(), threads, [&](std::size_t r, std::size_t) {
      summarize(summarised_[r].samples, summarised_[r].seeds, results_.prompts, records_[r]);
    });
    return std::move(records_);
  }

 private:
  using Heads = std::vector<const HeadResult*>;

  void add_prompt(const Heads& heads, std::optional<std::size_t> prompt) {
    std::vector<std::int64_t> layers;
    for (const HeadResult* head : heads) {
      if (std::ranges::find(layers, head->layer) == layers.end()) layers.push_back(head->layer);
    }
    order_ = {prompt ? static_cast<Index>(*prompt) + 1 : 0};
    add_group(heads, prompt, std::nullopt);
    if (grain_ == Grain::trace) return;
    for (const std::int64_t layer : layers) {
      Heads of_layer;
      std::ranges::copy_if(heads, std::back_inserter(of_layer), [&](const HeadResult* h) { return h->layer == layer; });
      ++order_[1];
      add_group(of_layer, prompt, layer);
      if (grain_ >= Grain::head && prompt) add_heads(of_layer, *prompt, layer);
    }
  }

  Record identity(std::size_t first_configuration, std::optional<std::size_t> prompt,
                  std::optional<std::int64_t> layer) {
    const Configuration& key = results_.configurations[first_configuration];
    const ReplayFrame::Method& method = results_.methods[key.method];
    order_[5] = static_cast<Index>(key.method);
    order_[6] = static_cast<Index>(key.budget);
    Record r{};
    r.trace = results_.trace;
    r.sha256 = results_.sha256.substr(0, 12);
    r.model = results_.model;
    r.rope_layout = results_.rope_layout;
    r.model_layers = results_.model_layers;
    r.prompt = prompt ? results_.prompts[*prompt].id : "all";
    r.prompt_name = prompt ? results_.prompts[*prompt].name : "";
    r.layer = layer;
    r.protocol = results_.prompts[prompt.value_or(results_.heads.front().place.prompt)].protocol;
    r.device = results_.device;
    r.isa = results_.isa;
    r.method = method.name;
    r.params = method.params;
    r.budget = results_.budgets[key.budget];
    r.seeded = method.seeded;
    r.alone = results_.standalone || of_method_.at(key.method) == 1;
    r.order = order_;
    return r;
  }

  void add(Record record, std::vector<Sample> samples, std::size_t seeds) {
    records_.push_back(std::move(record));
    summarised_.push_back({std::move(samples), seeds});
  }

  /// One row per (method, budget) over these heads and all seeds. Configurations of one method and budget are adjacent
  /// in the plan.
  void add_group(const Heads& heads, std::optional<std::size_t> prompt, std::optional<std::int64_t> layer) {
    for (std::size_t c = 0; c < results_.configurations.size();) {
      std::size_t end = c;
      while (end < results_.configurations.size() &&
             results_.configurations[end].method == results_.configurations[c].method &&
             results_.configurations[end].budget == results_.configurations[c].budget) {
        ++end;
      }
      std::vector<Sample> samples;
      for (const HeadResult* head : heads) {
        const auto m = static_cast<Index>(head->positions.size());
        for (std::size_t s = c; s < end; ++s)
          samples.push_back({head, &head->results[s], s - c, 0, results_.group, 0, m});
      }
      add(identity(c, prompt, layer), std::move(samples), end - c);
      c = end;
    }
  }

  /// One row per query head and seed, and one per query with Grain::query.
  void add_heads(const Heads& heads, std::size_t prompt, std::int64_t layer) {
    order_[2] = 1;
    for (const HeadResult* head : heads) {
      const auto m = static_cast<Index>(head->positions.size());
      for (Index g = 0; g < results_.group; ++g) {
        order_[4] = g;
        for (std::size_t c = 0; c < results_.configurations.size(); ++c) {
          Record record = identity(c, prompt, layer);
          record.kv_head = head->place.kv_head;
          record.query_head = head->place.kv_head * results_.group + g;
          if (record.seeded) record.seed = results_.configurations[c].seed;
          add(record, {{head, &head->results[c], 0, g, 1, 0, m}}, 1);
          for (Index i = 0; grain_ == Grain::query && i < m; ++i) {
            record.query = head->positions[static_cast<std::size_t>(i)];
            add(record, {{head, &head->results[c], 0, g, 1, i, 1}}, 1);
          }
        }
      }
      ++order_[3];
    }
    order_[2] = order_[3] = order_[4] = 0;
  }

  const ReplayResults& results_;
  Grain grain_;
  std::map<std::size_t, std::size_t> of_method_;  // number of configurations
  std::array<Index, 7> order_{};                  // of the next row, except for its method and budget
  struct Summarised {
    std::vector<Sample> samples;
    std::size_t seeds;
  };
  std::vector<Record> records_;
  std::vector<Summarised> summarised_;  ///< of the records
};

}  // namespace

const TestedSums& Record::tested_of(Metric metric) const {
  static const TestedSums none;
  const auto found = tested.find(metric);
  return found == tested.end() ? none : found->second;
}

const RankingFigure& Record::figure() const { return figure_of(ranked_by); }
double Record::ranked_mean() const { return figure().mean(*this); }
std::string_view Record::outside() const { return figure().outside(*this); }

bool Record::is_part_of_plan() const {
  return methods::is_plan(method) && !layer && std::ssize(replayed_layers) != model_layers;
}

std::vector<Record> summarize(const ReplayResults& results, Grain grain, std::size_t threads) {
  return Summarizer(results, grain).run(threads);
}

void put_in_order(std::vector<Record>& records) { std::ranges::stable_sort(records, {}, &Record::order); }

}  // namespace kvbench::replay
