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

void HeldEntries::check(const methods::Footprint& arrays) const {
  for (const Content content : {Content::keys, Content::values}) {
    Index rows = 0;
    bool codes = false;  // whose rows are not those of tokens
    for (const methods::FootprintArray& array : arrays) {
      if (array.content != content) continue;
      rows += array.rows;
      codes |= array.element != Element::kv && array.element != Element::f16 && array.element != Element::f32;
    }
    if (codes || rows >= rows_needed()) continue;
    throw std::logic_error(fmt::format(
        "footprint() holds {} rows of {}, but {} different entries have answered queries since tokens were appended",
        rows, content == Content::keys ? "keys" : "values", rows_needed()));
  }
  if (weighted_ && std::ranges::none_of(arrays, &methods::FootprintArray::meta))
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
  for (std::size_t h = 0; h < heads.size(); ++h) heads[h].check(arrays[h]);
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
