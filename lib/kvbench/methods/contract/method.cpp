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

MakeCaches each_head(std::vector<MakeCache> heads) {
  return [heads = std::move(heads)](Index budget, std::uint32_t seed) {
    Caches caches;
    for (const MakeCache& make : heads) caches.push_back(make(budget, seed));
    return caches;
  };
}

MakeCache only_head(MakeCaches heads) {
  return
      [heads = std::move(heads)](Index budget, std::uint32_t seed) { return std::move(heads(budget, seed).front()); };
}

}  // namespace kvbench::methods
