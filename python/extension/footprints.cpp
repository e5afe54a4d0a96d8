// SPDX-License-Identifier: Apache-2.0
#include <python/extension/footprints.hpp>

#include <map>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <kvbench/methods/stages/kept_cache.hpp>

namespace kvbench::python {
namespace {

using methods::Content, methods::Element, methods::Read, methods::Tier;

template <class T>
using Names = std::map<std::string, T>;

/// The value that a field of a kvbench.Array names.
template <class T>
T named(const Names<T>& values, const nb::handle& array, const char* field) {
  const auto text = nb::cast<std::string>(array.attr(field));
  const auto found = values.find(text);
  if (found != values.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, value] : values) known.push_back(name);
  throw std::logic_error(
      fmt::format("the {} of a kvbench.Array is '{}'; it must be one of {}", field, text, fmt::join(known, ", ")));
}

Names<Element> element_names() {
  Names<Element> names = {
      {"kv", Element::kv}, {"f32", Element::f32}, {"f16", Element::f16}, {"i32", Element::i32}, {"u8", Element::u8}};
  for (int bits = 1; bits < 8; ++bits) names.emplace("b" + std::to_string(bits), methods::packed(bits));
  return names;
}

methods::FootprintArray array_of(const nb::handle& array) {
  static const Names<Element> elements = element_names();
  static const Names<Content> contents = {
      {"keys", Content::keys}, {"values", Content::values}, {"meta", Content::meta}};
  static const Names<Tier> tiers = {{"fast", Tier::fast}, {"slow", Tier::slow}};
  static const Names<Read> reads = {
      {"every_query", Read::every_query}, {"with_entry", Read::with_entry}, {"never", Read::never}};
  methods::FootprintArray out{.name = nb::cast<std::string>(array.attr("name")),
                              .element = named(elements, array, "element"),
                              .rows = nb::cast<Index>(nb::int_(array.attr("rows"))),
                              .cols = nb::cast<Index>(nb::int_(array.attr("cols"))),
                              .tier = named(tiers, array, "tier"),
                              .read = named(reads, array, "read"),
                              .content = named(contents, array, "content")};
  if (out.rows < 0 || out.cols < 0)
    throw std::logic_error(fmt::format("the kvbench.Array '{}' has a negative size", out.name));
  return out;
}

}  // namespace

methods::Footprint footprint_of(nb::handle given, Index d, Index dv) {
  Index tokens = 0;
  if (nb::try_cast(given, tokens)) return methods::kept_footprint(tokens, d, dv);
  methods::Footprint arrays;
  for (const nb::handle array : given) arrays.push_back(array_of(array));
  return arrays;
}

}  // namespace kvbench::python
