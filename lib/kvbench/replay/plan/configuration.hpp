// SPDX-License-Identifier: Apache-2.0
// What results are about: methods with their parameters, configurations, heads. Whoever reads results needs no more of
// a request.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::replay {

/// When tokens are compressed and which queries are evaluated.
///   prefill    the context is compressed once; the queries of the last `window` tokens are evaluated
///   decode     the context is compressed once; every later token is appended, and its query is evaluated
///   stream     every token is appended, beginning with the first, and every recorded query is evaluated
///   automatic  decode where the trace has tokens after its prompt, otherwise prefill
enum class Protocol { automatic, prefill, decode, stream };
std::string_view name_of(Protocol protocol);

/// A figure by which rows are ranked: the number of its row in records/figures.hpp, from 1 on; 0: the first one that
/// all rows of a budget have, and of a record none.
enum class FigureNumber : int {};
/// "" of 0.
std::string_view name_of(FigureNumber figure);

/// The reason of rows whose method was calibrated on the context that it compresses.
inline constexpr std::string_view calibrated_on_evaluated = "calibrated on the evaluated context";

/// A method with its parameters.
struct MethodChoice {
  const methods::MethodInfo* info = nullptr;
  methods::Params params;

  bool depends_on_seed() const { return info->depends_on_seed(params); }
};

/// Whether two choices compute the same.
inline bool same(const MethodChoice& a, const MethodChoice& b) {
  return a.info == b.info && a.params.text() == b.params.text();
}

/// One configuration of the request: a method at a budget with a seed.
struct Configuration {
  std::size_t method = 0;  ///< index into ReplayRequest::methods
  std::size_t budget = 0;  ///< index into ReplayRequest::budgets
  std::uint32_t seed = 0;
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

/// A kv head of a layer of a prompt of the trace.
struct HeadPlace {
  std::size_t prompt = 0;  ///< index into TraceInfo::prompts
  std::size_t layer = 0;   ///< index into PromptInfo::layers
  Index kv_head = 0;
  friend auto operator<=>(const HeadPlace&, const HeadPlace&) = default;
};

}  // namespace kvbench::replay
