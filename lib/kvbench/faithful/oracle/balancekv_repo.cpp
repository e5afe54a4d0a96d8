// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/balancekv.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::faithful {
namespace {

struct RepoToken {
  Index token = 0;
  double weight = 1;
};
using RepoList = std::vector<RepoToken>;
using RepoRow = std::vector<double>;

/// The method shifts exponents by at most 80, so that fp32 overflows above this one, and the sign is that of an
/// infinite sum.
constexpr double overflow = 150;

/// The rule of the released code over the signs of all blocks: see released_half() of the method for the wording. Every
/// token after the place at which both classes have reached half is kept at its weight; before it one class is dropped.
RepoList half_of_released_code(const RepoList& list, const std::vector<int>& signs) {
  const std::size_t m = list.size() / 2;
  if (m == 0) return {};
  const auto reaches = [&](int sign) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < signs.size(); ++i) {
      if (signs[i] == sign && ++count == m) return i;
    }
    return std::size_t{0};
  };
  const std::size_t c = std::max(reaches(1), reaches(-1));
  RepoList doubled, single;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > c) {
      single.push_back(list[i]);
    } else if (signs[i] != signs[c]) {
      doubled.push_back({list[i].token, 2 * list[i].weight});
    }
  }
  doubled.insert(doubled.end(), single.begin(), single.end());
  doubled.resize(std::min(doubled.size(), m));
  return doubled;
}

class RepoWalk {
 public:
  RepoWalk(const bounds::Subject& subject, const methods::Draws& draws, const RepoSetup& setup, const RepoRules& rules)
      : subject_(subject), draws_(draws), setup_(setup), rules_(rules) {}

  std::vector<int> sign(const RepoList& list, std::uint32_t round) {
    std::vector<int> signs;
    for (std::size_t begin = 0; begin < list.size(); begin += static_cast<std::size_t>(setup_.block)) {
      const auto end = std::min(list.size(), begin + static_cast<std::size_t>(setup_.block));
      const RepoList block(list.begin() + static_cast<std::ptrdiff_t>(begin),
                           list.begin() + static_cast<std::ptrdiff_t>(end));
      for (const int sign : sign_block(block, round)) signs.push_back(sign);
    }
    return signs;
  }
  bool close = false;

 private:
  std::vector<RepoRow> centred_keys(const RepoList& block) const {
    const auto d = static_cast<std::size_t>(subject_.d());
    RepoRow mean(d);
    const double count = rules_.padded_mean ? static_cast<double>(setup_.block) : static_cast<double>(block.size());
    for (const RepoToken& token : block) {
      for (std::size_t c = 0; c < d; ++c) mean[c] += double{subject_.key(token.token)[c]} / count;
    }
    std::vector<RepoRow> keys;
    for (const RepoToken& token : block) {
      RepoRow& key = keys.emplace_back();
      for (std::size_t c = 0; c < d; ++c) key.push_back(double{subject_.key(token.token)[c]} - mean[c]);
    }
    return keys;
  }

  std::vector<RepoRow> weighted_values(const RepoList& block) const {
    std::vector<RepoRow> values;
    for (const RepoToken& token : block) {
      RepoRow& value = values.emplace_back();
      for (const float x : subject_.value(token.token))
        value.push_back((rules_.weighted_values ? token.weight : 1) * double{x});
    }
    return values;
  }

  static std::vector<double> norms(const std::vector<RepoRow>& rows) {
    std::vector<double> all;
    for (const RepoRow& row : rows) all.push_back(std::sqrt(bounds::squared_norm(row)));
    return all;
  }

  std::vector<int> sign_block(const RepoList& block, std::uint32_t round) {
    const std::vector<RepoRow> keys = centred_keys(block), values = weighted_values(block);
    const double scale = setup_.temp * double{subject_.head.scale};
    const double d = static_cast<double>(subject_.d()), dv = static_cast<double>(subject_.dv());
    const std::vector<double> key_norms = norms(keys), value_norms = norms(values);
    const double longest = scale * std::pow(*std::ranges::max_element(key_norms), 2);
    std::vector<int> signs;
    for (std::size_t j = 0; j < block.size(); ++j) {
      KernelSum sum;
      for (std::size_t i = 0; i < j; ++i) {
        const double reach = scale * key_norms[i] * key_norms[j], size = value_norms[i] * value_norms[j];
        sum.add(signs[i], scale * bounds::dot(keys[i], keys[j]) - setup_.beta,
                bounds::dot(values[i], values[j]) + rules_.offset, longest + std::sqrt(d) * reach,
                std::sqrt(dv) * size + rules_.offset);
      }
      const double top = sum.top();
      close |= top > overflow;
      const double step = setup_.gamma * std::exp(std::min(top, 700.0));
      const KernelSum::Relative relative = sum.to(top);
      signs.push_back(
          sign_of(j, step * relative.value, step * relative.rounding, draws_.uniform(block[j].token, round)));
    }
    return signs;
  }

  int sign_of(std::size_t place, double pull, double rounding, double uniform) {
    if (place == 0 && rules_.first_positive) return 1;
    const double p = 0.5 - pull;
    close |= std::abs(uniform - p) <= rounding + 1e-5 * std::abs(pull) + 2e-7;
    return uniform < p ? 1 : -1;
  }

  const bounds::Subject& subject_;
  methods::Draws draws_;
  RepoSetup setup_;
  RepoRules rules_;
};

}  // namespace

std::vector<methods::Assignment> RepoSetup::settings() const {
  return {{"mass", released_mass ? "released" : "consistent"},
          {"temp", fmt::format("{}", temp)},
          {"gamma", fmt::format("{}", gamma)},
          {"beta", fmt::format("{}", beta)},
          {"block", fmt::format("{}", block)},
          {"rounds", fmt::format("{}", rounds)}};
}

std::string RepoSetup::text() const {
  return fmt::format("mass={};temp={};gamma={};beta={};block={}", released_mass ? "released" : "consistent", temp,
                     gamma, beta, block);
}

std::optional<OracleRun> balance_repo_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                             const RepoSetup& setup, const RepoRules& rules) {
  const auto rounds = rounds_of_budget(plan.prompt, plan.budget, {.pairs = false, .rounds = setup.rounds});
  if (!rounds) return std::nullopt;
  RepoWalk walk(subject, methods::Draws(plan.seed, "balancekv-repo", subject.head), setup, rules);
  RepoList list;
  for (Index i = 0; i < plan.prompt - rounds->recent; ++i) list.push_back({i, 1});
  for (Index round = 0; round < rounds->rounds; ++round) {
    list = half_of_released_code(list, walk.sign(list, static_cast<std::uint32_t>(round)));
  }
  bounds::Snapshot held{.tokens = plan.prompt};
  for (const RepoToken& token : list) {
    const double den = setup.released_mass ? std::pow(2.0, rounds->rounds) : token.weight;
    held.held.push_back({.id = static_cast<TokenId>(token.token), .num = token.weight, .den = den});
  }
  std::ranges::sort(held.held, {}, &bounds::HeldEntry::id);
  for (Index i = plan.prompt - rounds->recent; i < plan.prompt; ++i)
    held.held.push_back({.id = static_cast<TokenId>(i)});
  OracleRun run{.times = {held}};
  for (Index i = plan.prompt; i < plan.prompt + plan.appended; ++i) {
    held.tokens = i + 1;
    held.held.push_back({.id = static_cast<TokenId>(i)});
    run.times.push_back(held);
  }
  run.decided = walk.close ? 0 : std::ssize(run.times);
  return run;
}

}  // namespace kvbench::faithful
