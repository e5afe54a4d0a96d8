// SPDX-License-Identifier: Apache-2.0
#include <kvbench/kernels/fields.hpp>

#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;
using kernels::HostMatrix;

namespace {

/// Listed in another order than declared: views must follow names, not positions.
template <template <class> class Ref>
struct Complete {
  Ref<const float> a;
  Ref<const float> b;
  Index count = 1;
  Ref<float> out;
  bool flag = false;

  static constexpr auto fields(auto& op) { return std::tie(op.flag, op.out, op.b, op.a, op.count); }
};

template <template <class> class Ref>
struct WithoutBuffer {
  Ref<const float> a;
  Ref<const float> b;
  Index count = 1;

  static constexpr auto fields(auto& op) { return std::tie(op.a, op.count); }
};

template <template <class> class Ref>
struct WithoutScalar {
  Ref<const float> a;
  Index count = 1;
  bool last = false;

  static constexpr auto fields(auto& op) { return std::tie(op.a, op.count); }
};

template <template <class> class Ref>
struct Repeated {
  Ref<const float> a;
  Ref<const float> b;
  Index count = 1;

  static constexpr auto fields(auto& op) { return std::tie(op.a, op.a, op.count); }
};

static_assert(kernels::fields_are_complete<Complete>());
static_assert(!kernels::fields_are_complete<WithoutBuffer>());
static_assert(!kernels::fields_are_complete<WithoutScalar>());
static_assert(!kernels::fields_are_complete<Repeated>());
static_assert(kernels::fields_are_complete<kernels::WeightedAttention>());

}  // namespace

TEST_CASE("views of an operation follow the names of its fields") {
  const auto a = matrix<float>(ref(), {{1, 2}, {3, 4}}), b = matrix<float>(ref(), {{5, 6, 7}}),
             out = matrix<float>(ref(), {{8}});

  const auto views =
      kernels::views_of<HostMatrix>(Complete<Buffer>{.a = a, .b = b, .count = 9, .out = out, .flag = true});

  CHECK(views.a.rows == 2);
  CHECK(views.a(1, 0) == 3);
  CHECK(views.b.cols == 3);
  CHECK(views.b(0, 2) == 7);
  CHECK(views.out[0] == 8);
  CHECK(views.count == 9);
  CHECK(views.flag);
}

TEST_CASE("the view of an absent buffer is empty") {
  const auto views = kernels::views_of<HostMatrix>(kernels::TopK<Buffer>{});
  CHECK(views.scores.empty());
  CHECK(views.ids.empty());
}
