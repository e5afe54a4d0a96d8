// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/group_comparer.hpp>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/place_test.hpp>
#include <kvbench/replay/records/record.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::compare {
namespace {

using Seeds = std::vector<std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>>;

Comparison identity_of(const QueryPlace& place, Span span) {
  Comparison c;
  if (!place.eval.empty()) span = Span::all;
  c.eval = place.eval;
  c.run = place.run, c.trace = place.trace, c.sha256 = place.sha256, c.model = place.model, c.protocol = place.protocol;
  c.prompt = span == Span::all ? "all" : place.prompt;
  if (span <= Span::head) c.layer = place.layer;
  if (span == Span::head) c.query_head = place.query_head;
  return c;
}

std::vector<std::uint32_t> seeds_of(const GroupValues& group) {
  std::vector<std::uint32_t> seeds;
  for (const SideValues& values : group) {
    for (const auto& [seed, row] : values.seeds) {
      if (std::ranges::find(seeds, seed) == seeds.end()) seeds.push_back(seed);
    }
  }
  std::ranges::sort(seeds);
  return seeds;
}

/// The seeds of both sides that are paired; no seed: the side has one value.
Seeds pair_seeds(const GroupValues& a, bool a_draws, const GroupValues& b, bool b_draws) {
  Seeds pairs;
  const auto of_a = seeds_of(a), of_b = seeds_of(b);
  if (!a_draws && !b_draws) return {{std::nullopt, std::nullopt}};
  if (!a_draws || !b_draws) {
    for (const std::uint32_t seed : a_draws ? of_a : of_b) {
      pairs.emplace_back(a_draws ? std::optional(seed) : std::nullopt, b_draws ? std::optional(seed) : std::nullopt);
    }
    return pairs;
  }
  for (const std::uint32_t seed : of_a) {
    if (std::ranges::binary_search(of_b, seed)) pairs.emplace_back(seed, seed);
  }
  if (!pairs.empty()) return pairs;
  for (std::size_t k = 0; k < std::min(of_a.size(), of_b.size()); ++k) pairs.emplace_back(of_a[k], of_b[k]);
  return pairs;
}

const std::vector<double>* row_of(const SideValues& values, std::optional<std::uint32_t> seed) {
  for (const auto& [known, row] : values.seeds) {
    if (!seed || known == *seed) return &row;
  }
  return nullptr;
}

void add_sentence(std::string& text, const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; }

/// Sums and counts per block and seed of both sides, over the pairs with both values.
class PairSums {
 public:
  explicit PairSums(const Seeds& seeds) : seeds_(seeds) {}

  void add(const QueryPlace& place, const SideValues& in_a, const SideValues& in_b) {
    for (std::size_t s = 0; s < seeds_.size(); ++s) {
      const auto* a = row_of(in_a, seeds_[s].first);
      const auto* b = row_of(in_b, seeds_[s].second);
      for (std::size_t q = 0; a && b && q < place.positions.size(); ++q) add(place, q, s, (*a)[q], (*b)[q]);
    }
  }
  PairedSums sums(bool drawn) {
    sums_.seeds = seeds_.size();
    sums_.drawn = drawn;
    return std::move(sums_);
  }
  /// Sums of both sides and their number.
  struct Sums {
    double a = 0, b = 0, count = 0;
  };
  using ByPlace = std::map<std::pair<std::string, std::int64_t>, Sums>;  // by prompt and layer
  const ByPlace& by_place() const { return by_place_; }
  Index pairs = 0, left_out = 0;

 private:
  void add(const QueryPlace& place, std::size_t query, std::size_t seed, double a, double b) {
    if (std::isnan(a) || std::isnan(b)) {
      ++left_out;
      return;
    }
    const std::size_t row =
        rows_.try_emplace({place.identity(), query / queries_per_block}, rows_.size()).first->second;
    const std::size_t at = row * seeds_.size() + seed;
    for (auto* grid : {&sums_.a, &sums_.b, &sums_.counts})
      grid->resize(std::max(grid->size(), (row + 1) * seeds_.size()));
    sums_.a[at] += a, sums_.b[at] += b, sums_.counts[at] += 1;
    Sums& here = by_place_[{place.identity(), place.layer}];
    here.a += a, here.b += b, here.count += 1;
    const std::size_t unit =
        units_.try_emplace({place.identity(), place.layer, place.kv_head}, units_.size()).first->second;
    for (auto* grid : {&sums_.unit_sums, &sums_.unit_counts}) {
      grid->resize(std::max(grid->size(), (unit + 1) * seeds_.size()));
    }
    sums_.unit_sums[unit * seeds_.size() + seed] += a - b;
    sums_.unit_counts[unit * seeds_.size() + seed] += 1;
    ++pairs;
  }

  const Seeds& seeds_;
  std::map<std::pair<std::string, std::size_t>, std::size_t> rows_;  // by prompt and block
  std::map<std::tuple<std::string, std::int64_t, Index>, std::size_t>
      units_;  // by kv head, because each has its own random numbers
  PairedSums sums_;
  ByPlace by_place_;
};

/// Why a side has no values at a place, or "".
std::string fault_of(const SideValues& values, const std::string& label) {
  if (!values.found) return fmt::format("{} has no rows here", label);
  return values.status == replay::Status::ok ? ""
                                             : fmt::format("{} {}: {}", label, name_of(values.status), values.reason);
}

/// Why the values of two sides at a place cannot be compared, or "".
std::string fault_of_pair(const SideValues& in_a, const SideValues& in_b, const Comparison& names) {
  std::string fault = fault_of(in_a, names.a);
  if (const std::string other = fault_of(in_b, names.b); !other.empty()) add_sentence(fault, other);
  if (!fault.empty() || in_a.compressed_layers == in_b.compressed_layers) return fault;
  return fmt::format("{} compressed {} layers and {} {}, and what differs in layers is not compared", names.a,
                     in_a.compressed_layers, names.b, in_b.compressed_layers);
}

/// The mean bytes of a side per kv head over some places and their seeds.
double mean_bytes(const GroupValues& group, std::span<const std::size_t> places, double SideValues::*bytes) {
  double sum = 0, count = 0;
  for (const std::size_t i : places) sum += group[i].*bytes, count += static_cast<double>(group[i].seeds.size());
  return sum / count;
}

/// Where two methods hold different numbers of bytes, or read them where their budgets limit reads.
std::string cost_note(const Side& a, const Side& b, const GroupValues& in_a, const GroupValues& in_b,
                      std::span<const std::size_t> places) {
  const auto reads = [](const Side& side) { return side.configuration.budget.cost() == CostKind::read; };
  if (is_reference(a.configuration.method) || is_reference(b.configuration.method)) return "";
  const bool read = reads(a) && reads(b);
  const auto bytes = read ? &SideValues::bytes_read : &SideValues::bytes_held;
  const double of_a = mean_bytes(in_a, places, bytes), of_b = mean_bytes(in_b, places, bytes);
  if (!(std::max(of_a, of_b) > equal_cost * std::min(of_a, of_b))) return "";
  return fmt::format("not at equal cost: {} {} {:.0f} bytes per kv head, {} {:.0f}", a.label(),
                     read ? "reads" : "holds", of_a, b.label(), of_b);
}

/// Layers of the places of a group.
struct GroupLayers {
  std::set<std::int64_t> replayed;
  std::int64_t of_model = 0;
};

/// The test over the layers and texts of a group of query heads, where these are a sample and no text lacks a layer.
void add_places(const PairSums& sums, const GroupLayers& of_group, Comparison& out) {
  const bool ratios = out.metric.has_ratio();
  std::set<std::int64_t> layers;
  std::set<std::string> prompts;
  std::vector<double> differences;
  for (const auto& [place, both] : sums.by_place()) {
    prompts.insert(place.first), layers.insert(place.second);
    const double a = both.a / both.count, b = both.b / both.count;
    const bool exact = ratios && (a == 0 || b == 0);  // a ratio would be one to the floor of log_error()
    differences.push_back(exact ? NAN : ratios ? replay::log_error(a) - replay::log_error(b) : a - b);
  }
  const std::vector<std::int64_t> replayed(of_group.replayed.begin(), of_group.replayed.end());
  const auto are_units = trace::layers_are_units(replayed, layers.size(), of_group.of_model);
  out.some_layers_alone = are_units.value_or(true);  // until they are tested
  const bool finite = std::ranges::all_of(differences, [](double x) { return std::isfinite(x); });
  if (!are_units || !finite || differences.empty() || differences.size() != layers.size() * prompts.size()) return;
  const PlaceTest test = place_test(differences, layers.size(), *are_units);
  if (!test.tested()) return;
  out.some_layers_alone = false;
  const auto shown = [&](double mean) { return ratios ? std::exp(mean) : mean; };
  out.over_places = shown(test.mean);
  out.over_places_interval = {shown(test.interval.lo), shown(test.interval.hi)};
  out.p_value = test.p_value;
  out.units = test.units();
  out.tested_over = units_of(test, static_cast<std::size_t>(of_group.of_model));
}

void explain(Comparison& out) {
  const PairedTest& t = out.test;
  if (t.infinite) add_sentence(out.reason, "infinite values: the means cannot be compared");
  if (out.decided_over_places()) return;
  if (out.some_layers_alone)
    add_sentence(out.reason, "holds for the replayed layers alone; evenly spaced ones could speak for the others");
  if (t.infinite || t.one_seed || t.p_least > decided_at) out.outcome = Outcome::untested, out.tested_over.clear();
  if (t.one_seed)
    add_sentence(out.reason, "one seed does not show the variance between seeds: replay with more --seeds");
  if (t.p_least > decided_at && !t.one_seed) {
    const std::string size = out.eval.empty() ? fmt::format(" of {} queries", queries_per_block) : "";
    add_sentence(out.reason,
                 fmt::format("{} {}{}{}: no p-value below {:.2g} is possible; at least {} {}s are needed", t.blocks,
                             out.unit(), t.blocks == 1 ? "" : "s", size, t.p_least, sign_flip_units(1), out.unit()));
  }
}

}  // namespace

std::vector<ComparisonGroup> groups_of(const std::vector<QueryPlace>& places, Span span) {
  const auto key = [](const Comparison& c) {
    return std::tuple(c.run, c.sha256, c.prompt, c.protocol, c.layer, c.query_head, c.eval);
  };
  OrderedMap<decltype(key(Comparison{})), ComparisonGroup> groups;
  for (std::size_t p = 0; p < places.size(); ++p) {
    Comparison identity = identity_of(places[p], span);
    ComparisonGroup& group = groups[key(identity)];
    if (group.places.empty()) group.identity = std::move(identity);
    group.places.push_back(p);
  }
  std::vector<ComparisonGroup> out;
  for (auto& [identity, group] : groups.items()) out.push_back(std::move(group));
  return out;
}

std::string difference_of(std::span<const ComparisonGroup> groups) {
  constexpr std::pair<const char*, std::string EvalSetting::*> settings[] = {
      {"the layers", &EvalSetting::method_layers},
      {"the weights", &EvalSetting::weights},
      {"the type of the cache", &EvalSetting::kv_dtype},
      {"protected tokens", &EvalSetting::protect},
      {"decoded tokens", &EvalSetting::decoded},
      {"the text", &EvalSetting::text},
      {"the form of the question", &EvalSetting::question},
      {"tokens of the context", &EvalSetting::context_tokens}};
  std::string out;
  const auto add = [&](const char* what, const std::string& x, const std::string& y) {
    if (x != y) out += fmt::format("{}{} ('{}' and '{}')", out.empty() ? "" : ", ", what, x, y);
  };
  for (std::size_t x = 0; x < groups.size() && out.empty(); ++x) {
    for (std::size_t y = 0; y < x && out.empty(); ++y) {
      const Comparison &one = groups[y].identity, &other = groups[x].identity;
      if (one.eval.task != other.eval.task || one.eval.inject != other.eval.inject ||
          one.eval.inject_layer != other.eval.inject_layer)
        continue;
      add("the model", one.sha256, other.sha256);
      for (const auto& [what, setting] : settings) add(what, one.eval.*setting, other.eval.*setting);
    }
  }
  return out;
}

GroupValues GroupComparer::read(const Side& side) const {
  GroupValues out;
  for (const std::size_t place : group_.places) {
    out.push_back(catalogue_.read(side, place));
    if (metric_.better != replay::Better::nearer_to_zero) continue;
    for (auto& [seed, row] : out.back().seeds) {
      for (double& value : row) value = std::abs(value);
    }
  }
  return out;
}

/// Places where both sides are ok, without dense layers unless all places are dense (as in rows over layers). Empty,
/// with the reason in `out`, after a failure or where no place is ok.
std::vector<std::size_t> GroupComparer::usable_places(const GroupValues& in_a, const GroupValues& in_b,
                                                      Comparison& out) const {
  std::vector<std::size_t> ok, sparse;
  std::string why;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < group_.places.size(); ++i) {
    const std::string fault = fault_of_pair(in_a[i], in_b[i], out);
    if (in_a[i].status == replay::Status::failed || in_b[i].status == replay::Status::failed) {
      out.reason = fault;
      return {};
    }
    if (fault.empty()) {
      ok.push_back(i);
      if (!in_a[i].dense && !in_b[i].dense) sparse.push_back(i);
    } else if (bad++ == 0) {
      why = fault;
    }
  }
  if (bad > 0) {
    const char* places = out.eval.empty() ? "query heads" : "documents";
    out.reason = ok.empty() ? why : fmt::format("without {} of {} {}: {}", bad, group_.places.size(), places, why);
  }
  return sparse.empty() ? ok : sparse;
}

Comparison GroupComparer::compare(const Side& a, const GroupValues& in_a, const Side& b,
                                  const GroupValues& in_b) const {
  Comparison out = group_.identity;
  out.metric = metric_;
  out.a = a.label(), out.budget_a = a.configuration.budget, out.b = b.label(), out.budget_b = b.configuration.budget;
  const std::vector<std::size_t> usable = usable_places(in_a, in_b, out);
  if (usable.empty()) return out;
  const bool a_draws = a.configuration.seeded, b_draws = b.configuration.seeded;
  const Seeds seeds = pair_seeds(in_a, a_draws, in_b, b_draws);
  PairSums sums(seeds);
  for (const std::size_t i : usable) sums.add(catalogue_.places()[group_.places[i]], in_a[i], in_b[i]);
  out.seeds = a_draws || b_draws ? seeds.size() : 0;
  out.pairs = sums.pairs, out.left_out = sums.left_out;
  if (out.pairs == 0) {
    out.reason = fmt::format("{} applies to no {} of both", metric_.name, out.eval.empty() ? "query" : "document");
    return out;
  }
  const PairedSums paired = sums.sums(a_draws || b_draws);
  out.test = paired_test(paired, flips_);
  if (metric_.has_ratio() && !out.test.infinite && out.test.mean_b != 0)
    out.ratio_interval = bootstrap_mean(paired.a, paired.b, paired.seeds);
  out.outcome = Outcome::tied;  // until the p-values are adjusted
  out.p_value = out.test.p_value;
  out.units = out.test.blocks;
  out.tested_over = fmt::format("{} {}", out.test.blocks, out.eval.empty() ? "blocks of queries" : "documents");
  if (!out.layer && out.eval.empty()) {
    GroupLayers layers;
    for (const std::size_t place : group_.places) {
      layers.replayed.insert(catalogue_.places()[place].layer);
      layers.of_model = catalogue_.places()[place].model_layers;
    }
    add_places(sums, layers, out);
  }
  explain(out);
  if (const std::string note = cost_note(a, b, in_a, in_b, usable); !note.empty()) add_sentence(out.reason, note);
  return out;
}

}  // namespace kvbench::compare
