// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/claims.hpp>

#include <algorithm>

#include <kvbench/bounds/balancekv/balancekv_algorithms.hpp>
#include <kvbench/bounds/balancekv/balancekv_buckets.hpp>
#include <kvbench/bounds/balancekv/balancekv_exponent.hpp>
#include <kvbench/bounds/balancekv/balancekv_lower_bound.hpp>
#include <kvbench/bounds/balancekv/balancekv_memory_rate.hpp>
#include <kvbench/bounds/balancekv/balancekv_theorem31.hpp>
#include <kvbench/bounds/balancekv/balancekv_theorem32.hpp>
#include <kvbench/bounds/balancekv/balancekv_theorem33.hpp>
#include <kvbench/bounds/balancekv/balancekv_theorem34.hpp>
#include <kvbench/bounds/balancekv/balancekv_walk.hpp>
#include <kvbench/bounds/baselines/uniform_samples.hpp>
#include <kvbench/bounds/chelsea/chelsea_algorithm.hpp>
#include <kvbench/bounds/chelsea/chelsea_bias.hpp>
#include <kvbench/bounds/chelsea/chelsea_observations.hpp>
#include <kvbench/bounds/chelsea/chelsea_outliers.hpp>
#include <kvbench/bounds/chelsea/chelsea_partition.hpp>
#include <kvbench/bounds/chelsea/chelsea_tables.hpp>
#include <kvbench/bounds/chelsea/chelsea_theorem.hpp>
#include <kvbench/bounds/clusterkv/clusterkv_importance.hpp>
#include <kvbench/bounds/clusterkv/clusterkv_near_keys.hpp>
#include <kvbench/bounds/controls/adaptive_queries.hpp>
#include <kvbench/bounds/cost.hpp>
#include <kvbench/bounds/subgen/keys_cluster.hpp>
#include <kvbench/bounds/subgen/subgen_algorithm1.hpp>
#include <kvbench/bounds/subgen/subgen_amm.hpp>
#include <kvbench/bounds/subgen/subgen_lemma1.hpp>
#include <kvbench/bounds/subgen/subgen_lemma2.hpp>
#include <kvbench/bounds/subgen/subgen_partition.hpp>
#include <kvbench/bounds/subgen/subgen_size.hpp>
#include <kvbench/bounds/subgen/subgen_table1.hpp>
#include <kvbench/bounds/subgen/subgen_theorem1.hpp>
#include <kvbench/core/suggest.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench {

CheckRow& CheckContext::add(CheckKind kind, std::string part) {
  CheckRow& row = rows.emplace_back();
  row.claim = claim;
  row.kind = kind;
  row.part = std::move(part);
  if (subject != nullptr) {
    row.source = subject->source;
    row.prompt = subject->prompt;
    row.layer = subject->head.layer.value;
    row.kv_head = subject->head.head.value;
  } else if (reader != nullptr) {
    row.source = reader->path().substr(reader->path().find_last_of('/') + 1);
  }
  return row;
}

std::span<const Claim> all_claims() {
  // clang-format off
  static const std::vector<Claim> table = {
      subgen_algorithm1(),
      subgen_lemma1(),
      subgen_lemma2(),
      subgen_size(),
      subgen_partition(),
      subgen_amm(),
      subgen_theorem1(),
      subgen_corollary1(),
      subgen_quantities(),
      uniform_samples(),
      balancekv_algorithms(),
      balancekv_released(),
      balancekv_walk(),
      balancekv_theorem32(),
      balancekv_theorem33(),
      balancekv_theorem31(),
      balancekv_theorem34(),
      balancekv_exponent(),
      balancekv_buckets(),
      balancekv_bucket_count(),
      chelsea_algorithm(),
      balancekv_memory_rate(),
      balancekv_lower_bound(),
      negative_adaptive(),
      chelsea_theorem61(),
      chelsea_partition(),
      chelsea_observation1(),
      chelsea_observation2(),
      chelsea_bias(),
      chelsea_observation3(),
      chelsea_outlier_heads(),
      chelsea_table1(),
      chelsea_table2(),
      chelsea_table4(),
      clusterkv_importance(),
      clusterkv_near_keys(),
      subgen_keys_cluster(),
      subgen_dispersion(),
      subgen_table1(),
      subgen_cost(),
      balancekv_cost(),
      clusterkv_cost(),
      chelsea_cost(),
  };
  // clang-format on
  return table;
}

std::vector<const Claim*> find_claims(std::span<const Claim> claims, const std::vector<std::string>& ids,
                                      const std::vector<std::string>& methods) {
  std::vector<std::string> known;
  for (const Claim& claim : claims) known.push_back(claim.id);
  const auto matches = [](const std::string& id, const Claim& claim) {
    return claim.id == id || claim.id.starts_with(id + ".");
  };
  for (const std::string& id : ids) {
    if (std::ranges::any_of(claims, [&](const Claim& claim) { return matches(id, claim); })) continue;
    throw Error("`claims`: there is no claim '{}'.{} `kvbench validate --list` shows all of them.", id,
                did_you_mean(id, known));
  }
  for (const std::string& method : methods) find_method(method);
  std::vector<const Claim*> found;
  for (const Claim& claim : claims) {
    const bool asked =
        ids.empty() || std::ranges::any_of(ids, [&](const std::string& id) { return matches(id, claim); });
    const bool about = methods.empty() || std::ranges::find(methods, claim.method) != methods.end();
    if (asked && about) found.push_back(&claim);
  }
  return found;
}

}  // namespace kvbench
