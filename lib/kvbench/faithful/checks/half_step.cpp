// SPDX-License-Identifier: Apache-2.0
// Numbers that a quantiser rounds to equal steps between the minimum and the maximum of their group stay within half a
// step, and the rounding of step and minimum. docs/theory/quantiser.half_step.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kvbench::faithful {
namespace {

constexpr Index rounded_tokens = 256;
constexpr double largest_f16 = 65504;

/// How far f16 may be from a number below largest_f16.
double f16_rounding(double x) { return std::max(0x1p-11 * std::abs(x), 0x1p-25); }

struct StepErrors {
  std::int64_t cases = 0, exceptions = 0, left_out = 0;
  double largest = 0;  ///< of an error divided by its bound
};

/// What a number of a group may be off by: docs/theory derives it.
double step_bound(double low, double high, int bits) {
  const double most = (1 << bits) - 1, step = (high - low) / most;
  const double fp32 = 8 * 0x1p-24 * (high - low + std::abs(low) + std::abs(high)) + 0x1p-148;
  return step / 2 + most * f16_rounding(step) + f16_rounding(low) + fp32;
}

void add_group(StepErrors& errors, const std::vector<std::size_t>& places, const std::vector<float>& rows,
               const std::vector<float>& decoded, int bits) {
  double low = INFINITY, high = -INFINITY;
  for (const std::size_t at : places) low = std::min(low, double{rows[at]}), high = std::max(high, double{rows[at]});
  if (!(std::max(std::abs(low), std::abs(high)) < largest_f16)) {
    errors.left_out += static_cast<std::int64_t>(places.size());
    return;
  }
  const double bound = step_bound(low, high, bits);
  for (const std::size_t at : places) {
    const double error = std::abs(double{decoded[at]} - double{rows[at]});
    ++errors.cases;
    errors.exceptions += !(error <= bound);
    errors.largest = std::max(errors.largest, std::isnan(error) ? INFINITY : error / bound);
  }
}

void add_side(bounds::CheckContext& context, const StepFormat& format, Side side, const StepDecoder& decoder,
              StepErrors& errors) {
  const bounds::Subject& subject = *context.subject;
  const Index d = side == Side::keys ? subject.d() : subject.dv(), n = std::min(subject.tokens(), rounded_tokens);
  const std::vector<float>& all = side == Side::keys ? subject.keys : subject.values;
  const std::vector<float> rows(all.begin(), all.begin() + n * d);
  const std::vector<float> decoded = decoder(format, side, rows, context.backend);
  for_each_step_group(format, side, n, d, [&](const std::vector<std::size_t>& places) {
    add_group(errors, places, rows, decoded, format.bits);
  });
}

void add_step_row(bounds::CheckContext& context, const StepFormat& format, const StepDecoder& decoder) {
  context.poll();
  StepErrors errors;
  std::string refusal;
  try {
    for (const Side side : {Side::keys, Side::values}) add_side(context, format, side, decoder, errors);
  } catch (const methods::Unavailable& reason) {
    refusal = reason.what();
  }
  const bounds::Statement statement{format.setting.method, fmt::format("bits={}", format.bits)};
  if (!refusal.empty() || errors.cases == 0) {
    context.not_tested(bounds::CheckKind::exact, statement,
                       refusal.empty() ? "the numbers are too large for f16" : refusal);
    return;
  }
  context.exact(
      statement, errors.exceptions, errors.cases,
      fmt::format("errors of keys and values are at most {:.3g} of half a step and the rounding of its f16{}",
                  errors.largest,
                  errors.left_out > 0 ? fmt::format("; {} numbers too large for it left out", errors.left_out) : ""),
      {.measured = errors.largest, .bound = 1});
}

void run_quantiser_half_step(bounds::CheckContext& context) {
  check_half_step(context, [&](const StepFormat& format, Side side, const std::vector<float>& rows, Backend& backend) {
    return decoded_rows(*context.subject, format.setting, side, rows, 0, backend);
  });
}

}  // namespace

std::vector<StepFormat> step_formats() {
  std::vector<StepFormat> formats;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    formats.push_back({.setting = {.method = "int", .settings = {{"bits", std::to_string(bits)}}}, .bits = bits});
  formats.push_back({.setting = {.method = "q4_1"}, .bits = 4});
  formats.push_back({.setting = {.method = "q5_1"}, .bits = 5});
  formats.push_back({.setting = {.method = "kivi4"}, .bits = 4, .keys_by_tokens = true});
  formats.push_back({.setting = {.method = "kivi2"}, .bits = 2, .keys_by_tokens = true});
  return formats;
}

void for_each_step_group(const StepFormat& format, Side side, Index n, Index d,
                         const std::function<void(const std::vector<std::size_t>&)>& f) {
  const bool tokens = format.by_tokens(side);
  const Index lines = tokens ? d : n, length = tokens ? n : d;
  for (Index line = 0; line < lines; ++line)
    for (Index begin = 0; begin < length; begin += format.group) {
      std::vector<std::size_t> places;
      for (Index k = begin; k < std::min(length, begin + format.group); ++k)
        places.push_back(static_cast<std::size_t>(tokens ? k * d + line : line * d + k));
      f(places);
    }
}

void check_half_step(bounds::CheckContext& context, const StepDecoder& decoder) {
  if (context.subject->tokens() == 0) throw methods::Unavailable("the subject has no tokens");
  for (const StepFormat& format : step_formats()) add_step_row(context, format, decoder);
}

bounds::Check quantiser_half_step() {
  return {.id = "quantiser.half_step",
          .paper = "kvbench: the worst-case error that the uniform quantisers state",
          .statement = "numbers rounded to equal steps stay within half a step and the rounding of step and minimum",
          .method = "int",
          .run = run_quantiser_half_step};
}

}  // namespace kvbench::faithful
