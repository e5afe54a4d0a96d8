// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/request_text.hpp>

#include <kvbench/core/error.hpp>

namespace kvbench::config {
namespace {

constexpr std::int64_t most_seeds = 100000;

}  // namespace

const std::map<std::string, replay::Protocol>& protocols() {
  static const std::map<std::string, replay::Protocol> names = {{"auto", replay::Protocol::automatic},
                                                                {"prefill", replay::Protocol::prefill},
                                                                {"decode", replay::Protocol::decode},
                                                                {"stream", replay::Protocol::stream}};
  return names;
}

const std::map<std::string, replay::Decoded>& decoded_policies() {
  static const std::map<std::string, replay::Decoded> names = {{"method", replay::Decoded::method},
                                                               {"keep", replay::Decoded::keep}};
  return names;
}

std::vector<std::uint32_t> first_seeds(std::int64_t count) {
  if (count < 1 || count > most_seeds) {
    throw Error("`seeds` is {}; give a number of seeds from 1 to {}, or a list of seeds", count, most_seeds);
  }
  std::vector<std::uint32_t> seeds;
  for (std::int64_t s = 0; s < count; ++s) seeds.push_back(static_cast<std::uint32_t>(s));
  return seeds;
}

std::vector<std::uint32_t> listed_seeds(std::span<const std::int64_t> seeds) {
  if (seeds.empty()) throw Error("`seeds`: the list is empty; give at least one seed");
  if (std::ssize(seeds) > most_seeds)
    throw Error("`seeds`: the list has {} seeds; give at most {}", seeds.size(), most_seeds);
  std::vector<std::uint32_t> out;
  for (const std::int64_t seed : seeds) {
    if (seed < 0 || seed > 0xffffffffll) throw Error("`seeds`: {} is not between 0 and 2^32 - 1", seed);
    out.push_back(static_cast<std::uint32_t>(seed));
  }
  return out;
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
