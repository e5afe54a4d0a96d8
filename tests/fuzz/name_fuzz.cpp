// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes are the name of a method, and a text with settings or none. What they print reads as the
// same again, and find_method() and family_of() answer or give Error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>

std::size_t inputs_read = 0;

namespace {

using namespace kvbench;
using methods::MethodName;

constexpr std::size_t most_signs = 1000;  // in longer names the nearest one is searched for seconds, which is no fault

void require(bool holds) {
  if (!holds) std::abort();
}

void read_name(std::string_view given) {
  const MethodName name = methods::parse_method_name(given);
  require(!name.settings && methods::parse_method_name(name.name()) == name);
  require(name.file.empty() || name.with_file("p").with_file(name.file) == name);
  require(!methods::family_of(given).empty());
  if (given.size() > most_signs) return;
  methods::find_method(name);
  ++inputs_read;
}

void read_text(std::string_view given) {
  const auto text = methods::parse_method_text(given);
  if (!text) return;
  require(methods::parse_method_text(text->text()) == text);
  text->assignments();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  for (const auto read : {&read_name, &read_text}) {
    try {
      read(given);
    } catch (const Error&) {
    }
  }
  return 0;
}
