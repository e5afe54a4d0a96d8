// SPDX-License-Identifier: Apache-2.0
// A golden row: what a method holds for one kv head of the bundled trace, and how wrong its answers are, so that
// another implementation of the method can be compared with it (docs/golden.md).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <kvbench/golden/ids.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::golden {

/// Lists have one item per query head of the kv head.
struct Row {
  std::string trace, sha256;  ///< name of the file, beginning of the digest of its bytes
  std::string method, params;
  Budget budget;
  std::uint32_t seed = 0;
  replay::Protocol protocol = replay::Protocol::automatic;
  std::string prompt;
  std::int64_t layer = 0;
  Index kv_head = 0;
  std::vector<std::string> backends;  ///< those that give this row: ref, or instruction sets of cpu

  Index budget_tokens = 0;  ///< what the budget means here, in tokens
  double total_bytes = 0, bytes_read = 0;
  std::vector<Index> entries;  ///< numbers of entries that answer the last query
  std::string ids_sha256;      ///< digest_of() their ids
  Ids ids;
  std::vector<double> weight_num, weight_den;  ///< sums of their weights; empty where all weights are 1
  std::vector<double> rel_err;                 ///< mean over the evaluated queries
  std::vector<double> rel_err_last;            ///< of the last query
  std::vector<double> recall;                  ///< mean over the evaluated queries; empty where it does not apply
  /// Predicted KL of compressing this kv head alone, in nats per scored token; NaN: not stated (states_prediction()).
  double kl_predicted = std::numeric_limits<double>::quiet_NaN();
  /// Figures agree where they differ by at most atol + rtol * |expected|. Rounding in fp32 moves these means by about
  /// 1e-6; one other token in the answer of one query moves the recall by more than 1e-5 (docs/golden.md).
  double rtol = 1e-5, atol = 5e-6;
  /// The same of kl_predicted, a square of sums whose terms cancel.
  double allowed_of_prediction() const { return 1e-9 + 100 * rtol * std::abs(kl_predicted); }

  /// Of a row that could not be computed: why. Such rows are never frozen.
  std::string fault;

  /// What the row is about. Several rows may have one key: those of back ends that choose other entries.
  auto key() const { return std::tie(method, params, budget, seed, protocol, prompt, layer, kv_head); }
};

/// "snapkv[window=16] at 25%mem, seed 0, decode, prompt 0, layer 11, kv head 0", for messages.
std::string name_of(const Row& row);

}  // namespace kvbench::golden
