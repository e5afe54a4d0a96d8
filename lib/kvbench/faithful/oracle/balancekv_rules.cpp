// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/balancekv.hpp>

#include <cmath>

#include <fmt/format.h>

namespace kvbench::faithful {

std::vector<methods::Assignment> BalanceSetup::settings() const {
  std::vector<methods::Assignment> all = {{"constants", constant},
                                          {"delta", fmt::format("{}", delta)},
                                          {"half", pairs ? "exact" : "smaller"},
                                          {"mode", stream ? "stream" : "batch"},
                                          {"rounds", fmt::format("{}", rounds)}};
  if (stream) {
    all.push_back({"t", fmt::format("{}", t)});
    all.push_back({"eps", fmt::format("{}", eps)});
  } else {
    all.push_back({"block", fmt::format("{}", block)});
  }
  return all;
}

std::string BalanceSetup::text() const {
  std::string out = fmt::format("c={};half={}", constant, pairs ? "exact" : "smaller");
  if (delta > 0) out += fmt::format(";delta={}", delta);
  if (rounds >= 0) out += fmt::format(";T={}", rounds);
  if (stream && t > 0) out += fmt::format(";t={}", t);
  return stream ? out + fmt::format(";eps={:.3g}", eps) : out + fmt::format(";block={}", block);
}

int bucket_of_norm(double norm) {
  int i = static_cast<int>(std::floor(std::log2(norm))) - 1;
  while (std::pow(2.0, i) < norm) ++i;
  return i;
}

}  // namespace kvbench::faithful
