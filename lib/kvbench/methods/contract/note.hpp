// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace kvbench::methods {

/// A remark that a row reports with its figures: an event with its count, or a fact (count 0).
struct Note {
  std::string text;
  double count = 0;  ///< summed over heads and seeds
};
/// Adds the notes to `merged`, in which notes of equal text are one, with their counts summed.
inline void merge_notes(std::vector<Note>& merged, std::span<const Note> notes) {
  for (const Note& note : notes) {
    const auto known = std::ranges::find(merged, note.text, &Note::text);
    if (known == merged.end())
      merged.push_back(note);
    else
      known->count += note.count;
  }
}
/// "TEXT: COUNT", or the text of a fact.
inline std::string describe(const Note& note) {
  return note.count > 0 ? fmt::format("{}: {}", note.text, note.count) : note.text;
}

}  // namespace kvbench::methods
