// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/fields.hpp>

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::replay;

namespace {

/// Changes the value of a field that has a simple type.
struct Change {
  ReplayRequest& request;

  template <class E>
  requires std::is_enum_v<E>
  void operator()(E ReplayRequest::*member) const {
    const auto other = [&](const auto& name) { return name.second != request.*member; };
    request.*member = std::ranges::find_if(value_names<E>(), other)->second;
  }
  void operator()(std::vector<std::int64_t> ReplayRequest::*member) const { request.*member = {3}; }
  void operator()(std::optional<Index> ReplayRequest::*member) const { request.*member = 7; }
  void operator()(Index ReplayRequest::*member) const { ++(request.*member); }
  void operator()(bool ReplayRequest::*member) const { request.*member = !(request.*member); }
  void operator()(Protection protection) const {
    request.protect_last = 4;
    request.protect_outside = protection.outside;
  }
  void operator()(auto) const {}
};

}  // namespace

TEST_CASE("keys of stored records contain the fields that the table marks, and no other") {
  const ReplayRequest defaults;
  std::size_t differ = 0;
  std::set<std::string> keys = {stored_text(defaults)};
  for (const RequestField& field : request_fields()) {
    CAPTURE(field.name);
    ReplayRequest changed, copied;
    std::visit(Change{changed}, field.member);
    differ += value_text(field, changed) != value_text(field, defaults);
    CHECK(keys.insert(stored_text(changed)).second == field.use.stored);
    copy_value(field, changed, copied);
    CHECK(value_text(field, copied) == value_text(field, changed));
  }
  CHECK(differ == request_fields().size() - 5);  // methods, budgets, calibration, seeds and prompts are no simple types
}

TEST_CASE("fields are found by the names in messages, flags and keys are those of one field") {
  std::set<std::string_view> flags, keys;
  for (const RequestField& field : request_fields()) {
    CHECK(find_field(field.name) == &field);
    CHECK(flags.insert(field.flag.names).second);
    CHECK((field.key.name.empty() || keys.insert(field.key.name).second));
  }
  CHECK(find_field("protect_last")->flag.name() == "--protect");
  CHECK(find_field("methods")->flag.name() == "--method");
  CHECK(find_field("nonsense") == nullptr);
}

TEST_CASE("descriptions name what is not the default") {
  ReplayRequest request;
  CHECK(description(request).empty());
  request.decoded = Decoded::keep;
  request.protect_first = 4, request.protect_last = 64, request.protect_outside = true;
  request.dense_layers = 2;
  CHECK(description(request) ==
        ", decoded tokens kept exactly, protects the first 4 and the last 64 tokens outside the budget, 2 dense "
        "layers");
}
