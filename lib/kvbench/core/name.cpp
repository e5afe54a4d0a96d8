// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/name.hpp>

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>

namespace kvbench {

void check_name(std::string_view name, const std::string& where) {
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_character(name.substr(i));
    if (length == 0) throw Error("{} is not UTF-8 text (byte {}); choose a name in UTF-8.", printable(where), i);
    if (is_control(name.substr(i, length))) {
      throw Error("{} has a control character (byte {} is 0x{:02x}); choose a name without control characters.",
                  printable(where), i + length - 1, static_cast<unsigned char>(name[i + length - 1]));
    }
    i += length;
  }
}

std::vector<std::string> distinct_names(std::span<const std::string> paths) {
  const auto base = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const auto clashes = [&](const std::string& other) { return other != path && base(other) == base(path); };
    names.push_back(printable(std::ranges::any_of(paths, clashes) ? path : base(path)));
  }
  return names;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (lower_case(a[i - 1]) != lower_case(b[j - 1]))});
      if (i > 1 && j > 1 && lower_case(a[i - 1]) == lower_case(b[j - 2]) &&
          lower_case(a[i - 2]) == lower_case(b[j - 1])) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

/// The number of letters behind the dashes of a flag.
std::size_t letters_of(std::string_view name) {
  return name.size() - std::min(name.find_first_not_of('-'), name.size());
}

/// Whether `part` has at least two letters behind its dashes, and `name` begins with it, without case.
bool begins_with(std::string_view name, std::string_view part) {
  return letters_of(part) >= 2 && same_name(name.substr(0, part.size()), part);
}

/// The known names that begin with `name`, the shortest first, without those that go on from another of them, such as
/// "turboquant@vllm" beside "turboquant".
std::vector<std::string> completions(std::string_view name, std::span<const std::string> known) {
  std::vector<std::string> all;
  std::ranges::copy_if(known, std::back_inserter(all), [&](const std::string& one) { return begins_with(one, name); });
  std::ranges::sort(all, {}, [](const std::string& one) { return std::pair(one.size(), one); });
  std::vector<std::string> found;
  for (const std::string& one : all) {
    if (std::ranges::none_of(found, [&](const std::string& shorter) { return begins_with(one, shorter); }))
      found.push_back(one);
  }
  return found;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower_case, lower_case); }

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  if (const std::vector<std::string> all = completions(name, known); !all.empty()) return all.front();
  std::string best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t allowed = std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3);
    const bool alike = 2 * distance < std::max(letters_of(name), letters_of(candidate));  // '+' is not like 'a'
    if (alike && distance <= allowed && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty()) return best;
  const auto found = std::ranges::find_if(known, [&](const std::string& one) { return begins_with(name, one); });
  return found == known.end() ? "" : *found;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t most = 3;
  std::vector<std::string> all = completions(name, known);
  if (all.empty()) all.push_back(nearest_name(name, known));
  if (all.front().empty()) return "";
  all.resize(std::min(all.size(), most));
  return fmt::format(" Did you mean '{}'?", fmt::join(all, "' or '"));
}

std::string listed(std::span<const std::string> names) {
  constexpr std::size_t most = 20;
  if (names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} others", fmt::join(names.begin(), names.begin() + most, ", "), names.size() - most);
}

}  // namespace kvbench
