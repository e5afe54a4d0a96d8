// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <set>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::methods;

namespace {

/// A fault that makes `exceptions` of 10 cases of an exact row of the claim "c" wrong.
Mutant with_exceptions(std::int64_t exceptions, std::string why = "") {
  return {.id = "m",
          .method = "uniform",
          .fault = "a fault",
          .place = "line 1",
          .run =
              [exceptions](CheckContext& context) {
                CheckContext check = context.as("c");
                check.exact({"part"}, exceptions, 10);
              },
          .exception = std::move(why)};
}

MutantResult run_one(const Mutant& mutant) {
  const Mutant* const mutants[] = {&mutant};
  return run_mutants(mutants, mutant_subjects(1), {.threads = 1}).front();
}

}  // namespace

TEST_CASE("a fault is caught by a violated row, missed without one, and an exception states why") {
  const Mutant caught = with_exceptions(1), missed = with_exceptions(0),
               excepted = with_exceptions(0, "nobody can see it");
  CHECK(run_one(caught).caught_by == std::vector<std::string>{"c"});
  CHECK(run_one(caught).as_expected());
  CHECK(run_one(missed).ran == std::vector<std::string>{"c"});
  CHECK_FALSE(run_one(missed).as_expected());
  CHECK(run_one(excepted).as_expected());
}

TEST_CASE("a check that cannot run on a stream does not catch a fault") {
  Mutant mutant = with_exceptions(1);
  mutant.run = [](CheckContext&) { throw Unavailable("too short"); };
  CHECK_FALSE(run_one(mutant).as_expected());
}

TEST_CASE("faults have ids of their own, a source, and methods of the registry") {
  std::set<std::string> ids;
  for (const Mutant& mutant : all_mutants()) {
    CHECK(ids.insert(mutant.id).second);
    CHECK_FALSE(mutant.fault.empty());
    CHECK_FALSE(mutant.place.empty());
    if (!mutant.method.empty()) CHECK(find_mutants({mutant.method}).size() > 0);
  }
  CHECK(ids.size() >= 25);
  CHECK_THROWS_AS(find_mutants({"nothing"}), Error);
}
