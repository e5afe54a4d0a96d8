// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/enumeration.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/verdict.hpp>

namespace {

enum class Empty : int {};
enum class One { first };
struct Holder {
  enum class Inner : unsigned char { first, second, third };
};

}  // namespace

TEST_CASE("enumerators are counted from the declaration, wherever it is") {
  CHECK(kvbench::enumerator_count<Empty> == 0);
  CHECK(kvbench::enumerator_count<One> == 1);
  CHECK(kvbench::enumerator_count<Holder::Inner> == 3);
  CHECK(kvbench::enumerator_count<kvbench::Verdict> == static_cast<std::size_t>(kvbench::Verdict::none) + 1);
}

TEST_CASE("a value has the name at its place") {
  constexpr std::string_view names[] = {"a", "b", "c"};
  CHECK(kvbench::name_in(names, Holder::Inner::third) == "c");
}
