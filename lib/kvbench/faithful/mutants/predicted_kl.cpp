// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <algorithm>
#include <functional>

#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/replay/records/record.hpp>

namespace kvbench::faithful {
namespace {

Mutant predicted_mutant(const std::string& id, std::string fault, std::string place, const NetworkPrediction& predict) {
  return {.id = "predicted_kl." + id,
          .fault = std::move(fault),
          .place = std::move(place),
          .run = [predict](bounds::CheckContext& context) {
            bounds::CheckContext check = context.as("predicted_kl.second_order");
            check_predicted_kl(check, predict);
          }};
}

Mutant region_mutant(const std::string& id, std::string fault, const OutsideRule& outside) {
  return {.id = "predicted_kl." + id,
          .fault = std::move(fault),
          .place = "outside: stream_err above 0.3 (docs/damage.md, where it holds)",
          .run = [outside](bounds::CheckContext& context) {
            bounds::CheckContext check = context.as("predicted_kl.region");
            check_predicted_region(check, outside);
          }};
}

/// The replay sees the probes of another network than the one whose KL is computed.
Mutant probe_mutant(const std::string& id, std::string fault, const std::function<void(KnownNetwork&)>& change) {
  return predicted_mutant(id, std::move(fault), "G_r = gradient of sum_t s_t log p_t(y_t)",
                          [change](const KnownNetwork& network, Backend& backend) {
                            KnownNetwork changed = network;
                            change(changed);
                            return replayed_prediction(changed, backend);
                          });
}

std::vector<double> twice(const KnownNetwork& network, Backend& backend) {
  std::vector<double> kl = replayed_prediction(network, backend);
  for (double& x : kl) x *= 2;
  return kl;
}

/// The heads of a layer are predicted alone, each over both layers.
std::vector<double> sum_over_heads(const KnownNetwork& network, Backend& backend) {
  const replay::ReplayResults results = replay_network(network, backend);
  std::vector<double> kl(results.methods.size());
  for (Index kv_head = 0; kv_head < KnownNetwork::kv_heads; ++kv_head) {
    replay::ReplayResults alone = results;
    std::erase_if(alone.heads, [&](const replay::HeadResult& head) { return head.place.kv_head != kv_head; });
    std::ranges::transform(kl, rows_prediction(alone), kl.begin(), std::plus());
  }
  return kl;
}

std::vector<double> sum_over_layers(const KnownNetwork& network, Backend& backend) {
  const replay::ReplayResults results = replay_network(network, backend);
  std::vector<double> kl(results.methods.size());
  std::size_t i = 0;  // the rows of a layer are in the order of the methods
  for (const replay::Record& row : summarize(results, replay::Grain::layer)) {
    if (row.layer) kl[i++ % kl.size()] += row.kl.mean;
  }
  return kl;
}

template <class T>
void swap_rows(std::vector<T>& array, Index one, Index other, Index width) {
  std::swap_ranges(array.begin() + one * width, array.begin() + (one + 1) * width, array.begin() + other * width);
}

/// Moves what is recorded of each scored token to the one before it.
template <class T>
void shift_tokens(std::vector<T>& array, Index rows, Index width) {
  for (Index r = 0; r < rows; ++r) {
    const auto begin = array.begin() + r * KnownNetwork::scored * width;
    std::rotate(begin, begin + width, begin + KnownNetwork::scored * width);
  }
}

}  // namespace

std::vector<Mutant> predicted_kl_mutants() {
  using Net = KnownNetwork;
  const std::string square = "KL ~ 1/(2 R T) sum_r (sum over layers and heads of c)^2";
  return {
      predicted_mutant("half", "the factor 1/2 is missing", square, twice),
      predicted_mutant("heads", "the squares of the heads of a layer are added, without cross terms", square,
                       sum_over_heads),
      predicted_mutant("layers", "the squares of the layers are added, without cross terms", square, sum_over_layers),
      probe_mutant("signs", "the gradients of the tokens are added without signs",
                   [](Net& network) { std::ranges::fill(network.signs, 1.0); }),
      probe_mutant("transposed", "the query heads of a layer are in the order [group, kv heads]",
                   [](Net& network) {
                     for (Index l = 0; l < Net::layers; ++l)
                       swap_rows(network.weights, l * Net::heads + 1, l * Net::heads + 2, Net::words * Net::dv);
                   }),
      probe_mutant("next-token", "a scored token has the gradients of the next one",
                   [](Net& network) {
                     shift_tokens(network.p, 1, Net::words);
                     shift_tokens(network.labels, network.probes, 1);
                     shift_tokens(network.signs, network.probes, 1);
                   }),
      region_mutant("key-bias", "the prediction is used where a constant part of the keys breaks it",
                    [](const replay::Record&) { return false; }),
      region_mutant("all-outside", "every row is outside", [](const replay::Record&) { return true; }),
  };
}

}  // namespace kvbench::faithful
