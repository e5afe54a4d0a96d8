// SPDX-License-Identifier: Apache-2.0
// Every method of the registry, and other settings of it, is held to the contract on the fast back end: tests/agreement
// shows that all back ends decide and answer alike. Those of one method: test_property -sc='snapkv*'
#include <doctest/doctest.h>
#include <support/fakes.hpp>
#include <support/rows.hpp>

#include <kvbench/testing/contract.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

TEST_CASE("every row of the registry holds the contract of methods") {
  static const std::vector<Row> rows = all_rows();
  const auto backend = make_cpu_backend(best_isa());
  for (const Row& row : rows) {
    const std::string name = row.info->name + " " + row.params.text();
    SUBCASE(name.c_str()) {
      for (const PropertyTest& test : property_tests()) {
        const Finding finding = run_test(test, row, *backend);
        const bool tested = finding.compliance == Compliance::holds || finding.compliance == Compliance::not_asked;
        CHECK_MESSAGE(tested, describe(finding));
      }
    }
  }
}

// Their results by hand: tests/unit/replay/decode.cpp.
TEST_CASE("parts of the contract that few rows use decode blocks as single tokens") {
  const auto backend = make_ref_backend();
  for (const MethodInfo& info : all_fakes()) {
    const Row row{&info, info.bind({})};
    for (const PropertyTest& test : property_tests()) {
      if (test.name != "blocks" && test.name != "short contexts" && test.name != "streaming") continue;
      const Finding finding = run_test(test, row, *backend);
      CHECK_MESSAGE(finding.compliance < Compliance::refused, info.name, ": ", describe(finding));
    }
  }
}
