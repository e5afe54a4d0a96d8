// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/contract/params.hpp>

using namespace kvbench;
using namespace kvbench::methods;

namespace {

struct Sample {
  enum class Mode { fast, slow };
  Index count = 3;
  double radius = 0.5;
  bool shared = false;
  Mode mode = Mode::fast;
};
void fields(ParamVisitor& visitor, Sample& p) {
  visitor.integer("count", p.count, {.min = 1, .max = 9}, "how many");
  visitor.real("radius", p.radius, {.min = 0}, "how far");
  visitor.flag("shared", p.shared, "by all");
  visitor.choice("mode", p.mode, {"fast", "slow"}, "how");
}
void check(const Sample& p) {
  if (p.count == 7) throw Error("seven is never right");
}

Params bind(std::vector<Assignment> settings) { return bind_params<Sample>("sample", settings); }

}  // namespace

TEST_CASE("a schema shows every field with its default and range") {
  const auto schema = schema_of<Sample>();
  REQUIRE(schema.size() == 4);
  CHECK(schema[0].name == "count");
  CHECK(schema[0].type == "integer");
  CHECK(schema[0].default_value == "3");
  CHECK(schema[0].range == "1 .. 9");
  CHECK(schema[1].range == ">= 0");
  CHECK(schema[2].default_value == "false");
  CHECK(schema[3].type == "fast|slow");
  CHECK(schema[3].default_value == "fast");
}

TEST_CASE("settings are stored in their fields, and the text lists those that differ from the defaults") {
  CHECK(bind({}).text().empty());
  const Params params = bind({{"mode", "slow"}, {"radius", "1.25"}, {"shared", "true"}, {"count", "3"}});
  CHECK(params.as<Sample>().mode == Sample::Mode::slow);
  CHECK(params.as<Sample>().radius == 1.25);
  CHECK(params.as<Sample>().shared);
  CHECK(params.text() == "radius=1.25;shared=true;mode=slow");
  CHECK(bind({{"count", "4"}, {"count", "5"}}).text() == "count=5");
}

TEST_CASE("invalid settings are reported with the accepted values") {
  CHECK_THROWS_WITH_AS(bind({{"count", "0"}}), "parameter 'sample.count' is '0'; it must be an integer (1 .. 9)",
                       Error);
  CHECK_THROWS_WITH_AS(bind({{"count", "2.5"}}), doctest::Contains("an integer"), Error);
  CHECK_THROWS_WITH_AS(bind({{"radius", "inf"}}), doctest::Contains("a number"), Error);
  CHECK_THROWS_WITH_AS(bind({{"shared", "1"}}), doctest::Contains("true or false"), Error);
  CHECK_THROWS_WITH_AS(bind({{"mode", "medium"}}), doctest::Contains("one of fast, slow"), Error);
  CHECK_THROWS_WITH_AS(bind({{"cuont", "2"}}), doctest::Contains("count"), Error);
  CHECK_THROWS_WITH_AS(bind({{"count", "7"}}), "seven is never right", Error);
}
