// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/plan.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <set>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

namespace kvbench::kvdump {
namespace {

constexpr std::int64_t observation_window = 128;

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

QuerySpec parse_queries(std::string_view text) {
  if (text.empty()) return {};
  if (text == "all") return {QuerySpec::all, 0};
  const auto colon = text.find(':');
  const auto kind = text.substr(0, colon);
  const auto count = colon == text.npos ? std::nullopt : parse_number<std::int64_t>(text.substr(colon + 1));
  if (count && *count > 0) {
    if (kind == "last") return {QuerySpec::last, *count};
    if (kind == "every") return {QuerySpec::every, *count};
    if (kind == "decode") return {QuerySpec::decode, *count};
  }
  throw Error("--queries {}: expected last:N, all, every:N or decode:N with N at least 1", text);
}

std::vector<int> parse_layers(std::string_view text, int num_layers) {
  std::set<int> layers;
  if (text == "all") {
    std::vector<int> every(static_cast<std::size_t>(num_layers));
    std::iota(every.begin(), every.end(), 0);
    return every;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    const auto item = text.substr(begin, comma - begin);
    const auto dash = item.find('-');
    const auto first = parse_number<int>(trimmed(item.substr(0, dash)));
    const auto last = dash == item.npos ? first : parse_number<int>(trimmed(item.substr(dash + 1)));
    if (!first || !last || *first > *last) {
      throw Error("--layers {}: '{}' is not a layer or range; give numbers such as 0,1,8 or 0-3", text, item);
    }
    if (*last >= num_layers) {
      throw Error("--layers {}: there is no layer {}; this model has layers 0 to {}", text, *last, num_layers - 1);
    }
    for (int layer = *first; layer <= *last; ++layer) layers.insert(layer);
    begin = comma + 1;
  }
  return {layers.begin(), layers.end()};
}

std::int64_t default_prompt_tokens(const QuerySpec& spec, std::int64_t num_tokens) {
  if (spec.kind != QuerySpec::decode) return num_tokens - std::min<std::int64_t>(256, num_tokens / 4);
  if (spec.count >= num_tokens) {
    throw Error(
        "--queries decode:{}: the prompt has only {} tokens, which leaves no context; give fewer decode steps or a "
        "longer prompt",
        spec.count, num_tokens);
  }
  return num_tokens - spec.count;
}

std::vector<std::int64_t> query_positions(const QuerySpec& spec, std::int64_t num_tokens, std::int64_t prompt_tokens) {
  std::int64_t first = 0;
  std::int64_t step = 1;
  switch (spec.kind) {
    case QuerySpec::all:
      break;
    case QuerySpec::last:
      first = std::max<std::int64_t>(0, num_tokens - spec.count);
      break;
    case QuerySpec::every:
      step = std::min(spec.count, num_tokens), first = (num_tokens - 1) % step;
      break;
    case QuerySpec::tail:
    case QuerySpec::decode:
      first = std::max<std::int64_t>(0, prompt_tokens - observation_window);
      break;
  }
  std::vector<std::int64_t> positions;
  for (std::int64_t position = first; position < num_tokens; position += step) positions.push_back(position);
  return positions;
}

std::vector<int> batch_sizes(const QuerySpec& spec, std::int64_t num_tokens, int batch) {
  const std::int64_t steps = spec.kind == QuerySpec::decode ? spec.count : 0;
  std::vector<int> sizes;
  for (std::int64_t left = num_tokens - steps; left > 0; left -= batch) {
    sizes.push_back(static_cast<int>(std::min<std::int64_t>(left, batch)));
  }
  sizes.insert(sizes.end(), static_cast<std::size_t>(steps), 1);
  return sizes;
}

}  // namespace kvbench::kvdump
