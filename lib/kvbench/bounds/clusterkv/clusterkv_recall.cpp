// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/clusterkv/clusterkv_recall.hpp>

#include <kvbench/bounds/contrast.hpp>
#include <kvbench/bounds/paired_replay.hpp>

namespace kvbench {
namespace {

constexpr const char* recall_paper = "ClusterKV, arXiv 2412.03213, section V-B, Fig. 11";
constexpr const char* recall_limits = "this is a short trace of one text and one model; the paper uses 32k tokens of NarrativeQA";

/// All methods select from the same context, and recall counts the same tokens.
ReplayRequest recall_request(const CheckContext& context, std::vector<MethodChoice> methods, std::vector<std::string> budgets) {
  ReplayRequest request{.methods = std::move(methods), .budgets = {}, .seeds = {0, 1}, .protocol = Protocol::prefill};
  for (const std::string& budget : budgets) request.budgets.push_back(Budget::parse(budget));
  request.layers = spread_layers(context.reader->info(), replayed_layers);
  request.recall_sinks = true;
  return request;
}

bool has_speculated(const trace::TraceInfo& trace) {
  for (const trace::PromptInfo& prompt : trace.prompts) {
    for (const trace::LayerInfo& layer : prompt.layers) {
      if (layer.speculated_queries) return true;
    }
  }
  return false;
}

double average(const std::vector<double>& units) { return contrast(units).mean; }

/// Adds the row of the recall of method `a` less that of `b`.
CheckRow& add_recall_row(CheckContext& context, const PairedReplay& replay, std::size_t a, std::size_t b, std::size_t budget,
                         const std::string& part) {
  const std::vector<double> of_a = replay.units(a, budget, Metric::recall), of_b = replay.units(b, budget, Metric::recall);
  const Contrast mass =
      contrast(differences(replay.units(a, budget, Metric::mass_recall), replay.units(b, budget, Metric::mass_recall)));
  CheckRow& row = context.add(CheckKind::claim, fmt::format("{}, B={}", part, replay.tokens(budget)));
  row.params = replay.text();
  set_claim(row, contrast(differences(of_a, of_b)),
            fmt::format("recall {:.3f} against {:.3f}, difference", average(of_a), average(of_b)));
  row.text += fmt::format("; recall of attention mass differs by {:+.3g}; {}", mass.mean, recall_limits);
  return row;
}

void run_clusterkv_recall_order(CheckContext& context) {
  const PairedReplay replay(
      context, recall_request(context, {method_choice("clusterkv"), method_choice("quest"), method_choice("infinigen")},
                              {"3.125%", "6.25%", "12.5%"}));
  for (std::size_t budget = 0; budget < 3; ++budget) {
    add_recall_row(context, replay, 0, 1, budget, "clusterkv above quest");
    CheckRow& row = add_recall_row(context, replay, 0, 2, budget, "clusterkv above infinigen");
    if (has_speculated(context.reader->info())) continue;
    row.assumptions_text = "the trace has no speculated queries: infinigen ranks by the true query, which gives an upper bound of its recall";
    row.assumptions = row.measured > 0;  // a lower recall than an upper bound decides nothing
  }
}

void run_clusterkv_distance(CheckContext& context) {
  const auto by = [](const char* distance) { return method_choice("clusterkv", {{"distance", distance}}); };
  const PairedReplay replay(context, recall_request(context, {by("cosine"), by("l2"), by("ip")}, {"3.125%", "6.25%", "12.5%"}));
  for (std::size_t budget = 0; budget < 3; ++budget) {
    add_recall_row(context, replay, 0, 1, budget, "cosine above l2");
    add_recall_row(context, replay, 0, 2, budget, "cosine above inner product");
  }
}

void run_clusterkv_saturation(CheckContext& context) {
  const int tokens[] = {160, 80, 40, 20};  // per cluster
  std::vector<MethodChoice> methods;
  for (const int t : tokens) {
    methods.push_back(method_choice("clusterkv", {{"tokens_per_cluster", std::to_string(t)}}));
  }
  const PairedReplay replay(context, recall_request(context, methods, {"6.25%"}));
  std::vector<std::vector<double>> recall;
  for (std::size_t m = 0; m < methods.size(); ++m) recall.push_back(replay.units(m, 0, Metric::recall));
  for (std::size_t m = 1; m < methods.size(); ++m) {
    CheckRow& row = context.add(
        CheckKind::claim, fmt::format("L/{} clusters recall more than L/{}, B={}", tokens[m], tokens[m - 1], replay.tokens(0)));
    row.params = replay.text();
    set_claim(row, contrast(differences(recall[m], recall[m - 1])),
              fmt::format("recall {:.3f} against {:.3f}, difference", average(recall[m]), average(recall[m - 1])));
    row.text += fmt::format("; {}", recall_limits);
  }
  // From L/160 to L/80 clusters, L/160 are added; from L/80 to L/40, twice as many.
  std::vector<double> knee, doubling;
  for (std::size_t u = 0; u < recall[0].size(); ++u) {
    const double before = recall[1][u] - recall[0][u], after = recall[2][u] - recall[1][u];
    knee.push_back(before - after / 2);
    doubling.push_back(before - after);
  }
  CheckRow& row = context.add(CheckKind::claim, fmt::format("a cluster adds less beyond L/80, B={}", replay.tokens(0)));
  row.params = replay.text();
  set_claim(row, contrast(knee), "gain of L/160 more clusters below L/80 less that above it");
  row.text += fmt::format("; per doubling of the number of clusters instead: {:+.3g}; {}", contrast(doubling).mean, recall_limits);
}

}  // namespace

Claim clusterkv_recall_order() {
  return {.id = "clusterkv.recall_order",
          .paper = recall_paper,
          .statement = "ClusterKV recalls more of the important tokens than Quest and InfiniGen at equal budgets",
          .method = "clusterkv",
          .scope = Scope::trace,
          .run = run_clusterkv_recall_order};
}

Claim clusterkv_distance() {
  return {.id = "clusterkv.distance",
          .paper = recall_paper,
          .statement = "clusters by cosine recall more than clusters by L2 distance or inner product",
          .method = "clusterkv",
          .scope = Scope::trace,
          .run = run_clusterkv_distance};
}

Claim clusterkv_saturation() {
  return {.id = "clusterkv.saturation",
          .paper = recall_paper,
          .statement = "more clusters recall more, with little gain beyond one cluster per 80 tokens",
          .method = "clusterkv",
          .scope = Scope::trace,
          .run = run_clusterkv_saturation};
}

}  // namespace kvbench
