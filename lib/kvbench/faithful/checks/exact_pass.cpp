// SPDX-License-Identifier: Apache-2.0
// The exact pass of a replay, whose outputs every answer is compared with, is exact attention: its outputs and
// log-sum-exps are those of fp64 within the rounding of fp32. docs/theory/exact.noise_floor.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <kvbench/replay/exact/fp64_attention.hpp>

namespace kvbench::faithful {
namespace {

constexpr Index most_tokens = 1024;  // the bound grows with the number of tokens
constexpr double unit = 0x1p-24;     // half the distance of 1 from the next larger fp32 number
constexpr double least = 0x1p-126;   // below, fp32 numbers lose digits or become 0
constexpr double most_error = 0.25;  // of the sum of all relative errors: beyond, the bound does not hold

/// A head of the subject's tokens and queries, spread over the context, the last one at its end.
replay::Head causal_head(const bounds::Subject& subject, Index window) {
  const Index n = subject.tokens(), m = subject.num_queries();
  replay::Head head{.window = window, .tokens = subject.all_tokens(), .map = {.middle = n}, .prompt = subject.head};
  for (Index i = 0; i < m; ++i) head.positions.push_back(static_cast<std::int32_t>((i * n + n + m - 1) / m - 1));
  head.queries = subject.queries;
  return head;
}

/// A query of the head, what it sees, and exact attention to it.
struct Recomputed {
  std::span<const float> query;
  Index first = 0, last = 0;
  replay::Fp64Attention exact;
};

Recomputed recompute(const bounds::Subject& subject, const replay::Head& head, Index i) {
  Recomputed row{.query = subject.query(i), .last = head.positions[static_cast<std::size_t>(i)] + 1};
  if (head.window > 0) row.first = std::max<Index>(0, row.last - head.window);
  row.exact = replay::fp64_attention(row.query, subject.keys, subject.values, row.first, row.last, subject.head.scale);
  return row;
}

struct Token {
  double logit = 0, size = 0;  ///< scale * <q, k>, and the same of absolute values
  double value = 0;            ///< |v|
  double distance = 0;         ///< |v - z|
};

Token token_of(const bounds::Subject& subject, const Recomputed& row, Index j) {
  Token token;
  for (Index c = 0; c < subject.d(); ++c) {
    const double product = subject.head.scale * double{row.query[static_cast<std::size_t>(c)]} *
                           double{subject.key(j)[static_cast<std::size_t>(c)]};
    token.logit += product, token.size += std::abs(product);
  }
  for (std::size_t c = 0; c < row.exact.out.size(); ++c) {
    const double v = subject.value(j)[c];
    token.value += v * v, token.distance += std::pow(v - row.exact.out[c], 2);
  }
  token.value = std::sqrt(token.value), token.distance = std::sqrt(token.distance);
  return token;
}

/// What rounding may add to the output (Euclidean norm) and to the log-sum-exp of a query. docs/theory derives it.
struct RoundingBound {
  double out = 0, log_sum_exp = 0;
  bool holds = true;
};

RoundingBound rounding_bound(const bounds::Subject& subject, const Recomputed& row) {
  std::vector<Token> tokens;
  double max = -std::numeric_limits<double>::infinity(), norm = 0, worst = 0;
  for (Index j = row.first; j < row.last; ++j) {
    tokens.push_back(token_of(subject, row, j));
    max = std::max(max, tokens.back().logit);
  }
  for (const double z : row.exact.out) norm += z * z;
  norm = std::sqrt(norm);
  const auto count = static_cast<double>(tokens.size()), d = static_cast<double>(subject.d());
  const double sums = (2 * count + 8) * unit, small = std::max(1.0, double{subject.head.scale}) * (d + 4) * least;
  RoundingBound bound{.out = sums * norm, .log_sum_exp = sums};
  for (const Token& token : tokens) {
    const double error = (d + 4) * unit * token.size + (8 + 4 * (max - token.logit)) * unit + small;
    const double share = std::exp(token.logit - row.exact.log_sum_exp), moved = share * error + 2 * least;
    bound.out += moved * token.distance + share * sums * token.value;
    bound.log_sum_exp += moved;
    worst = std::max(worst, share > 2 * least ? error : 0);
  }
  bound.out = 2 * bound.out + count * std::sqrt(static_cast<double>(subject.dv())) * least;
  bound.log_sum_exp = 2 * bound.log_sum_exp + 4 * unit * (std::abs(row.exact.log_sum_exp) + std::abs(max));
  bound.holds = worst + sums <= most_error;
  return bound;
}

/// Errors of the queries of a part, divided by their bounds.
struct Errors {
  std::int64_t cases = 0, exceptions = 0, left_out = 0;
  double out = 0, log_sum_exp = 0;  ///< the largest

  void add(double of_out, double of_log_sum_exp) {
    ++cases;
    exceptions += !(of_out <= 1 && of_log_sum_exp <= 1);
    out = std::max(out, std::isnan(of_out) ? INFINITY : of_out);
    log_sum_exp = std::max(log_sum_exp, std::isnan(of_log_sum_exp) ? INFINITY : of_log_sum_exp);
  }
};

/// error / bound; a row of zeros has neither.
double in_bounds(double error, double bound) { return error == 0 ? 0 : error / bound; }

Errors errors_of(const bounds::Subject& subject, const replay::Head& head, const replay::ExactBlock& pass) {
  Errors errors;
  const auto dv = static_cast<std::size_t>(subject.dv());
  for (Index i = 0; i < subject.num_queries(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Recomputed row = recompute(subject, head, i);
    const RoundingBound bound = rounding_bound(subject, row);
    if (!bound.holds) {
      ++errors.left_out;
      continue;
    }
    double square = 0;
    for (std::size_t c = 0; c < dv; ++c) square += std::pow(double{pass.out[at * dv + c]} - row.exact.out[c], 2);
    errors.add(in_bounds(std::sqrt(square), bound.out),
               in_bounds(std::abs(double{pass.log_sum_exp[at]} - row.exact.log_sum_exp), bound.log_sum_exp));
  }
  return errors;
}

void add_row(bounds::CheckContext& context, const bounds::Subject& subject, Index window, const ExactPass& pass) {
  context.poll();
  const replay::Head head = causal_head(subject, window);
  const Errors errors = errors_of(subject, head, pass(head, context.backend));
  const bounds::Statement statement =
      window > 0 ? bounds::Statement{"with a sliding window", fmt::format("n={};window={}", subject.tokens(), window)}
                 : bounds::Statement{"all tokens up to the query", fmt::format("n={}", subject.tokens())};
  if (errors.cases == 0) {
    context.not_tested(bounds::CheckKind::exact, statement,
                       "the logits are so large that their rounding hides every fault");
    return;
  }
  context.exact(
      statement, errors.exceptions, errors.cases,
      fmt::format("{} queries: errors are at most {:.2g} of the rounding bound of the output and {:.2g} of "
                  "that of the log-sum-exp{}",
                  errors.cases, errors.out, errors.log_sum_exp,
                  errors.left_out > 0 ? fmt::format("; {} with larger logits left out", errors.left_out) : ""),
      {.measured = std::max(errors.out, errors.log_sum_exp), .bound = 1});
}

void run_exact_noise_floor(bounds::CheckContext& context) { check_exact_pass(context, replayed_exact_pass); }

}  // namespace

replay::ExactBlock replayed_exact_pass(const replay::Head& head, Backend& backend) {
  return exact_block(head, 0, head.queries_per_head(), backend);
}

void check_exact_pass(bounds::CheckContext& context, const ExactPass& pass) {
  if (context.subject->tokens() == 0 || context.subject->num_queries() == 0)
    throw methods::Unavailable("the subject has no tokens or no queries");
  const bounds::Subject subject = first_tokens(*context.subject, std::min(context.subject->tokens(), most_tokens));
  add_row(context, subject, 0, pass);
  add_row(context, subject, (subject.tokens() + 2) / 3, pass);
}

bounds::Check exact_noise_floor() {
  return {.id = "exact.noise_floor",
          .paper = "kvbench: the reference of every error",
          .statement = "the exact pass is softmax attention over the tokens that a query sees, within rounding",
          .run = run_exact_noise_floor};
}

}  // namespace kvbench::faithful
