// SPDX-License-Identifier: Apache-2.0
#include <python/extension/footprints.hpp>

#include <map>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <kvbench/methods/stages/kept_cache.hpp>

#include <python/extension/returned.hpp>

namespace kvbench::python {
namespace {

using methods::Content, methods::Element, methods::Read, methods::Tier;

constexpr Index most_numbers = Index{1} << 48;  ///< whose sums over arrays and heads have 64 bits
constexpr std::size_t most_arrays = 1000;

template <class T>
using Names = std::map<std::string, T>;

/// The value that a field of a kvbench.Array names.
template <class T>
T named(const Names<T>& values, const nb::handle& array, const char* field) {
  const std::string text = text_in(array.attr(field), fmt::format("footprint(): the {} of a kvbench.Array", field));
  const auto found = values.find(text);
  if (found != values.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, value] : values) known.push_back(name);
  throw std::logic_error(fmt::format("footprint(): the {} of a kvbench.Array is '{}'; it must be one of {}", field,
                                     text, fmt::join(known, ", ")));
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
  const std::string name = text_in(array.attr("name"), "footprint(): the name of a kvbench.Array");
  const auto size = [&](const char* what) {
    return count_in(array.attr(what), fmt::format("footprint(): {} of the array '{}'", what, name), most_numbers);
  };
  methods::FootprintArray out{.name = name,
                              .element = named(elements, array, "element"),
                              .rows = size("rows"),
                              .cols = size("cols"),
                              .tier = named(tiers, array, "tier"),
                              .read = named(reads, array, "read"),
                              .content = named(contents, array, "content")};
  if (out.rows > 0 && out.cols == 0)
    throw std::logic_error(fmt::format("footprint(): the array '{}' has {} rows without columns", name, out.rows));
  if (out.cols > 0 && out.rows > most_numbers / out.cols)
    throw std::logic_error(fmt::format("footprint(): the array '{}' has more than 2^48 numbers", name));
  return out;
}

}  // namespace

methods::Footprint footprint_of(nb::handle given, Index d, Index dv) {
  static const nb::handle array_type =
      nb::object(nb::module_::import_("kvbench.methods.method").attr("Array")).release();
  if (PyIndex_Check(given.ptr()) != 0 || !nb::hasattr(given, "__iter__"))
    return methods::kept_footprint(count_in(given, "footprint(), unless it is a list of kvbench.Array,"), d, dv);
  methods::Footprint arrays;
  Index numbers = 0;
  for (const nb::handle array : given) {
    if (!nb::isinstance(array, array_type))
      throw std::logic_error("footprint() must return a number of tokens, or a list of kvbench.Array alone");
    arrays.push_back(array_of(array));
    numbers += arrays.back().rows * arrays.back().cols;
    if (arrays.size() > most_arrays || numbers > most_numbers)
      throw std::logic_error(fmt::format("footprint() has more than {} arrays or 2^48 numbers", most_arrays));
  }
  return arrays;
}

}  // namespace kvbench::python
