// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/golden/row.hpp>

namespace kvbench::golden {

struct Comparison {
  std::vector<std::string> differences;  ///< what differs, one sentence each
  double deviation = 0;                  ///< the largest difference of two figures, divided by the one that is allowed
};

/// What is compared: everything; of a port what it holds and answers, but neither recall, which counts the tokens that
/// a method declares that it may drop, nor what a budget of memory means in tokens, which a port with a fixed selection
/// does not say.
enum class Scope { everything, port };

/// Ids, numbers of entries, budget and bytes must be equal, figures within the tolerances of `expected`. The rows have
/// the same key.
Comparison compare(const Row& expected, const Row& found, Scope scope = Scope::everything);

/// same; differs; missing: there is no golden row of this key; gone: there is one, and it was not computed.
enum class Outcome { same, differs, missing, gone };
std::string_view name_of(Outcome outcome);

struct Verified {
  Row row;              ///< as found; of a row that is gone, the golden one
  std::string backend;  ///< on which it was computed
  Outcome outcome = Outcome::same;
  double deviation = 0;
  std::string difference;  ///< the row and its differences in words; empty where it is the same
};

/// The rows found on a back end, each compared with the golden one of its key which states this back end, then the
/// golden ones that were not found. Where none states it (a GPU), those of all others will do. Configurations that do
/// not run and have no golden row are left out.
std::vector<Verified> verify(std::span<const Row> golden, std::span<const Row> found, std::string_view backend,
                             Scope scope = Scope::everything);

}  // namespace kvbench::golden
