// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), section II-B and Fig. 3: the important tokens change over decoding steps, and a page of
// 16 tokens that contains important tokens contains one or two. Reading: the important tokens of a query are the n / 32
// with the largest logits (the paper: about 256 of 8192). The independent units are four consecutive ones of 64 steps
// of a kv head. docs/theory/clusterkv.importance.md.
#include <kvbench/bounds/clusterkv/checks.hpp>

#include <algorithm>
#include <numeric>
#include <set>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/bounds/trials/contrast.hpp>
#include <kvbench/bounds/trials/paired_replay.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index page_tokens = 16, most_steps = 64, steps_per_unit = 4;

/// The values of the independent units of all heads.
struct Findings {
  std::vector<double> drift;      ///< overlap with the next step less that with the step `reach` steps later
  std::vector<double> pages;      ///< 2 less the number of important tokens per page
  std::vector<double> near, far;  ///< the two overlaps
  std::vector<double> newcomers;  ///< share of the last step's important tokens that were not important at the first
  Index stride = 1, reach = 1, important = 0;
};

/// Important tokens of query head g at each step.
std::vector<std::vector<Index>> important_tokens(const Subject& subject, Index queries, Index g, Index stride,
                                                 Index count) {
  std::vector<std::vector<Index>> steps;
  std::vector<double> scores(static_cast<std::size_t>(subject.tokens()));
  for (Index step = 0; step < queries; step += stride) {
    const std::span<const float> q = subject.query(g * queries + step);
    for (Index i = 0; i < subject.tokens(); ++i) {
      scores[static_cast<std::size_t>(i)] = dot(q, subject.key(i)) * double{subject.head.scale};
    }
    steps.push_back(most_important(scores, count));
  }
  return steps;
}

void add_head(const CheckContext& context, const Subject& subject, Index group, Findings& found) {
  const Index queries = subject.num_queries() / group;
  found.stride = std::max<Index>(1, queries / most_steps);
  const Index steps = (queries + found.stride - 1) / found.stride;
  found.reach = std::min<Index>(16, steps / 2);
  found.important = std::max<Index>(1, subject.tokens() / 32);
  if (found.reach < 2)
    throw methods::Unavailable("there are too few queries after the context: at least four steps are needed");
  const Index units = (steps - found.reach) / steps_per_unit;
  std::vector<double> near(static_cast<std::size_t>(units)), far = near, pages = near;
  double newcomers = 0;
  for (Index g = 0; g < group; ++g) {
    context.poll();
    const auto sets = important_tokens(subject, queries, g, found.stride, found.important);
    for (Index s = 0; s < units * steps_per_unit; ++s) {
      const auto u = static_cast<std::size_t>(s / steps_per_unit), at = static_cast<std::size_t>(s);
      const double share = 1 / static_cast<double>(steps_per_unit * group);
      near[u] += share * overlap(sets[at], sets[at + 1]);
      far[u] += share * overlap(sets[at], sets[at + static_cast<std::size_t>(found.reach)]);
      pages[u] += share * tokens_per_page(sets[at], page_tokens);
    }
    newcomers += (1 - overlap(sets.back(), sets.front())) / static_cast<double>(group);
  }
  for (std::size_t u = 0; u < near.size(); ++u) {
    found.drift.push_back(near[u] - far[u]);
    found.pages.push_back(2 - pages[u]);
  }
  found.near.insert(found.near.end(), near.begin(), near.end());
  found.far.insert(found.far.end(), far.begin(), far.end());
  found.newcomers.push_back(newcomers);
}

void run_clusterkv_importance(CheckContext& context) {
  const trace::TraceInfo& trace = context.reader->info();
  Findings found;
  for (const SubjectSource& source :
       trace_subjects(*context.reader, spread_layers(trace, measured_layers), {}, Index{1} << 40)) {
    const Subject subject = source.load(context.backend);
    if (subject.prompt == trace.prompts.front().id) add_head(context, subject, trace.group(), found);
  }
  const std::string sizes =
      fmt::format("important={};stride={};heads={}", found.important, found.stride, found.newcomers.size());
  add_claim(
      context,
      {fmt::format("important tokens drift: steps {} and {} apart", found.stride, found.stride * found.reach), sizes},
      contrast(found.drift),
      fmt::format("share of common tokens {:.3f} against {:.3f}, difference", contrast(found.near).mean,
                  contrast(found.far).mean))
      .text += fmt::format(
      "; {:.3f} of the important tokens of the last step were not important at the first; this does not show whether "
      "the model needs them",
      contrast(found.newcomers).mean);
  const Contrast pages = contrast(found.pages);
  add_claim(context, {"a page of 16 tokens that holds important ones holds one or two", sizes}, pages,
            fmt::format("{:.2f} important tokens per page; 2 less this", 2 - pages.mean))
      .text += "; the paper does not define how many tokens are important; it shows a picture of one head";
}

}  // namespace

std::vector<Index> most_important(std::span<const double> scores, Index count) {
  std::vector<Index> ids(scores.size());
  std::iota(ids.begin(), ids.end(), Index{0});
  const auto better = [&](Index a, Index b) {
    const double x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto end = ids.begin() + std::min(count, std::ssize(ids));
  std::nth_element(ids.begin(), end - (end != ids.begin() ? 1 : 0), ids.end(), better);
  ids.erase(end, ids.end());
  std::ranges::sort(ids);
  return ids;
}

double overlap(const std::vector<Index>& a, const std::vector<Index>& b) {
  std::vector<Index> common;
  std::ranges::set_intersection(a, b, std::back_inserter(common));
  return a.empty() ? 1 : static_cast<double>(common.size()) / static_cast<double>(a.size());
}

double tokens_per_page(const std::vector<Index>& tokens, Index page_size) {
  std::set<Index> pages;
  for (const Index id : tokens) pages.insert(id / page_size);
  return pages.empty() ? 0 : static_cast<double>(tokens.size()) / static_cast<double>(pages.size());
}

Check clusterkv_importance() {
  return {.id = "clusterkv.importance",
          .paper = "ClusterKV, arXiv 2412.03213, section II-B, Fig. 3",
          .statement = "important tokens change over decoding steps, and a page contains one or two of them",
          .scope = Scope::trace,
          .run = run_clusterkv_importance};
}

}  // namespace kvbench::bounds
