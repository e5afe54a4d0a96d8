// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <kvbench/methods/contract/info.hpp>

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

std::string against_values_in_keys(const MethodInfo& info, const Params& params) {
  if (info.own_values) return values_apart;
  if (!info.rounds || (info.one_rule && info.one_rule(params) > 0)) return "";
  return fmt::format(
      "{} rounds keys and values by rules of their own, or a whole key by one scale, and in this trace the values are "
      "a part of the keys (MLA), which a cache stores as one row of two parts",
      info.name);
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
