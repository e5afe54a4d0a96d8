// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/results.hpp>

#include <fmt/ranges.h>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::eval {
namespace {

std::string short_digest(const std::string& text) { return trace::Sha256().add(text).hex().substr(0, 12); }

}  // namespace

EvalSettings settings_of(const replay::ReplayRequest& request) {
  EvalSettings out;
  out.kv_dtype = request.kv_element == methods::Element::f32 ? "f32" : "f16";
  out.protect =
      fmt::format("{},{}{}", request.protect_first, request.protect_last, request.protect_outside ? " outside" : "");
  out.decoded = request.decoded == replay::Decoded::keep ? "keep" : "method";
  return out;
}

std::string layer_ranges(const std::vector<std::int64_t>& layers) {
  std::string out;
  for (std::size_t first = 0, end = 0; first < layers.size(); first = end) {
    for (end = first + 1; end < layers.size() && layers[end] == layers[end - 1] + 1;) ++end;
    out += fmt::format("{}{}", first == 0 ? "" : ",", layers[first]);
    if (end > first + 1) out += fmt::format("-{}", layers[end - 1]);
  }
  return out;
}

std::string digest_of(const TaskDocument& document) {
  return short_digest(fmt::format("{}\n{}\n", fmt::join(document.context, " "), fmt::join(document.scored, " ")));
}

std::string digest_of(const std::vector<std::string>& documents) {
  return short_digest(fmt::format("{}\n", fmt::join(documents, "\n")));
}

std::string_view name_of(Inject inject) {
  constexpr std::string_view names[] = {"all", "one", "upto", "none"};
  return name_in(names, inject);
}

}  // namespace kvbench::eval
