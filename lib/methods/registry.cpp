// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/registry.hpp>

#include <algorithm>

#include <kvbench/core/suggest.hpp>
#include <kvbench/methods/balancekv.hpp>
#include <kvbench/methods/balancekv_repo.hpp>
#include <kvbench/methods/bsm.hpp>
#include <kvbench/methods/cam.hpp>
#include <kvbench/methods/chelsea.hpp>
#include <kvbench/methods/clusterkv.hpp>
#include <kvbench/methods/exact.hpp>
#include <kvbench/methods/h2o.hpp>
#include <kvbench/methods/h2o_global.hpp>
#include <kvbench/methods/infinigen.hpp>
#include <kvbench/methods/kmeans.hpp>
#include <kvbench/methods/mesh.hpp>
#include <kvbench/methods/oracle_topk.hpp>
#include <kvbench/methods/pyramidkv.hpp>
#include <kvbench/methods/quest.hpp>
#include <kvbench/methods/random.hpp>
#include <kvbench/methods/sink.hpp>
#include <kvbench/methods/snapkv.hpp>
#include <kvbench/methods/subgen.hpp>
#include <kvbench/methods/subgen_kcenter.hpp>
#include <kvbench/methods/uniform.hpp>
#include <kvbench/methods/uniform_repo.hpp>

namespace kvbench {

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

std::string_view name_of(Kind kind) {
  constexpr std::string_view names[] = {"exact", "subset", "sample", "merge", "select", "quantise"};
  return names[static_cast<std::size_t>(kind)];
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

}  // namespace kvbench
