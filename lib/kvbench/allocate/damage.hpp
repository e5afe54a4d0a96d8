// SPDX-License-Identifier: Apache-2.0
// What each configuration of a menu does to the output of a model in each of its layers or kv heads, measured on the
// documents of traces: from probes the predicted KL; without them the mean square error in the residual stream, by
// which a layer whose errors the model hardly notices counts as much as any other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/replay/plan/request.hpp>
#include <kvbench/replay/records/anchors.hpp>
#include <kvbench/replay/records/predicted_kl.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::allocate {

/// What a budget is divided among, and a plan has a line for: layers, or the kv heads of all layers.
enum class Division { layer, head };

/// Costs are counted in shares of the exact cache of one layer or head, of which this number is the whole.
inline constexpr std::int64_t whole_place = 100'000;

/// A method at a budget, which is what the layers of a plan choose from.
struct MenuEntry {
  replay::MethodChoice method;
  Budget budget;
};

/// A prompt of a trace.
struct DocumentDamage {
  std::string name;
  std::size_t scored = 0, probes = 0;  ///< T and R of docs/damage.md
  /// [places][entries] of [seeds][pieces][probes]: what the errors there at the scored tokens of a piece add to each
  /// probe, in nats; empty where the place cannot have the entry. Without probes one number c a seed, such that
  /// c^2 / (2 T) with T = 1 is the mean square of residual_err.
  std::vector<std::vector<double>> sums;
  std::size_t pieces = 1;
};

struct Damages {
  std::string model;
  std::int64_t model_layers = 0;
  bool probed = true;  ///< the documents have probes; otherwise all of them have sketches alone
  Division by = Division::layer;
  std::vector<methods::PlanPlace> places;  ///< where methods run
  std::vector<MenuEntry> menu;
  std::vector<std::int64_t> cost;  ///< as Choices::cost, the largest over the documents; negative where it is outside
  /// As cost: of the tokens that budgets refer to the share that an entry keeps, mean over the documents.
  std::vector<double> kept;
  /// As cost, over the documents: the errors of an entry in the layer of a place, all of whose heads have it.
  std::vector<replay::StreamError> stream;
  /// By entry, of the configurations that the model itself measured in the same way (correct()); empty: of none.
  std::vector<replay::AnchorRatio> anchors = {};
  std::vector<DocumentDamage> documents;

  /// What the damage of plans is called.
  const char* figure() const { return probed ? "predicted KL" : "mean square residual error"; }
  /// The layers in which an entry is outside the region of predictions, so that no plan has it there.
  std::vector<std::int64_t> layers_outside(std::size_t entry) const;
  const char* place() const { return by == Division::layer ? "layer" : "head"; }
  /// What an entry holds in a place, relative to the exact cache there.
  double share(std::size_t place, std::size_t entry) const {
    return static_cast<double>(cost[place * menu.size() + entry]) / static_cast<double>(whole_place);
  }
  /// "measured 4.1 times the prediction" if anchors say that an entry cannot be predicted, so that no plan has it.
  std::string anchors_failure(std::size_t entry) const {
    return anchors.empty() ? "" : replay::failure_text(anchors[entry]);
  }
  /// Whether the damage of some entry cannot be predicted in some place.
  bool has_outside() const;
  /// Damages of places add up before they are squared where probes say how. `spread`: as replay::AnchorRatio::spread.
  replay::PredictedKl of(std::span<const replay::ProbeSums> sums, double spread = 0) const {
    return replay::predict_kl(sums, {.extrapolates = !probed, .scale = 1, .spread = spread});
  }
  /// The mean that of() gives for one document.
  double mean_of(const replay::ProbeSums& sums) const {
    return mean(replay::unit_predictions(sums, {.extrapolates = !probed, .scale = 1}));
  }
  /// The budget for all layers, rounded down.
  std::int64_t budget_of(double share) const;
};

/// Multiplies the damage of each entry by the ratio of measured to predicted KL in the anchors of its kind, as rows of
/// replays are; where they say that predictions of the kind fail, no place can have the entry. Damages without probes
/// stay, as anchors measure KL.
void correct(Damages& damages, std::span<const replay::ReplayFrame::Prompt> prompts);

/// Replays the methods of a menu on all documents, each at every budget; methods without a choice of bits, which keep
/// every token, at their own size. Budgets limit the memory. Entries that hold the same bytes as a smaller budget of
/// their method are left out. Anchors of the traces correct() the damages. Throws Error where a trace has neither
/// probes nor sketches or not all layers of its model, where some documents alone have probes, where traces are of
/// several models, and where a method runs at no budget (NothingFits if it costs more than all of them); as replay()
/// does.
Damages measure(std::span<const std::unique_ptr<trace::Reader>> traces, replay::ReplayRequest request, Division by,
                const replay::RunOptions& options, const replay::ReplayHooks& hooks);

/// Budgets between 1/32 and all of the memory, each larger than the one before by a third of a power of two, and these
/// others, in increasing order.
std::vector<Budget> budget_grid(std::span<const Budget> others);

}  // namespace kvbench::allocate
