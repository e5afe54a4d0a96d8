// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/subgen/checks.hpp>
#include <kvbench/faithful/checks/checks.hpp>

namespace kvbench::faithful {
namespace {

constexpr Index most_mutated = 256;  // tokens of the stream
constexpr double everything = 1e15;  // a radius that covers all keys
constexpr Index slots_of_lemma1 = 32;

/// SubGen by the given rules on a subject whose last quarter is decoded.
class FaultySubgen {
 public:
  FaultySubgen(const bounds::Subject& subject, const SubgenSizes& sizes, const SubgenRules& rules)
      : subject_(subject),
        sizes_(sizes),
        rules_(rules),
        clusters_(subgen_clusters(subject, prompt(), subject.tokens(), sizes.delta, rules)) {}

  /// As the checks see a run: with the clusters that the faulty rules lead to.
  bounds::SubgenSetup setup() const {
    bounds::SubgenSetup setup{
        .params = {.t = sizes_.t, .s = sizes_.s, .delta = sizes_.delta}, .budget = 1, .slots = sizes_.s};
    setup.set_partition({.radius = static_cast<float>(sizes_.delta),
                         .labels = clusters_.labels,
                         .representatives = clusters_.opened_by});
    return setup;
  }

  /// The entries after the first tokens.
  bounds::SubgenSketch kept(std::uint32_t seed, Index tokens) const {
    SubgenLists lists(subject_, clusters_, sizes_, seed, rules_);
    for (Index i = 0; i < tokens; ++i) take(lists, i);
    bounds::SubgenSketch sketch;
    for (const bounds::HeldEntry& entry : lists.entries()) {
      sketch.ids.push_back(entry.id);
      sketch.num.push_back(entry.num);
      sketch.den.push_back(entry.den);
    }
    return sketch;
  }
  bounds::Sketcher kept() const {
    return [this](std::uint32_t seed) { return kept(seed, subject_.tokens()); };
  }

  /// With logits and answers of the subject's queries.
  bounds::Sketcher answered(std::span<const bounds::SubgenQuery> queries) const {
    return [this, queries](std::uint32_t seed) {
      bounds::SubgenSketch sketch = kept(seed, subject_.tokens());
      for (const bounds::SubgenQuery& query : queries) {
        std::vector<double> exponentials;
        for (const TokenId id : sketch.ids) {
          exponentials.push_back(query.a[static_cast<std::size_t>(id)]);
          sketch.logits.push_back(std::log(exponentials.back()) + query.shift);
        }
        const double tau = subgen_tau(sketch, exponentials);
        for (const double z : subgen_z(subject_, sketch, exponentials)) sketch.answers.push_back(z / tau);
      }
      return sketch;
    };
  }

  bounds::SlotHistory history() const {
    return [this](std::uint32_t seed, std::span<const Index> times) {
      SubgenLists lists(subject_, clusters_, sizes_, seed, rules_);
      std::vector<std::vector<TokenId>> history;
      for (Index i = 0; i < times.back(); ++i) {
        take(lists, i);
        if (std::ranges::find(times, i + 1) != times.end()) history.push_back(lists.slots());
      }
      return history;
    };
  }

 private:
  Index prompt() const { return subject_.tokens() - subject_.tokens() / 4; }
  void take(SubgenLists& lists, Index token) const {
    if (token < prompt() || rules_.decoded_taken) lists.take(token);
  }

  const bounds::Subject& subject_;
  SubgenSizes sizes_;
  SubgenRules rules_;
  SubgenClusters clusters_;
};

/// Half the distance of the first key to a typical other one: clusters of several keys.
double shared_radius(const bounds::Subject& subject) {
  std::vector<double> distances;
  for (Index i = 1; i < subject.tokens(); ++i)
    distances.push_back(bounds::squared_distance(subject.key(0), subject.key(i)));
  if (distances.empty()) return 1;
  std::ranges::nth_element(distances, distances.begin() + std::ssize(distances) / 2);
  const double middle = std::sqrt(distances[distances.size() / 2]);
  return middle > 0 ? double{static_cast<float>(middle / 2)} : 1;
}

void mutate_lemma1(bounds::CheckContext context, const bounds::SubgenValues& values, const SubgenRules& rules) {
  const bounds::Subject& subject = *context.subject;
  const Index n = subject.tokens();
  const FaultySubgen faulty(subject, {.t = 1, .s = slots_of_lemma1, .delta = everything}, rules);
  const std::vector<Index> times = {n / 2, n};
  std::vector<bounds::SubgenSketch> sketches;
  for (const Index time : times) sketches.push_back(faulty.kept(0, time));
  check_mu(context, values, times, sketches);
  check_entry_counts(context, values, slots_of_lemma1, faulty.kept());
  check_slots(context, values, times, faulty.history());
}

void mutate_clusters(bounds::CheckContext& context, const bounds::SubgenValues& values,
                     std::span<const bounds::SubgenQuery> queries, const SubgenRules& rules) {
  const bounds::Subject& subject = *context.subject;
  const double delta = shared_radius(subject);
  const FaultySubgen clusters(subject, {.t = 4, .s = 1, .delta = delta}, rules);
  bounds::CheckContext lemma2 = context.as("subgen.lemma2"), partition = context.as("subgen.partition");
  check_clusters(lemma2, clusters.setup(), clusters.kept()(0));
  check_samples(lemma2, clusters.setup(), clusters.kept());
  check_partition(partition, clusters.setup(), queries, clusters.answered(queries));
  const FaultySubgen whole(subject, {.t = 4, .s = subject.tokens() / 8, .delta = delta}, rules);
  bounds::CheckContext theorem1 = context.as("subgen.theorem1");
  check_attention(theorem1, "Eq. 3 for what t and s grant", {whole.setup(), values, queries}, NAN,
                  context.options.seeds, whole.answered(queries));
}

}  // namespace

void run_subgen_rules(bounds::CheckContext& context, const SubgenRules& rules) {
  bounds::CheckContext exact = context.as("subgen.algorithm1");
  check_subgen_algorithm(
      exact, [&](const SubgenCase& run) { return subgen_oracle(*context.subject, run.plan, run.sizes, rules).times; });
  const bounds::Subject subject = first_tokens(*context.subject, std::min(context.subject->tokens(), most_mutated));
  if (subject.tokens() < 16) return;
  bounds::CheckContext all = context.as("subgen.lemma1");
  all.subject = &subject;
  const bounds::SubgenValues values = subgen_values(subject);
  const std::vector<bounds::SubgenQuery> queries = subgen_queries(subject);
  mutate_lemma1(all, values, rules);
  mutate_clusters(all, values, queries, rules);
  const Index s = subject.tokens() / 16;
  const FaultySubgen slots(subject, {.t = 1, .s = s, .delta = everything}, rules);
  bounds::CheckContext amm = all.as("subgen.amm");
  check_product(amm, values, queries, s, slots.answered(queries));
}

}  // namespace kvbench::faithful
