// SPDX-License-Identifier: Apache-2.0
// What errors say.
#pragma once

#include <string>

namespace kvbench::testing {

/// The message of the exception that `action` throws, or "" where it throws none.
template <class E, class F>
std::string message_of(F action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace kvbench::testing
