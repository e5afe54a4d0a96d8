// SPDX-License-Identifier: Apache-2.0
#include <kvbench/validate/validate.hpp>

#include <algorithm>

#include <kvbench/bounds/balancekv/checks.hpp>
#include <kvbench/bounds/chelsea/checks.hpp>
#include <kvbench/bounds/clusterkv/checks.hpp>
#include <kvbench/bounds/controls/adaptive_queries.hpp>
#include <kvbench/bounds/cost/checks.hpp>
#include <kvbench/bounds/subgen/checks.hpp>
#include <kvbench/bounds/vattention/coverage.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::validate {

std::span<const bounds::Check> all_checks() {
  // clang-format off
  static const std::vector<bounds::Check> table = {
      faithful::exact_noise_floor(),
      faithful::predicted_kl_second_order(),
      faithful::predicted_kl_region(),
      faithful::subgen_algorithm1(),
      bounds::subgen_lemma1(),
      bounds::subgen_lemma2(),
      bounds::subgen_size(),
      bounds::subgen_partition(),
      bounds::subgen_amm(),
      bounds::subgen_theorem1(),
      bounds::subgen_corollary1(),
      bounds::subgen_quantities(),
      faithful::uniform_samples(),
      faithful::balancekv_algorithms(),
      faithful::balancekv_released(),
      bounds::balancekv_walk(),
      bounds::balancekv_theorem32(),
      bounds::balancekv_theorem33(),
      bounds::balancekv_theorem31(),
      bounds::balancekv_theorem34(),
      bounds::balancekv_exponent(),
      bounds::balancekv_buckets(),
      bounds::balancekv_bucket_count(),
      faithful::chelsea_algorithm(),
      faithful::qjl_unbiased(),
      faithful::turboquant_distortion(),
      faithful::rotation_products(),
      faithful::quantiser_half_step(),
      bounds::balancekv_memory_rate(),
      bounds::balancekv_lower_bound(),
      bounds::negative_adaptive(),
      bounds::chelsea_theorem61(),
      bounds::chelsea_partition(),
      bounds::chelsea_observation1(),
      bounds::chelsea_observation2(),
      bounds::chelsea_bias(),
      bounds::chelsea_observation3(),
      bounds::chelsea_outlier_heads(),
      bounds::chelsea_table1(),
      bounds::chelsea_table2(),
      bounds::chelsea_table4(),
      bounds::clusterkv_importance(),
      bounds::clusterkv_near_keys(),
      bounds::vattention_coverage(),
      bounds::subgen_keys_cluster(),
      bounds::subgen_dispersion(),
      bounds::subgen_table1(),
      bounds::subgen_cost(),
      bounds::balancekv_cost(),
      bounds::clusterkv_cost(),
      bounds::chelsea_cost(),
  };
  // clang-format on
  return table;
}

std::vector<const bounds::Check*> find_checks(std::span<const bounds::Check> checks,
                                              const std::vector<std::string>& ids,
                                              const std::vector<std::string>& methods) {
  std::vector<std::string> known;
  for (const bounds::Check& check : checks) known.push_back(check.id);
  const auto matches = [](std::string_view id, const bounds::Check& check) {
    if (id.ends_with(".*")) id.remove_suffix(2);  // a prefix, as shells write it
    return check.id == id || check.id.starts_with(std::string(id) + ".");
  };
  for (const std::string& id : ids) {
    if (std::ranges::any_of(checks, [&](const bounds::Check& check) { return matches(id, check); })) continue;
    throw Error("`checks`: there is no check '{}'.{} `kvbench validate --list` shows all of them.", id,
                did_you_mean(id, known));
  }
  std::vector<std::string> names;
  for (const std::string& method : methods) names.push_back(methods::find_method(method).name);
  std::vector<const bounds::Check*> found;
  for (const bounds::Check& check : checks) {
    const bool asked =
        ids.empty() || std::ranges::any_of(ids, [&](const std::string& id) { return matches(id, check); });
    const bool about = names.empty() || std::ranges::find(names, check.about()) != names.end();
    if (asked && about) found.push_back(&check);
  }
  return found;
}

}  // namespace kvbench::validate
