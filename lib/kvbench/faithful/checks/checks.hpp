// SPDX-License-Identifier: Apache-2.0
// Checks that methods hold what an oracle, or a sum of numbers, gives; a file each, which opens with the statement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/faithful/checks/decoded_rows.hpp>
#include <kvbench/faithful/checks/known_network.hpp>
#include <kvbench/faithful/oracle/balancekv.hpp>
#include <kvbench/faithful/oracle/chelsea.hpp>
#include <kvbench/faithful/oracle/subgen.hpp>
#include <kvbench/faithful/oracle/uniform.hpp>
#include <kvbench/replay/exact/exact_pass.hpp>
#include <kvbench/replay/records/record.hpp>

namespace kvbench::faithful {

// balancekv.cpp

/// A configuration and a stream. The seeds share a row: seed, seed + 1, ..
struct BalanceCase {
  std::string part;
  BalanceSetup setup;
  bounds::StreamPlan plan;
  Index seeds = 2;
  bool edge_values = false;  ///< values of exactly 1/2, 1 and 2 in place of those of the subject
};
/// Of the first tokens of a subject: batch and stream, exact pairs and smaller halves, all constants, shorter last
/// blocks, odd sizes, streams that start empty, norms at the edge of a bucket.
std::vector<BalanceCase> balance_cases(const bounds::Subject& subject);

/// The implementation under test: the snapshots of a stream.
using BalanceUnderTest = std::function<std::vector<bounds::Snapshot>(const bounds::Subject&, const bounds::StreamPlan&,
                                                                     const BalanceSetup&)>;
/// `balancekv` of the registry.
BalanceUnderTest library_balance(Backend& backend);

/// Adds the exact row of a case; none where no budget of this size can be met.
void check_balance_case(bounds::CheckContext& context, const BalanceCase& item, const BalanceUnderTest& under_test);

struct RepoCase {
  std::string part;
  RepoSetup setup;
  bounds::StreamPlan plan;
  Index seeds = 2;
};
std::vector<RepoCase> repo_cases(const bounds::Subject& subject);
using RepoUnderTest =
    std::function<std::vector<bounds::Snapshot>(const bounds::Subject&, const bounds::StreamPlan&, const RepoSetup&)>;
/// `balancekv-repo` of the registry.
RepoUnderTest library_repo(Backend& backend);
void check_repo_case(bounds::CheckContext& context, const RepoCase& item, const RepoUnderTest& under_test);

bounds::Check balancekv_algorithms();
bounds::Check balancekv_released();

// chelsea.cpp

void check_chelsea_algorithm(bounds::CheckContext& context, const bounds::ChelseaUnderTest& chelsea);

bounds::Check chelsea_algorithm();

// distortion.cpp

/// The decoder of keys at a number of bits.
using DecoderOfBits = std::function<KeyDecoder(int bits)>;

void check_distortion(bounds::CheckContext& context, const DecoderOfBits& decoder);

bounds::Check turboquant_distortion();

// exact_pass.cpp

/// An implementation of the exact pass over all queries of a head.
using ExactPass = std::function<replay::ExactBlock(const replay::Head&, Backend&)>;

/// That of a replay.
replay::ExactBlock replayed_exact_pass(const replay::Head& head, Backend& backend);

void check_exact_pass(bounds::CheckContext& context, const ExactPass& pass);

bounds::Check exact_noise_floor();

// half_step.cpp

/// A quantiser with equal steps: bits of a code and the numbers of a group, of consecutive channels of a token, or of
/// consecutive tokens of a channel (keys of KIVI).
struct StepFormat {
  QuantiserSetting setting;
  int bits = 4;
  Index group = 32;
  bool keys_by_tokens = false;

  bool by_tokens(Side side) const { return keys_by_tokens && side == Side::keys; }
};

/// `int` at every number of bits, q4_1, q5_1, kivi4 and kivi2.
std::vector<StepFormat> step_formats();

/// Decodes the rows of one side.
using StepDecoder =
    std::function<std::vector<float>(const StepFormat&, Side, const std::vector<float>& rows, Backend&)>;

/// Calls f(the places of the numbers of a group in rows [n, d]) for each group.
void for_each_step_group(const StepFormat& format, Side side, Index n, Index d,
                         const std::function<void(const std::vector<std::size_t>&)>& f);

void check_half_step(bounds::CheckContext& context, const StepDecoder& decoder);

bounds::Check quantiser_half_step();

// predicted_kl.cpp

/// The KL divergence in nats per scored token that a replay of a network predicts for each of its methods.
using NetworkPrediction = std::function<std::vector<double>(const KnownNetwork&, Backend&)>;

/// That of the rows over all layers.
std::vector<double> rows_prediction(const replay::ReplayResults& results);
/// The same of a replay of the network.
std::vector<double> replayed_prediction(const KnownNetwork& network, Backend& backend);

void check_predicted_kl(bounds::CheckContext& context, const NetworkPrediction& predict);

/// Whether a row is outside the region in which its prediction means anything.
using OutsideRule = std::function<bool(const replay::Record& row)>;

/// Of networks with and without a constant part of the keys, which are rounded to 4 bits by token.
void check_predicted_region(bounds::CheckContext& context, const OutsideRule& outside);

bounds::Check predicted_kl_second_order();
bounds::Check predicted_kl_region();

// rotations.cpp

/// Rows [n, d], rotated.
struct Rotation {
  std::string name;
  double rounding = 0;  ///< of a rotated row, relative to its length
  KeyDecoder turned;    ///< with the draws of a seed
};

/// Blocks of as many channels as the largest power of two that divides d, as `hadamard=true` rotates.
Rotation hadamard_rotation(const bounds::Subject& subject, Backend& backend);
/// That of turboquant.
Rotation random_rotation(const bounds::Subject& subject, Backend& backend);

void check_rotation(bounds::CheckContext& context, const Rotation& rotation);

bounds::Check rotation_products();

// sign_sketch.cpp

/// Keys whose residual is estimated from as many signs as they have channels.
struct SketchedKeys {
  std::string name;
  KeyDecoder rounded;    ///< without the sketch: what the residual is the distance from
  KeyDecoder estimated;  ///< with the sketch
  /// All bits spent on rounding, for comparison. Absent: there is no such quantiser, and no row about ln Z.
  KeyDecoder same_bits;
};

SketchedKeys sketch_alone(const bounds::Subject& subject, Backend& backend);
SketchedKeys turboquant_keys(const bounds::Subject& subject, Backend& backend);

void check_sketched_products(bounds::CheckContext& context, const SketchedKeys& keys);

bounds::Check qjl_unbiased();

// subgen.cpp

/// A run of the method on the first tokens of a subject.
struct SubgenCase {
  enum class Radius { given, from_queries, from_budget };

  std::string part;
  bounds::StreamPlan plan;
  SubgenSizes sizes;  ///< with the radius in force
  Radius radius = Radius::given;
  double delta_r = 0;   ///< Radius::from_queries
  bool decided = true;  ///< whether the radius is

  std::vector<methods::Assignment> settings() const;  ///< of the method `subgen`
  std::string text() const;                           ///< for CheckRow::params
};
/// Streams with a long prompt, a short one and none; radii given, derived from observed queries, chosen by the budget.
std::vector<SubgenCase> subgen_cases(const bounds::Subject& subject, Backend& backend);

/// What an implementation holds at the times of observe_stream().
using SubgenStream = std::function<std::vector<bounds::Snapshot>(const SubgenCase&)>;
void check_subgen_algorithm(bounds::CheckContext& context, const SubgenStream& stream);

bounds::Check subgen_algorithm1();

// uniform.cpp

/// Implementations of both baselines: what they hold at the times of observe_stream().
using UniformStream = std::function<std::vector<bounds::Snapshot>(const bounds::StreamPlan&)>;
using UniformRepoStream =
    std::function<std::vector<bounds::Snapshot>(const bounds::StreamPlan&, const UniformRepoSizes&)>;
void check_uniform(bounds::CheckContext& context, const UniformStream& stream);
void check_uniform_repo(bounds::CheckContext& context, const UniformRepoStream& stream);

bounds::Check uniform_samples();

}  // namespace kvbench::faithful
