// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/registry.hpp>

#include <algorithm>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/suggest.hpp>
#include <kvbench/methods/eviction/exact.hpp>
#include <kvbench/methods/eviction/h2o.hpp>
#include <kvbench/methods/eviction/h2o_global.hpp>
#include <kvbench/methods/eviction/pyramidkv.hpp>
#include <kvbench/methods/eviction/random.hpp>
#include <kvbench/methods/eviction/sink.hpp>
#include <kvbench/methods/eviction/snapkv.hpp>
#include <kvbench/methods/eviction/subgen_kcenter.hpp>
#include <kvbench/methods/merging/bsm.hpp>
#include <kvbench/methods/merging/cam.hpp>
#include <kvbench/methods/merging/chelsea.hpp>
#include <kvbench/methods/merging/kmeans.hpp>
#include <kvbench/methods/merging/mesh.hpp>
#include <kvbench/methods/retrieval/clusterkv.hpp>
#include <kvbench/methods/retrieval/infinigen.hpp>
#include <kvbench/methods/retrieval/oracle_topk.hpp>
#include <kvbench/methods/retrieval/quest.hpp>
#include <kvbench/methods/sampling/balancekv.hpp>
#include <kvbench/methods/sampling/balancekv_repo.hpp>
#include <kvbench/methods/sampling/subgen.hpp>
#include <kvbench/methods/sampling/uniform.hpp>
#include <kvbench/methods/sampling/uniform_repo.hpp>

namespace kvbench::methods {

std::span<const MethodInfo> all_methods() {
  // clang-format off
  static const std::vector<MethodInfo> table = {
      exact_method(),
      sink_method(),
      h2o_method(),
      h2o_global_method(),
      snapkv_method(),
      pyramidkv_method(),
      cam_method(),
      uniform_method(),
      uniform_repo_method(),
      subgen_method(),
      subgen_kcenter_method(),
      balancekv_method(),
      balancekv_repo_method(),
      clusterkv_method(),
      clusterkv_repo_method(),
      quest_method(),
      infinigen_method(),
      chelsea_method(),
      bsm_method(),
      kmeans_method(),
      mesh_method(),
      oracle_topk_method(),
      random_method(),
  };
  // clang-format on
  return table;
}

std::vector<MethodSettings> rows_of_all() {
  std::vector<MethodSettings> rows;
  for (const MethodInfo& method : all_methods()) {
    rows.push_back({&method, {}});
    for (const auto& variant : method.variants) rows.push_back({&method, variant});
  }
  return rows;
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view names[] = {"exact", "eviction", "sampling", "merging", "retrieval", "quantisation"};
  return name_in(names, kind);
}

const MethodInfo& find_method(std::string_view name) {
  std::vector<std::string> known;
  for (const MethodInfo& method : all_methods()) {
    if (method.name == name || std::ranges::find(method.aliases, name) != method.aliases.end()) return method;
    known.push_back(method.name);
    known.insert(known.end(), method.aliases.begin(), method.aliases.end());
  }
  throw Error("there is no method '{}'.{} `kvbench methods` lists all of them.", name, did_you_mean(name, known));
}

}  // namespace kvbench::methods
