// SPDX-License-Identifier: Apache-2.0
// The settings of Chelsea (arXiv 2506.11418) as its checks vary them, and the implementation under test.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/trials/stream.hpp>

namespace kvbench::bounds {

struct ChelseaSettings {
  Index sinks = 16, recent = 64;  ///< section 7.1
  Index chunk = 256;              ///< section 7.1
  Index slack = 128;
  double ratio = 0.5, decay = 0, floor = 0.05;  ///< appendix C.2
  bool concat = false;                          ///< the remaining entries of A before those of B (section 5.2)

  std::vector<methods::Assignment> assignments() const;
  std::string text() const;  ///< for CheckRow::params
};

/// The implementation under test, with these settings. Mutants replace it.
using ChelseaUnderTest = std::function<MethodUnderTest(const ChelseaSettings&)>;
ChelseaUnderTest registered_chelsea();

}  // namespace kvbench::bounds
