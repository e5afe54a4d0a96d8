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
    if (!pairs_.empty()) return "the results hold no values of these configurations; is the sweep unfinished?";
    if (!request_.a && !request_.b) {
      return "at no budget are there two methods other than the references exact and oracle-topk; run more methods, or "
             "give `a` and `b`";
    }
    const Side& one = (a_.empty() ? b_ : a_).front();
    return fmt::format(
        "{} is the only configuration at its budget, {}; run others at this budget, or give `a` and `b` with @BUDGET",
        one.label(), one.configuration.budget);
  }

  static bool tested(const Comparison& row) {
    return row.outcome != Outcome::skipped && row.outcome != Outcome::untested;
  }

  void add(Comparison row) {
    family_ += tested(row);
    rows_.push_back(std::move(row));
  }

  void compare_pairs(const GroupComparer& comparer) {
    std::optional<Side> last_a, last_b;
    GroupValues in_a, in_b;
    for (const auto& [a, b] : pairs_) {
      if (!(last_a == a)) in_a = comparer.read(a), last_a = a;
      if (!(last_b == b)) in_b = comparer.read(b), last_b = b;
      if (found(in_a) || found(in_b)) add(comparer.compare(a, in_a, b, in_b));
    }
  }

  /// A side that may be the best, with its mean.
  struct Candidate {
    Side side;
    double mean = 0;
    Index layers = 0;        ///< most layers that it compressed of any document
    std::size_t places = 0;  ///< number of places that are ok
  };

  std::vector<Candidate> candidates(const GroupComparer& comparer, const Budget& budget) const {
    std::vector<Candidate> all;
    for (const Side& side : catalogue_.sides()) {
      if (side.configuration.budget != budget || is_reference(side.configuration.method)) continue;
      Candidate one{.side = side};
      double sum = 0, count = 0;
      for (const SideValues& values : comparer.read(side)) {
        one.places += values.found && values.status == replay::Status::ok;
        one.layers = std::max(one.layers, values.compressed_layers);
        for (const auto& [seed, row] : values.seeds) {
          for (const double value : row) {
            if (!std::isnan(value)) sum += value, count += 1;
          }
        }
      }
      one.mean = sum / count;
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
      const Candidate* best = nullptr;
      std::pair<Index, std::size_t> most;
      for (const Candidate& one : all) {
        if (!std::isnan(one.mean)) most = std::max(most, {one.layers, one.places});
      }
      for (const Candidate& one : all) {
        if (std::pair(one.layers, one.places) < most || std::isnan(one.mean)) continue;
        if (!best || (request_.metric.better == replay::Better::larger ? one.mean > best->mean : one.mean < best->mean))
          best = &one;
      }
      if (best) compare_all(comparer, all, *best);
    }
  }

  void compare_all(const GroupComparer& comparer, const std::vector<Candidate>& all, const Candidate& best) {
    const GroupValues in_b = comparer.read(best.side);
    const std::size_t before = family_;
    bool over_places = false;  // then Holm counts the comparisons, as in mark_best()
    for (const Candidate& one : all) {
      if (&one == &best) continue;
      const GroupValues in_a = comparer.read(one.side);
      if (!found(in_a)) continue;
      add(comparer.compare(one.side, in_a, best.side, in_b));
      over_places |= rows_.back().decided_over_places();
    }
    if (over_places) return;
    const std::size_t count = family_ - before;  // tested against the best, so that there are count + 1 candidates
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
    for (const Comparison& row : rows_) {
      if (tested(row)) p_values.push_back(row.p_value);
    }
    const std::vector<double> adjusted = holm(p_values, family_);
    std::size_t next = 0;
    for (Comparison& row : rows_) {
      row.family = family_;
      row.p_adjusted = tested(row) ? adjusted[next++] : NAN;
      if (!tested(row)) continue;
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
    out =
        fmt::format("{}, {}, {} tokens, question {}, {}, weights {}, cache {}, protected {}, decoded {}, ", row.model,
                    e.text, e.context_tokens, e.question, layers_text(e), e.weights, e.kv_dtype, e.protect, e.decoded);
  out += "task " + e.task;
  if (e.inject != "all") out += fmt::format(", inject {}", e.inject);
  return e.inject_layer.empty() ? out : out + " " + e.inject_layer;
}

}  // namespace

bool is_reference(std::string_view method) { return method == "exact" || method.starts_with("oracle-"); }

bool is_baseline(std::string_view method) { return is_reference(method) || method == "random"; }

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
