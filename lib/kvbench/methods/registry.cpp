// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/registry.hpp>

#include <algorithm>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/eviction/h2o.hpp>
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/eviction/sink.hpp>
#include <kvbench/methods/merging/cam.hpp>
#include <kvbench/methods/merging/chelsea.hpp>
#include <kvbench/methods/merging/methods.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/retrieval/infinigen.hpp>
#include <kvbench/methods/retrieval/magicpig.hpp>
#include <kvbench/methods/retrieval/methods.hpp>
#include <kvbench/methods/retrieval/quest.hpp>
#include <kvbench/methods/retrieval/rocketkv.hpp>
#include <kvbench/methods/retrieval/vattention.hpp>
#include <kvbench/methods/sampling/balancekv.hpp>
#include <kvbench/methods/sampling/methods.hpp>
#include <kvbench/methods/sampling/subgen.hpp>
#include <kvbench/methods/sets.hpp>

namespace kvbench::methods {

std::span<const MethodInfo> all_methods() {
  // clang-format off
  static const std::vector<MethodInfo> table = {
      exact_method(),
      sink_method(),
      h2o_method(),
      h2o_global_method(),
      snapkv_method(),
      snapkv_kvpress_method(),
      pyramidkv_method(),
      knorm_method(),
      keydiff_method(),
      curdkv_method(),
      lagkv_method(),
      lagkv_kvpress_method(),
      tova_method(),
      tova_kvpress_method(),
      expected_attention_method(),
      triattention_method(),
      compactor_method(),
      r_kv_method(),
      duo_method(),
      duo_kvpress_method(),
      cam_method(),
      uniform_method(),
      uniform_repo_method(),
      subgen_method(),
      subgen_kcenter_method(),
      balancekv_method(),
      balancekv_repo_method(),
      kh_compress_method(),
      clusterkv_method(),
      clusterkv_repo_method(),
      quest_method(),
      infinigen_method(),
      vattention_method(),
      rocketkv_method(),
      magicpig_method(),
      retroinfer_method(),
      twilight_method(),
      chelsea_method(),
      bsm_method(),
      kmeans_method(),
      mesh_method(),
      attention_matching_method(),
      wildcat_method(),
      int_method(),
      int8_method(),
      int4_method(),
      int2_method(),
      q8_0_method(),
      q6_0_method(),
      q5_1_method(),
      q5_0_method(),
      q4_1_method(),
      q4_0_method(),
      iq4_nl_method(),
      kivi4_method(),
      kivi2_method(),
      kvquant_nofisher_method(),
      fp8_method(),
      nvfp4_method(),
      turboquant_method(),
      turboquant_vllm_method(),
      qjl_method(),
      oracle_topk_method(),
      oracle_error_method(),
      random_method(),
  };
  // clang-format on
  return table;
}

std::span<const Wrapper> all_wrappers() {
  static const std::vector<Wrapper> table = {adakv_wrapper(), adakv_kvpress_wrapper(), criticalkv_wrapper()};
  return table;
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view names[] = {"exact", "eviction", "sampling", "merging", "retrieval", "quantisation"};
  return name_in(names, kind);
}

std::optional<Kind> find_family(std::string_view name) {
  for (const std::string_view word : {"quantization", "quantisers", "quantizers"}) {
    if (same_name(name, word)) return Kind::quantisation;
  }
  const auto is = [&](const MethodInfo& m) { return m.kind != Kind::exact && same_name(name_of(m.kind), name); };
  const auto found = std::ranges::find_if(all_methods(), is);
  return found == all_methods().end() ? std::nullopt : std::optional(found->kind);
}

bool is_set(std::string_view name) {
  const auto is = [&](const std::string& word) { return same_name(name, word); };
  return std::ranges::any_of(set_names(), is) || find_family(name);
}

}  // namespace kvbench::methods
