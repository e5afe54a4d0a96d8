// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/results.hpp>

#include <cmath>

#include <kvbench/core/enumeration.hpp>

namespace kvbench::replay {

std::string_view name_of(Status status) {
  constexpr std::string_view names[] = {"ok", "skipped", "failed", "infeasible"};
  return name_in(names, status);
}

std::string_view name_of(Refit refit) {
  constexpr std::string_view names[] = {"", "own", "fitted"};
  return name_in(names, refit);
}

std::string_view name_of(RankBy figure) {
  constexpr std::string_view names[] = {"", "kl_predicted", "residual_err", "rel_err"};
  return name_in(names, figure);
}

std::string_view name_of(Protocol protocol) {
  constexpr std::string_view names[] = {"auto", "prefill", "decode", "stream"};
  return name_in(names, protocol);
}

Bytes& Bytes::operator+=(const Bytes& other) {
  for (const auto field : {&Bytes::kv, &Bytes::meta, &Bytes::fast, &Bytes::slow, &Bytes::read, &Bytes::full})
    this->*field += other.*field;
  return *this;
}

double Bytes::of(CostKind cost) const {
  switch (cost) {
    case CostKind::memory:
      return kv + meta;
    case CostKind::fast:
      return fast;
    case CostKind::read:
      return read;
  }
  return NAN;
}

}  // namespace kvbench::replay
