// SPDX-License-Identifier: Apache-2.0
// What is held of the spans of contexts, as rows say it.
#pragma once

#include <string>
#include <utility>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench::replay {

/// Whether a method has tokens that it holds: it neither merges them nor chooses among all of them for each query.
inline bool holds_tokens(const methods::MethodInfo& method) {
  return method.kind != methods::Kind::merging && method.kind != methods::Kind::retrieval;
}

class SpanShares {
 public:
  /// Of a span's `all` tokens (above 0) so many are held. Spans of one name are one.
  void add(const std::string& name, double held, double all);
  /// "system 1.000, user 0.312", in the order in which names were added; "" if none were. `lost`: the other shares.
  std::string text(bool lost) const;

 private:
  OrderedMap<std::string, std::pair<double, double>> counts_;
};

}  // namespace kvbench::replay
