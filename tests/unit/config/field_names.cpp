// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/field_names.hpp>

#include <doctest/doctest.h>

#include <kvbench/config/run_keys.hpp>

using namespace kvbench::config;

namespace {

std::string renamed(const std::string& message) {
  return rename_fields(message, [](std::string_view field) -> std::string {
    if (field == "window") return "--window";
    return field.starts_with("protect_") ? "--protect" : "";
  });
}

}  // namespace

TEST_CASE("fields in backquotes are replaced by their names, other words are not") {
  CHECK(renamed("") == "");
  CHECK(renamed("no field") == "no field");
  CHECK(renamed("`window` is 3; lower `window`") == "--window is 3; lower --window");
  CHECK(renamed("`other` and `kvbench merge`") == "`other` and `kvbench merge`");
  CHECK(renamed("an open ` stays") == "an open ` stays");
  CHECK(renamed("`window") == "`window");
}

TEST_CASE("two fields with the same name are named once") {
  CHECK(renamed("leave `protect_first` and `protect_last` out") == "leave --protect out");
  CHECK(renamed("`protect_first` and `window`") == "--protect and --window");
}

TEST_CASE("keys of a sweep file set fields of requests") {
  CHECK(key_of("kv_heads") == "heads");
  CHECK(key_of("protect_last") == "protect");
  CHECK(key_of("backend") == "device");
  CHECK(key_of("zip") == "zip");
  for (const char* none : {"memory", "threads", "isa", "", "nonsense"}) CHECK(key_of(none) == "");
}
