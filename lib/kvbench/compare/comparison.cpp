// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/comparison.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/compare/group_comparer.hpp>
#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>

namespace kvbench::compare {
namespace {

class Comparer {
 public:
  explicit Comparer(const ComparisonRequest& request)
      : request_(request), catalogue_(request.files), groups_(groups_of(catalogue_.places(), request.span)) {
    if (request.a) a_ = catalogue_.find(*request.a, "`a`");
    if (request.b) b_ = catalogue_.find(*request.b, "`b`");
    if (request.a && request.b) {
      for (const Side& a : a_) {
        for (const Side& b : b_) {
          if (together(a, b)) pairs_.emplace_back(a, b);
        }
      }
      if (pairs_.empty()) {
        throw Error("`a` and `b` have no budget in common, or are the same; add @BUDGET to both, such as {}@{} for `a`",
                    a_.front().label(), a_.front().configuration.budget);
      }
    } else {
      for (const Side& one : a_) with_others(one, true);
      for (const Side& one : b_) with_others(one, false);
    }
  }

  std::vector<Comparison> run() {
    const int flips = enough_flips(most_hypotheses());
    for (const ComparisonGroup& group : groups_) {
      const GroupComparer comparer(catalogue_, group, request_.metric, flips);
      if (request_.a || request_.b)
        compare_pairs(comparer);
      else
        compare_with_best(comparer);
    }
    if (rows_.empty()) throw Error("nothing could be compared: {}", why_empty());
    refuse_other_settings();
    decide();
    return std::move(rows_);
  }

 private:
  /// Throws Error where no pair has values in common because evaluations differ in a setting.
  void refuse_other_settings() const {
    const auto skipped = [](const Comparison& row) { return row.outcome == Outcome::skipped; };
    if (!std::ranges::all_of(rows_, skipped)) return;
    const std::string difference = difference_of(groups_);
    if (!difference.empty())
      throw Error("nothing could be compared: the evaluations differ in {}; evaluate all with the same", difference);
  }

  std::size_t most_hypotheses() const {
    const std::size_t candidates = catalogue_.sides().size();
    const std::size_t per_group = request_.a || request_.b ? pairs_.size() : candidates * candidates / 2;
    return per_group * groups_.size();
  }

  /// Whether two sides are compared: at equal budgets, or where the names state the budgets.
  bool together(const Side& a, const Side& b) const {
    if (a == b) return false;
    return a.configuration.budget == b.configuration.budget || request_.b->budget ||
           (request_.a->budget && b_.size() == 1);
  }

  void with_others(const Side& one, bool first) {
    for (const Side& other : catalogue_.sides()) {
      const bool same = label_of(other.configuration) == label_of(one.configuration);
      if (same || other.configuration.budget != one.configuration.budget) continue;
      if (first)
        pairs_.emplace_back(one, other);
      else
        pairs_.emplace_back(other, one);
    }
  }

  /// Why there is no pair of configurations with results.
  std::string why_empty() const {
    if (!pairs_.empty() || several_at_a_budget()) {
      return fmt::format(
          "no configuration has {} everywhere in a group; are the results those of a shard (name all), or of an "
          "unfinished sweep?{}",
          request_.metric.name,
          is_prediction(request_.metric) ? " It takes all kv heads and, but by layer, all layers" : "");
    }
    if (!request_.a && !request_.b) {
      return "at no budget are there two methods other than the references exact and oracle-topk; run more methods, or "
             "give `a` and `b`";
    }
    const Side& one = (a_.empty() ? b_ : a_).front();
    return fmt::format(
        "{} is the only configuration at its budget, {}; run others at this budget, or give `a` and `b` with @BUDGET",
        one.label(), one.configuration.budget);
  }

  /// Whether two sides that are no references have a budget in common.
  bool several_at_a_budget() const {
    std::vector<Budget> budgets;
    for (const Side& side : catalogue_.sides()) {
      if (is_reference(side.configuration.method)) continue;
      if (std::ranges::find(budgets, side.configuration.budget) != budgets.end()) return true;
      budgets.push_back(side.configuration.budget);
    }
    return false;
  }

  static bool tested(const Comparison& row) {
    return row.outcome != Outcome::skipped && row.outcome != Outcome::untested;
  }

  /// Tests a group and adds its rows. Returns whether it was tested over places.
  bool add(const GroupComparer& comparer, std::vector<GroupComparer::Prepared> group) {
    std::vector<Comparison> rows = comparer.test(std::move(group));
    family_ += static_cast<std::size_t>(std::ranges::count_if(rows, tested));
    const bool over_places = std::ranges::any_of(rows, &Comparison::decided_over_places);
    std::ranges::move(rows, std::back_inserter(rows_));
    return over_places;
  }

  void compare_pairs(const GroupComparer& comparer) {
    std::optional<Side> last_a, last_b;
    GroupValues in_a, in_b;
    std::vector<GroupComparer::Prepared> group;
    for (const auto& [a, b] : pairs_) {
      if (!(last_a == a)) in_a = comparer.read(a), last_a = a;
      if (!(last_b == b)) in_b = comparer.read(b), last_b = b;
      if (found(in_a) || found(in_b)) group.push_back(comparer.prepare(a, in_a, b, in_b));
    }
    add(comparer, std::move(group));
  }

  /// A side that may be the best.
  struct Candidate {
    Side side;
    evidence::Values values;
    std::size_t layers = 0;              ///< of its places
    std::pair<Index, std::size_t> size;  ///< most layers that it compressed of any document, and places that are ok
  };

  std::vector<Candidate> candidates(const GroupComparer& comparer, const Budget& budget) const {
    std::vector<Candidate> all;
    for (const Side& side : catalogue_.sides()) {
      if (side.configuration.budget != budget || is_reference(side.configuration.method)) continue;
      const GroupValues of = comparer.read(side);
      Candidate one{.side = side, .size = {}};
      double sum = 0, count = 0;
      for (const SideValues& values : of) {
        one.size.second += values.found && values.status == replay::Status::ok;
        one.size.first = std::max(one.size.first, values.compressed_layers);
        for (const auto& [seed, row] : values.seeds) {
          for (const double value : row) {
            if (!std::isnan(value)) sum += value, count += 1;
          }
        }
      }
      const PlaceSums places = comparer.sums_of(of);
      one.values.mean = sum / count, one.values.places = places.cells(), one.layers = places.layers();
      all.push_back(std::move(one));
    }
    return all;
  }

  /// Compares each candidate with the best among those with the most layers and places, because means over fewer are
  /// not comparable.
  void compare_with_best(const GroupComparer& comparer) {
    std::vector<Budget> budgets;
    for (const Side& side : catalogue_.sides()) {
      if (std::ranges::find(budgets, side.configuration.budget) == budgets.end())
        budgets.push_back(side.configuration.budget);
    }
    for (const Budget& budget : budgets) {
      const std::vector<Candidate> all = candidates(comparer, budget);
      std::vector<const Candidate*> largest;
      std::vector<const evidence::Values*> values;
      std::pair<Index, std::size_t> most;
      for (const Candidate& one : all) {
        if (!std::isnan(one.values.mean)) most = std::max(most, one.size);
      }
      for (const Candidate& one : all) {
        if (one.size < most || std::isnan(one.values.mean)) continue;
        largest.push_back(&one), values.push_back(&one.values);
      }
      if (largest.empty()) continue;
      const auto sample = comparer.sample_of(largest.front()->layers);
      const evidence::Best best = evidence::best_of(values, sample, comparer.scale());
      compare_all(comparer, all, *largest[best.index], best.over_places);
    }
  }

  void compare_all(const GroupComparer& comparer, const std::vector<Candidate>& all, const Candidate& best,
                   bool over_places) {
    const GroupValues in_b = comparer.read(best.side);
    const std::size_t before = family_;
    std::vector<GroupComparer::Prepared> group;
    for (const Candidate& one : all) {
      if (&one == &best) continue;
      const GroupValues in_a = comparer.read(one.side);
      if (!found(in_a)) continue;
      group.push_back(comparer.prepare(one.side, in_a, best.side, in_b));
      if (!over_places) group.back().pair.sample.reset();
    }
    if (add(comparer, std::move(group))) return;  // then Holm counts the comparisons, as in mark_best()
    const std::size_t count = family_ - before;   // tested against the best, so that there are count + 1 candidates
    family_ = before + count * (count + 1) / 2;
  }

  /// Explains a row whose p-value is the smallest that its blocks allow but not significant after Holm.
  static void explain_holm(Comparison& row) {
    if (row.decided_over_places() || row.test.p_value > row.test.p_least) return;
    if (!row.reason.empty()) row.reason += "; ";
    row.reason += fmt::format(
        "{} {}s give no smaller p-value, and Holm over {} hypotheses requires one: compare fewer configurations at a "
        "time ({}",
        row.test.blocks, row.unit(), row.family,
        row.eval.empty() ? "--a, --b, --by), or replay more queries" : "--a, --b), or evaluate more documents");
  }

  void decide() {
    std::vector<double> p_values;
    for (const Comparison& row : rows_) p_values.push_back(tested(row) ? row.p_value : NAN);
    const std::vector<evidence::Adjusted> adjusted = evidence::adjust(p_values, family_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Comparison& row = rows_[i];
      row.family = family_;
      row.p_adjusted = adjusted[i].p;
      if (!tested(row)) continue;
      row.set_level(adjusted[i].level);
      if (row.p_adjusted > decided_at) {
        explain_holm(row);
        continue;
      }
      row.outcome = row.a_is_higher() == (request_.metric.better == replay::Better::larger) ? Outcome::a_better
                                                                                            : Outcome::b_better;
    }
  }

  const ComparisonRequest& request_;
  Catalogue catalogue_;
  std::vector<ComparisonGroup> groups_;
  std::vector<Side> a_, b_;
  std::vector<std::pair<Side, Side>> pairs_;
  std::size_t family_ = 0;  // number of hypotheses that Holm counts
  std::vector<Comparison> rows_;
};

std::string layers_text(const EvalSetting& e) {
  const bool one = e.method_layers.find_first_of(",-") == std::string::npos;
  return fmt::format("layer{} {} of {}", one ? "" : "s", e.method_layers, e.model_layers);
}

std::string document_text(const Comparison& row, bool with_source) {
  const EvalSetting& e = row.eval;
  std::string out;
  if (with_source)
    out = fmt::format("{}, {}, {} tokens, question {}, {}, weights {}, cache {}, protected {}, decoded {}{}{}, ",
                      row.model, e.text, e.context_tokens, e.question, layers_text(e), e.weights, e.kv_dtype, e.protect,
                      e.decoded, row.protocol.empty() ? "" : ", protocol " + row.protocol,
                      e.generate.empty() ? "" : ", generated " + e.generate);
  out += "task " + e.task;
  if (e.inject != "all") out += fmt::format(", inject {}", e.inject);
  return e.inject_layer.empty() ? out : out + " " + e.inject_layer;
}

}  // namespace

bool is_reference(std::string_view method) { return method == "exact" || method.starts_with("oracle-"); }

bool is_baseline(std::string_view method) { return is_reference(method) || method == "random"; }

std::optional<replay::MetricInfo> find_query_metric(std::string_view name) {
  if (name == replay::predicted_kl_info.name) return replay::predicted_kl_info;
  const std::optional<replay::Metric> metric = replay::find_metric(name);
  return metric ? std::optional(info_of(*metric)) : std::nullopt;
}

int enough_flips(std::size_t hypotheses) {
  return static_cast<int>(std::clamp(2 * static_cast<double>(hypotheses) / decided_at, 9999.0, 999999.0));
}

std::string_view name_of(Outcome outcome) {
  constexpr std::string_view names[] = {"a better", "b better", "not distinguishable", "not tested", "skipped"};
  return name_in(names, outcome);
}

std::string_view name_of(Span span) {
  constexpr std::string_view names[] = {"layer", "head", "prompt", "all"};
  return name_in(names, span);
}

void Comparison::set_level(double level) {
  if (sums && !test.infinite && level != 0.95) test.interval = difference_interval(*sums, level);
  if (sums && metric.has_ratio() && !test.infinite && test.mean_b != 0)
    ratio_interval = kvbench::ratio_interval(*sums, level);
  if (!decided_over_places()) return;
  const Interval shown = places.interval_at(level);
  over_places_interval = metric.has_ratio() ? Interval{std::exp(shown.lo), std::exp(shown.hi)} : shown;
}

std::string place_text(const Comparison& row, bool with_source) {
  if (!row.eval.empty()) return document_text(row, with_source);
  std::string out = with_source ? fmt::format("{}, ", row.trace.empty() ? row.sha256 : row.trace) : "";
  if (!row.run.empty()) out += fmt::format("run {}, ", row.run);
  out += "prompt " + row.prompt;
  if (row.layer) out += fmt::format(", layer {}", *row.layer);
  return row.query_head ? out + fmt::format(", head {}", *row.query_head) : out;
}

std::vector<Comparison> compare(const ComparisonRequest& request) { return Comparer(request).run(); }

}  // namespace kvbench::compare
