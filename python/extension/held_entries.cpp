// SPDX-License-Identifier: Apache-2.0
#include <python/extension/held_entries.hpp>

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace kvbench::python {

using methods::Content, methods::Element, methods::Kind;

void HeldEntries::forget() {
  tokens_.clear();
  most_used = own_ = 0;
  weighted_ = false;
}

void HeldEntries::note(const Answer& answer) {
  Index used = 0, own = 0;
  for (const AnswerTable& table : answer) {
    used += table.most_used();
    if (table.rows > 1) copies = table.rows;
    weighted_ |= table.weighted();
    if (table.own()) own += table.most_used();
    if (table.own() || table.ids.empty()) continue;
    const auto end = static_cast<std::size_t>(std::max(*std::ranges::max_element(table.ids), -1) + 1);
    if (end > tokens_.size()) tokens_.resize(end);
    for (const std::int32_t id : table.ids) {
      if (id >= 0) tokens_[static_cast<std::size_t>(id)] = true;
    }
  }
  most_used = std::max(most_used, used);
  own_ = std::max(own_, own);
}

Index HeldEntries::rows_needed() const { return std::ranges::count(tokens_, true) + own_; }

void HeldEntries::check(const methods::Footprint& arrays, Index d, Index dv) const {
  for (const Content content : {Content::keys, Content::values}) {
    const bool keys = content == Content::keys;
    Index rows = 0, numbers = 0;
    bool codes = false;  // whose rows are not those of tokens
    for (const methods::FootprintArray& array : arrays) {
      if (array.content != content) continue;
      rows += array.rows, numbers += array.rows * array.cols;
      codes |= array.element != Element::kv && array.element != Element::f16 && array.element != Element::f32;
    }
    const Index needed = rows_needed(), cols = keys ? d : dv;
    if (codes || (rows >= needed && numbers >= needed * cols)) continue;
    const std::string held = rows < needed ? fmt::format("{} rows", rows) : fmt::format("{} numbers", numbers);
    throw std::logic_error(fmt::format(
        "footprint() holds {} of {}, but {} different entries have answered queries since tokens were appended{}", held,
        keys ? "keys" : "values", needed, rows < needed ? "" : fmt::format(", with {} numbers each", cols)));
  }
  const auto holds = [](const methods::FootprintArray& array) { return array.meta() && array.rows > 0; };
  if (weighted_ && std::ranges::none_of(arrays, holds))
    throw std::logic_error("entries have weights, but footprint() has no array of content \"meta\" that holds them");
}

void Allowance::check(std::span<const HeldEntries> heads) const {
  if (kind == Kind::sampling) return;
  Index used = 0;
  for (const HeldEntries& head : heads) used += head.most_used;
  const Index allowed = std::ssize(heads) * (budget + decoded);
  if (used <= allowed) return;
  throw std::logic_error(
      fmt::format("entries() returned {} entries on {} kv heads; a budget of {} and {} decoded tokens allow {}", used,
                  heads.size(), budget, decoded, allowed));
}

void Allowance::check(std::span<const HeldEntries> heads, std::span<const methods::Footprint> arrays) const {
  for (std::size_t h = 0; h < heads.size(); ++h) heads[h].check(arrays[h], d, dv);
  if (kind == Kind::retrieval) return;
  Index numbers = 0, copies = 1;
  for (const HeldEntries& head : heads) copies = std::max(copies, head.copies);
  for (const methods::Footprint& head : arrays) {
    for (const methods::FootprintArray& array : head) {
      if (array.element == Element::kv) numbers += array.rows * array.cols;
    }
  }
  const Index allowed = std::ssize(heads) * copies * (budget + decoded) * (d + dv);
  if (numbers <= allowed) return;
  throw std::logic_error(fmt::format(
      "footprint() holds {} numbers of keys and values on {} kv heads; a budget of {} and {} decoded tokens allow {}",
      numbers, heads.size(), budget, decoded, allowed));
}

}  // namespace kvbench::python
