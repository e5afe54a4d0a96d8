// SPDX-License-Identifier: Apache-2.0
// What a result may depend on: the seed where a method draws, and neither the caches nor the heads that were computed
// before. Results that a method computes on first use are shared by budgets and seeds.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

using Request = std::pair<Index, std::uint32_t>;  ///< budget and seed

struct Made {
  std::vector<Result> results;                                ///< of prefill
  std::vector<std::vector<std::vector<Entry>>> after_decode;  ///< by head, at the last token
  std::vector<std::pair<std::string, double>> notes;
  friend bool operator==(const Made&, const Made&) = default;
};

/// Absent where the method is infeasible.
std::optional<Made> make(const PreparedRow& prepared, Request request, const Heads& heads, Trial& trial) {
  trial.describe(fmt::format("budget {}, seed {}", request.first, request.second));
  Made made;
  try {
    const Instance instance = prepared.open(request.first, request.second);
    made.results = trial.prefill(instance, heads);
    for (auto& head : trial.decode(instance, heads)) made.after_decode.push_back(head.back().entries);
    for (const methods::Note& note : instance.session->notes()) made.notes.emplace_back(note.text, note.count);
  } catch (const methods::Infeasible&) {
    return std::nullopt;
  }
  return made;
}

/// Prefill and decode at a budget of half the tokens.
std::vector<Result> run(const Heads& heads, std::uint32_t seed, Trial& trial) {
  const Index budget = heads[0].n / 2;
  auto results = trial.prefill(trial.open(heads, budget, seed), heads);
  for (auto& head : trial.decode(trial.open(heads, budget, seed), heads))
    results.insert(results.end(), std::move_iterator(head.begin()), std::move_iterator(head.end()));
  return results;
}

/// Whether another seed gives other entries or answers, in prefill, or in decode, because a method may draw for decoded
/// tokens only. The same seed must give the same results, and so must every seed where none is declared.
bool depends_on_seed(const Shape& shape, Trial& trial) {
  Heads heads = trial.heads(shape);
  // With larger values the step of balancekv-repo forces every sign.
  for (HeadData& head : heads) {
    for (float& x : head.values) x /= 16;
  }
  const auto first = run(heads, 1, trial);
  bool differs = false;
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    const bool same = run(heads, seed, trial) == first;
    require(seed != 1 || same,
            "two runs of the same seed differ; random numbers must follow from the seed and the head alone");
    require(same || trial.info().depends_on_seed(trial.row().params),
            "another seed gives another result, but `seeded` is not true; set it");
    differs |= !same;
  }
  return differs;
}

}  // namespace

std::string seeds_repeat(Trial& trial) {
  const bool differs = depends_on_seed({}, trial);
  if (!trial.info().depends_on_seed(trial.row().params)) return {};
  // In a short context a method that draws initial centroids may have no choice, and in a narrow head one that draws a
  // sketch, whose columns then span the same space.
  require(differs || depends_on_seed({.n = 480, .d = 64}, trial),
          "`seeded` is true, but four seeds give the same results; leave it out");
  return {};
}

std::string caches_are_independent(Trial& trial) {
  const std::vector<Request> falling = {{110, 1}, {50, 1}, {41, 1}, {5, 1}, {110, 2}, {50, 2}, {41, 2}, {5, 2}};
  const std::vector<Request> rising(falling.rbegin(), falling.rend());
  const std::vector<Request> mixed = {{41, 1}, {110, 2}, {5, 1}, {5, 1}, {50, 1}, {5, 2}, {50, 2}, {50, 1}};
  const Heads heads = trial.heads({.n = 120});
  std::map<Request, std::optional<Made>> alone;
  for (const Request& request : falling)
    alone[request] = make(PreparedRow(trial.row(), heads, trial.backend()), request, heads, trial);
  for (const auto& order : {falling, rising, mixed}) {
    const PreparedRow prepared(trial.row(), heads, trial.backend());
    for (const Request& request : order) {
      require(make(prepared, request, heads, trial) == alone.at(request),
              "alone it gives another result; caches must not share what changes");
    }
  }
  return {};
}

std::string heads_are_independent(Trial& trial) {
  const Heads others = trial.heads(), of_other_prompt = trial.heads({}, 8);
  Heads heads = trial.heads({}, 4);
  for (HeadData& head : heads) head.layer = LayerId(2);
  if (heads.size() == 1) heads[0].head = KvHeadId(4);  // those of a layer count from 0
  run(others, 1, trial);
  const auto first = run(heads, 1, trial);
  run(of_other_prompt, 1, trial);
  require(run(heads, 1, trial) == first,
          "after another prompt it gives another result; what is computed for a head must not be kept for others");
  return {};
}

std::string heads_come_in_any_order(Trial& trial) {
  const Heads heads = trial.heads();
  if (heads.size() == 1) return "it sees one head at a time";
  const Heads reversed(heads.rbegin(), heads.rend());
  const PreparedRow prepared(trial.row(), heads, trial.backend());
  for (const Index budget : {24, 40}) {
    const Instance forth = prepared.open(budget, 1), back = prepared.open(budget, 1, true);
    auto prefilled = trial.prefill(back, reversed);
    std::ranges::reverse(prefilled);
    require(trial.prefill(forth, heads) == prefilled,
            "in reverse order the heads give another result; none may use what another has not brought yet");
    auto decoded = trial.decode(back, reversed);
    std::ranges::reverse(decoded);
    require(trial.decode(forth, heads) == decoded, "in reverse order the heads decode to another result");
  }
  return {};
}

}  // namespace kvbench::testing
