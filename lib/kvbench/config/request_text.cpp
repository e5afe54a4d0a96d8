// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/request_text.hpp>

#include <numeric>

#include <kvbench/core/error.hpp>

namespace kvbench::config {
std::vector<std::uint32_t> seeds_of(std::span<const std::int64_t> numbers, bool count) {
  constexpr std::int64_t most_seeds = 100000;
  if (count && (numbers[0] < 1 || numbers[0] > most_seeds))
    throw Error("`seeds` is {}; give a number of seeds from 1 to {}, or a list of seeds", numbers[0], most_seeds);
  if (numbers.empty()) throw Error("`seeds`: the list is empty; give at least one seed");
  if (std::ssize(numbers) > most_seeds)
    throw Error("`seeds`: the list has {} seeds; give at most {}", numbers.size(), most_seeds);
  std::vector<std::uint32_t> seeds(numbers.begin(), numbers.end());
  for (const std::int64_t seed : numbers) {
    if (seed < 0 || seed > 0xffffffffll) throw Error("`seeds`: {} is not between 0 and 2^32 - 1", seed);
  }
  if (count) seeds.resize(static_cast<std::size_t>(numbers[0])), std::iota(seeds.begin(), seeds.end(), 0u);
  return seeds;
}

void set_protection(replay::ReplayRequest& request, std::span<const std::int64_t> first_last, bool outside) {
  if (first_last.size() != 2 || first_last[0] < 0 || first_last[1] < 0) {
    throw Error(
        "{}: give two numbers, of first and of last tokens of the context that are kept exactly, such as 4 and 64",
        outside ? "`protect_outside`" : "`protect_first` and `protect_last`");
  }
  request.protect_first = first_last[0];
  request.protect_last = first_last[1];
  request.protect_outside = outside;
}

}  // namespace kvbench::config
