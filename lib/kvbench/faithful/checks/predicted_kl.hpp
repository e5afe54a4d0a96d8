// SPDX-License-Identifier: Apache-2.0
// The predicted KL of a replay is the term of second order of the KL divergence that the errors of its answers cause
// in a network, whose gradients are known. docs/theory/predicted_kl.second_order.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/faithful/checks/known_network.hpp>

namespace kvbench::faithful {

/// The KL divergence in nats per scored token that a replay of a network predicts for each of its methods.
using NetworkPrediction = std::function<std::vector<double>(const KnownNetwork&, Backend&)>;

/// That of the rows over all layers.
std::vector<double> rows_prediction(const replay::ReplayResults& results);
/// The same of a replay of the network.
std::vector<double> replayed_prediction(const KnownNetwork& network, Backend& backend);

void check_predicted_kl(bounds::CheckContext& context, const NetworkPrediction& predict);

bounds::Check predicted_kl_second_order();

}  // namespace kvbench::faithful
