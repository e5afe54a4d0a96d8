// SPDX-License-Identifier: Apache-2.0
// The only source that includes Boost.Math, which takes seconds to compile.
#include <kvbench/core/distributions.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/gamma.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace kvbench {
namespace {

namespace math = boost::math;
namespace policies = boost::math::policies;

/// Results are NaN or infinite where Boost.Math would throw.
using Quiet =
    policies::policy<policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
                     policies::overflow_error<policies::ignore_error>,
                     policies::evaluation_error<policies::ignore_error>, policies::promote_double<false>>;
using Beta = math::beta_distribution<double, Quiet>;
using Binomial = math::binomial_distribution<double, Quiet>;
using Gamma = math::gamma_distribution<double, Quiet>;
using Normal = math::normal_distribution<double, Quiet>;
using Student = math::students_t_distribution<double, Quiet>;

Binomial binomial(std::int64_t trials, double probability) {
  return {static_cast<double>(trials), std::clamp(probability, 0.0, 1.0)};
}

}  // namespace

double binomial_head(std::int64_t count, std::int64_t trials, double probability) {
  return count >= trials ? 1 : cdf(binomial(trials, probability), static_cast<double>(count));
}

double binomial_tail(std::int64_t failures, std::int64_t trials, double probability) {
  assert(0 <= failures && failures <= trials);
  if (failures == 0) return 1;
  return cdf(complement(binomial(trials, probability), static_cast<double>(failures - 1)));
}

double beta_quantile(double p, double a, double b) { return quantile(Beta(a, b), p); }

double gamma_tail(double x, double shape) { return cdf(complement(Gamma(shape), x)); }

double student_tail(double t, double degrees) { return cdf(complement(Student(degrees), t)); }

double normal_quantile(double p) { return quantile(Normal(0, 1), p); }

double student_p(double t, double degrees) { return 2 * student_tail(std::abs(t), degrees); }

double student_bound(double level, double degrees) { return quantile(complement(Student(degrees), (1 - level) / 2)); }

}  // namespace kvbench
