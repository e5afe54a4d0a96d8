// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

void merge_notes(std::vector<Note>& merged, std::span<const Note> notes) {
  for (const Note& note : notes) {
    const auto known = std::ranges::find(merged, note.text, &Note::text);
    if (known == merged.end()) {
      merged.push_back(note);
    } else {
      known->count += note.count;
    }
  }
}

std::string describe(const Note& note) {
  return note.count > 0 ? fmt::format("{}: {}", note.text, note.count) : note.text;
}

}  // namespace kvbench::methods
