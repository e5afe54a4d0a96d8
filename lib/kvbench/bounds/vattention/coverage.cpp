// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/vattention/coverage.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/statistics.hpp>

namespace kvbench::bounds {
namespace {

/// Logits of all queries [m, n], less their largest.
std::vector<std::vector<double>> logits_of(const Subject& subject) {
  std::vector<std::vector<double>> logits;
  for (Index i = 0; i < subject.num_queries(); ++i) {
    std::vector<double>& row = logits.emplace_back();
    for (Index j = 0; j < subject.tokens(); ++j) {
      double product = 0;
      for (Index c = 0; c < subject.d(); ++c)
        product += static_cast<double>(subject.query(i)[static_cast<std::size_t>(c)]) *
                   static_cast<double>(subject.key(j)[static_cast<std::size_t>(c)]);
      row.push_back(product * static_cast<double>(subject.head.scale));
    }
    const double most = *std::ranges::max_element(row);
    for (double& x : row) x -= most;
  }
  return logits;
}

void run_vattention_coverage(CheckContext& context) {
  for (const auto& [eps, delta] : {std::pair("0.05", "0.05"), {"0.2", "0.2"}}) {
    for (const char* repeats : {"each", "once"}) {
      const bool released = std::string_view(repeats) == "once";
      check_coverage(context,
                     released ? "a token that is drawn twice counts once, as in the released code"
                              : "a token counts as often as it is drawn",
                     std::stod(eps), std::stod(delta),
                     registered_method("vattention",
                                       {{"samples", "beyond"}, {"eps", eps}, {"delta", delta}, {"repeats", repeats}}));
    }
  }
}

}  // namespace

DenominatorErrors::DenominatorErrors(const Subject& subject, const MethodUnderTest& method, Backend& backend)
    : backend_(backend), block_(attending_block(subject, backend)), shares_(logits_of(subject)) {
  methods::HeadPrompt head = subject.head;
  head.group = 1;  // a block of a subject is queries of one head
  make_ = method(head, backend);
  std::vector<float> scores;
  for (std::vector<double>& row : shares_) {
    scores.insert(scores.end(), row.begin(), row.end());
    double sum = 0;
    for (double& x : row) sum += x = std::exp(x);
    for (double& x : row) x /= sum;
  }
  block_.scores = backend.adopt(std::move(scores), block_.size(), subject.tokens());
}

std::vector<double> DenominatorErrors::operator()(Index budget, std::uint32_t seed) const {
  std::vector<double> sums(shares_.size(), 0);
  for (const methods::EntryTable& table : make_(budget, seed)->entries(block_)) {
    const HostView<std::int32_t> ids = backend_.on_host(table.ids);
    const HostView<float> weights = backend_.on_host(table.weight_den);
    for (Index i = 0; i < block_.size(); ++i) {
      const Index width = table.ids.cols(), begin = methods::table_row(table, 0, i, block_.size()) * width;
      for (auto s = static_cast<std::size_t>(begin); s < static_cast<std::size_t>(begin + width); ++s) {
        if (ids[s] < 0) continue;
        const double weight = weights.empty() ? 1 : static_cast<double>(weights[s]);
        sums[static_cast<std::size_t>(i)] +=
            weight * shares_[static_cast<std::size_t>(i)][static_cast<std::size_t>(ids[s])];
      }
    }
  }
  for (double& sum : sums) sum = std::abs(sum - 1);
  return sums;
}

void check_coverage(CheckContext& context, const std::string& part, double eps, double delta,
                    const MethodUnderTest& method) {
  const Subject& subject = *context.subject;
  const Index budget = std::max<Index>(8, subject.tokens() / 16);
  const Statement statement{part,
                            fmt::format("n={};exact={};eps={:g};delta={:g}", subject.tokens(), budget, eps, delta)};
  if (subject.num_queries() == 0 || budget >= subject.tokens()) {
    context.not_tested(CheckKind::claim, statement, "there are no queries, or too few tokens to sample");
    return;
  }
  std::int64_t failures = 0, trials = 0;
  std::vector<double> errors;
  const DenominatorErrors errors_of(subject, method, context.backend);
  for (Index trial = 0; trial < context.options.seeds; ++trial) {
    context.poll();
    for (const double error : errors_of(budget, context.seed(trial))) {
      failures += !(error <= eps);
      ++trials;
      errors.push_back(error);
    }
  }
  TwoWayTest test = decide_between(binomial_head(failures, trials, delta), binomial_tail(failures, trials, delta));
  test.units = trials;
  const double share = static_cast<double>(failures) / static_cast<double>(trials);
  context.claim(
      statement, test,
      fmt::format("|D' - D| > eps D in {} of {} trials, {:.4f}; the claim allows {:g}", failures, trials, share, delta),
      {.measured = share, .bound = delta, .measured_q99 = quantile(errors, 0.99)});
}

Check vattention_coverage() {
  return {.id = "vattention.coverage",
          .paper = "vAttention, arXiv 2510.05688, sections 3 and 4",
          .statement =
              "the denominator of the sampled attention is within eps of the exact one with probability 1 - "
              "delta",
          .run = run_vattention_coverage};
}

}  // namespace kvbench::bounds
