// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/group_comparer.hpp>

#include <cmath>
#include <set>
#include <tuple>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/replay/records/record.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::compare {
namespace {

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

void add_sentence(std::string& text, const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; }

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

/// Writes the figures of a test.
void fill(Comparison& out, const evidence::Test& test) {
  out.test = test.blocks;
  out.p_value = test.blocks.p_value;
  out.units = test.blocks.blocks;
  out.tested_over = test.tested_over;
  if (test.over != evidence::Test::Over::places) return;
  out.some_layers_alone = false;
  out.over_places = test.effect;
  out.places_a = test.mean_a, out.places_b = test.mean_reference;
  out.p_value = test.p_value;
  out.units = test.units;
}

/// Why there was no test, or what it holds for. `in_places`: others of the group were tested over places.
void explain(Comparison& out, bool in_places) {
  const PairedTest& t = out.test;
  if (t.infinite) add_sentence(out.reason, "infinite values: the means cannot be compared");
  if (out.is_prediction() && std::max(t.mean_a, t.mean_b) > replay::largest_predicted)
    add_sentence(out.reason, fmt::format("above {} nats a prediction does not say how large the damage is",
                                         replay::largest_predicted));
  if (out.decided_over_places()) return;
  if (in_places) {
    out.outcome = Outcome::untested;
    if (!t.infinite)
      add_sentence(out.reason, "a mean of 0 on a layer, where there is no ratio: compare the two alone, or by layer");
    return;
  }
  if (out.some_layers_alone)
    add_sentence(out.reason, "holds for the replayed layers alone; evenly spaced ones could speak for the others");
  if (t.infinite || t.one_seed || t.p_least > decided_at) out.outcome = Outcome::untested;
  if (t.one_seed)
    add_sentence(out.reason, "one seed does not show the variance between seeds: replay with more --seeds");
  if (t.p_least > decided_at && !t.one_seed) {
    const std::string size = out.unit() == "block" ? fmt::format(" of {} queries", queries_per_block) : "";
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
    const char* places = !out.eval.empty() ? "documents" : is_prediction(metric_) ? "texts" : "query heads";
    out.reason = ok.empty() ? why : fmt::format("without {} of {} {}: {}", bad, group_.places.size(), places, why);
  }
  return sparse.empty() ? ok : sparse;
}

evidence::Scale GroupComparer::scale() const {
  return {
      .ratios = metric_.has_ratio(), .larger = metric_.better == replay::Better::larger, .least = replay::least_error};
}

std::optional<evidence::PlaceSample> GroupComparer::sample_of(std::size_t layers) const {
  if (layers == 0 || group_.identity.layer || !group_.identity.eval.empty()) return std::nullopt;
  std::set<std::int64_t> of_group;
  for (const std::size_t place : group_.places) of_group.insert(catalogue_.places()[place].layer);
  const std::vector<std::int64_t> replayed(of_group.begin(), of_group.end());
  const std::int64_t of_model = catalogue_.places()[group_.places.front()].model_layers;
  const auto are_units = trace::layers_are_units(replayed, layers, of_model);
  if (!are_units) return std::nullopt;
  return evidence::PlaceSample{layers, *are_units, static_cast<std::size_t>(of_model)};
}

PlaceSums GroupComparer::sums_of(const GroupValues& of) const {
  const bool all_dense = std::ranges::all_of(of, [](const SideValues& v) { return v.dense || v.seeds.empty(); });
  PlaceSums places;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i].dense && !all_dense) continue;
    for (const auto& [seed, row] : of[i].seeds) {
      for (const double value : row) {
        if (!std::isnan(value)) places.add(catalogue_.places()[group_.places[i]], value);
      }
    }
  }
  return places;
}

GroupComparer::Prepared GroupComparer::prepare(const Side& a, const GroupValues& in_a, const Side& b,
                                               const GroupValues& in_b) const {
  Prepared out{.row = group_.identity, .pair = {}, .cost = ""};
  Comparison& row = out.row;
  row.metric = metric_;
  row.a = a.label(), row.budget_a = a.configuration.budget, row.b = b.label(), row.budget_b = b.configuration.budget;
  const std::vector<std::size_t> usable = usable_places(in_a, in_b, row);
  if (usable.empty()) return out;
  const bool a_draws = a.configuration.seeded, b_draws = b.configuration.seeded;
  PairValues values(in_a, a_draws, in_b, b_draws);
  for (const std::size_t i : usable) values.add(catalogue_.places()[group_.places[i]], in_a[i], in_b[i]);
  row.seeds = a_draws || b_draws ? values.seeds() : 0;
  row.pairs = values.pairs, row.left_out = values.left_out;
  if (row.pairs == 0) {
    row.reason = fmt::format("{} applies to no {} of both", metric_.name, row.eval.empty() ? "query" : "document");
    return out;
  }
  row.outcome = Outcome::tied;  // until the p-values are adjusted
  out.pair = values.pair();
  out.pair.sample = sample_of(values.layers());
  if (!row.layer && row.eval.empty()) row.some_layers_alone = !out.pair.sample || out.pair.sample->layers_are_units;
  out.cost = cost_note(a, b, in_a, in_b, usable);
  return out;
}

std::vector<Comparison> GroupComparer::test(std::vector<Prepared> group) const {
  std::vector<evidence::Pair> pairs;
  for (Prepared& one : group) {
    if (one.row.outcome != Outcome::skipped) pairs.push_back(std::move(one.pair));
  }
  const bool documents = !group_.identity.eval.empty(), probes = is_prediction(metric_);
  const char* block = documents ? "documents" : probes ? "probes" : "blocks of queries";
  std::vector<evidence::Test> tests = test_group(pairs, {.scale = scale(), .flips = flips_, .block = block});
  const bool over_places = std::ranges::count(tests, evidence::Test::Over::places, &evidence::Test::over) > 0;
  std::vector<Comparison> out;
  std::size_t next = 0;
  for (Prepared& one : group) {
    Comparison& row = out.emplace_back(std::move(one.row));
    if (row.outcome == Outcome::skipped) continue;
    fill(row, tests[next]);
    row.places = tests[next].places, row.sums = std::move(tests[next].sums);
    ++next;
    row.set_level(0.95);
    explain(row, over_places);
    if (!one.cost.empty()) add_sentence(row.reason, one.cost);
  }
  return out;
}

}  // namespace kvbench::compare
