// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), Algorithm 1: the entries of `chelsea` after the prompt and after each decoded token are
// those of an independent recomputation (oracle/chelsea_oracle.hpp), at several budgets and settings.
// docs/theory/chelsea.algorithm.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>

namespace kvbench::faithful {
namespace {

constexpr Index compared_tokens = 512, decoded_tokens = 48, streamed_tokens = 160;

struct ChelseaCase {
  const char* name;
  bounds::ChelseaSettings settings;
  Index share;          ///< the budget is the number of tokens over this
  bool stream = false;  ///< from an empty context
};

const std::vector<ChelseaCase>& chelsea_cases() {
  static const std::vector<ChelseaCase> all = {
      {"defaults", {}, 4},
      {"20 % in chunks of 64", {.chunk = 64}, 5},
      {"falling shares", {.chunk = 16, .slack = 8, .ratio = 0.3, .decay = 0.1}, 3},
      {"odd chunks, A before B", {.sinks = 3, .recent = 9, .chunk = 7, .slack = 0, .concat = true}, 8},
      {"pairs of neighbours", {.sinks = 0, .recent = 0, .chunk = 2, .slack = 5}, 2},
      {"stream, falling shares", {.chunk = 16, .slack = 3, .ratio = 0.4, .decay = 0.05}, 8, true},
  };
  return all;
}

}  // namespace

void check_chelsea_algorithm(bounds::CheckContext& context, const bounds::ChelseaUnderTest& chelsea) {
  const bounds::Subject& subject = *context.subject;
  const Index n = std::min(subject.tokens(), compared_tokens);
  for (const ChelseaCase& c : chelsea_cases()) {
    context.poll();
    const Index appended = std::min(c.stream ? streamed_tokens : decoded_tokens, c.stream ? n : n - 1);
    const bounds::StreamPlan plan{.prompt = c.stream ? 0 : n - appended,
                                  .appended = appended,
                                  .budget = std::max<Index>(1, (c.stream ? appended : n) / c.share)};
    const auto observed = observe_stream(subject, plan, chelsea(c.settings), context.backend);
    add_oracle_row(context, c.name, plan.text() + ";" + c.settings.text(), observed,
                   chelsea_oracle(subject, plan, c.settings));
  }
}

bounds::Check chelsea_algorithm() {
  return {
      .id = "chelsea.algorithm",
      .paper = "Chelsea, arXiv 2506.11418, Algorithm 1 and sections 5.1 to 5.3",
      .statement =
          "the clusters, degrees, keys and values are those that the algorithm describes, at every time of a stream",
      .run = [](bounds::CheckContext& context) { check_chelsea_algorithm(context, bounds::registered_chelsea()); }};
}

}  // namespace kvbench::faithful
