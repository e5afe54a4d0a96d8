// SPDX-License-Identifier: Apache-2.0
// Shared code of the tests of damaged traces.
#pragma once

#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <kvbench/core/error.hpp>

#include <unit/trace/raw.hpp>
#include <unit/trace/sample.hpp>

namespace kvbench::trace::test {

/// The message of Reader for a good trace that `spoil` has changed; "" where it is read.
inline std::string complaint(const std::function<void(RawFile&)>& spoil) {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  {
    RawFile file(folder / "t.h5");
    REQUIRE(file.id() >= 0);
    spoil(file);
  }
  return message_of<Error>([&] { const Reader reader(folder / "t.h5"); });
}

inline std::string complaint_about_bytes(const std::string& bytes) {
  const TempFolder folder;
  std::ofstream(folder / "t.h5", std::ios::binary) << bytes;
  return message_of<Error>([&] { const Reader reader(folder / "t.h5"); });
}

}  // namespace kvbench::trace::test
