// SPDX-License-Identifier: Apache-2.0
// The operations on the device: one .cu a header of include/kvbench/kernels/, queued on the context's stream.
#pragma once

#include <kvbench/kernels/backend.hpp>

#include "context.hpp"

namespace kvbench::kernels::cuda {

/// Queues one operation; arguments are documented at the operation's struct. Launch failures throw std::runtime_error.
template <class Op>
void run(const Op& op, Context& context);

template <>
void run(const ExactAttention<DeviceMatrix>& op, Context& context);  // attention.cu
template <>
void run(const WeightedAttention<DeviceMatrix>& op, Context& context);  // weighted_attention.cu
template <>
void run(const TopK<DeviceMatrix>& op, Context& context);  // topk.cu
template <>
void run(const GatherRows<DeviceMatrix>& op, Context& context);  // rows.cu, down to NarrowHalf
template <>
void run(const SquaredNorms<DeviceMatrix>& op, Context& context);
template <>
void run(const RotateRows<DeviceMatrix>& op, Context& context);
template <>
void run(const ColumnSums<DeviceMatrix>& op, Context& context);
template <>
void run(const SoftmaxRows<DeviceMatrix>& op, Context& context);
template <>
void run(const PoolRows<DeviceMatrix>& op, Context& context);
template <>
void run(const ReduceRows<DeviceMatrix>& op, Context& context);
template <>
void run(const WidenHalf<DeviceMatrix>& op, Context& context);
template <>
void run(const NarrowHalf<DeviceMatrix>& op, Context& context);
template <>
void run(const SquaredDistances<DeviceMatrix>& op, Context& context);  // distances.cu, down to LeaderClusters
template <>
void run(const KCenter<DeviceMatrix>& op, Context& context);
template <>
void run(const LeaderClusters<DeviceMatrix>& op, Context& context);
template <>
void run(const PhiloxFill<DeviceMatrix>& op, Context& context);  // philox.cu
template <>
void run(const NormalizeRows<DeviceMatrix>& op, Context& context);  // similarity.cu, down to MeanRows
template <>
void run(const InnerProducts<DeviceMatrix>& op, Context& context);
template <>
void run(const BestMatch<DeviceMatrix>& op, Context& context);
template <>
void run(const MeanRows<DeviceMatrix>& op, Context& context);
template <>
void run(const PageBounds<DeviceMatrix>& op, Context& context);  // pages.cu, down to SplitSigns
template <>
void run(const SplitSigns<DeviceMatrix>& op, Context& context);
template <>
void run(const BalanceWalk<DeviceMatrix>& op, Context& context);  // balance.cu
template <>
void run(const SpreadRows<DeviceMatrix>& op, Context& context);  // spread.cu

}  // namespace kvbench::kernels::cuda
