// SPDX-License-Identifier: Apache-2.0
#include <kvbench/golden/ids.hpp>

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include <kvbench/trace/sha256.hpp>

namespace kvbench::golden {
namespace {

using List = std::vector<std::int32_t>;

std::string text_of(const List& list) {
  std::string out;
  std::int32_t before = 0;
  for (std::size_t begin = 0, end; begin < list.size(); begin = end) {
    for (end = begin + 1; end < list.size() && list[end] == list[end - 1] + 1;) ++end;
    if (!out.empty()) out += ' ';
    out += std::to_string(list[begin] - before);
    if (end - begin > 1) out += fmt::format("+{}", end - begin - 1);
    before = list[end - 1];
  }
  return out;
}

/// Removes a number from the beginning of the text; absent where there is none.
std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// Adds an id, and those that follow it, from the beginning of the text. Returns whether there is one.
bool take_run(std::string_view& text, List& list, std::size_t& left) {
  const std::optional<std::int32_t> distance = take_number(text);
  const std::optional<std::int32_t> more = take(text, '+') ? take_number(text) : 0;
  if (!distance || !more) return false;
  const std::int64_t first = std::int64_t{list.empty() ? 0 : list.back()} + *distance, count = std::int64_t{*more} + 1;
  if (first + count > std::numeric_limits<std::int32_t>::max() || count > static_cast<std::int64_t>(left)) return false;
  left -= static_cast<std::size_t>(count);
  for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<std::int32_t>(first + i));
  return true;
}

}  // namespace

Ids canonical(Ids ids) {
  for (List& list : ids) std::ranges::sort(list);
  if (std::ranges::all_of(ids, [&](const List& list) { return list == ids.front(); })) ids.resize(1);
  return ids;
}

std::string text_of(const Ids& ids) {
  std::string out;
  for (const List& list : ids) out += (&list == ids.data() ? "" : "/") + text_of(list);
  return out;
}

std::optional<Ids> parse_ids(std::string_view text) {
  Ids ids(1);
  std::size_t left = most_ids;
  while (!text.empty()) {
    if (take(text, '/')) {
      ids.emplace_back();
    } else if ((!ids.back().empty() && !take(text, ' ')) || !take_run(text, ids.back(), left)) {
      return std::nullopt;
    }
  }
  return ids;
}

std::string digest_of(const Ids& ids, Index group) {
  List all;
  for (Index g = 0; g < group; ++g) {
    const List& list = ids_of_head(ids, g);
    all.push_back(static_cast<std::int32_t>(list.size()));
    all.insert(all.end(), list.begin(), list.end());
  }
  return trace::sha256_of_tokens(all).substr(0, digest_digits);  // it finds a slip, not an adversary
}

}  // namespace kvbench::golden
