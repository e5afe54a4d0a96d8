// SPDX-License-Identifier: Apache-2.0
// Parameters of a method: a plain struct with defaults, and one function `void fields(ParamVisitor&, P&)` beside it
// that names each field once. Help, documentation, parsing and validation all use that function. Constraints that a
// range cannot express are checked by an optional `void check(const P&)` beside it, which throws Error.
#pragma once

#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

struct ParamRange {
  double min = -unbounded, max = unbounded;
};

/// The description of a parameter that `kvbench methods NAME` prints.
struct ParamSpec {
  std::string name, type, default_value, range, doc;
  /// Whether `value` is the path of a file: types such as "none|auto|FILE" take one in place of their words.
  bool names_file(std::string_view value) const;
};

/// One "name=value" of --set or a sweep file.
struct Assignment {
  std::string name, value;
};

class ParamVisitor {
 public:
  virtual ~ParamVisitor() = default;
  virtual void integer(std::string_view name, Index& value, ParamRange range, std::string_view doc) = 0;
  virtual void real(std::string_view name, double& value, ParamRange range, std::string_view doc) = 0;
  virtual void flag(std::string_view name, bool& value, std::string_view doc) = 0;
  virtual void text(std::string_view name, std::string& value, std::string_view accepted, std::string_view doc) = 0;
  virtual void choice(std::string_view name, int& value, std::span<const std::string> options,
                      std::string_view doc) = 0;

  /// An enum whose values 0, 1, ... have these names.
  template <class E>
  void choice(std::string_view name, E& value, std::initializer_list<std::string> options, std::string_view doc) {
    int index = static_cast<int>(value);
    choice(name, index, std::span<const std::string>(options.begin(), options.size()), doc);
    value = static_cast<E>(index);
  }
};

/// A method without parameters.
struct NoParams {};
inline void fields(ParamVisitor&, NoParams&) {}

/// The parameters of one configured method, type-erased.
class Params {
 public:
  Params() = default;
  Params(std::shared_ptr<const void> value, std::string text) : value_(std::move(value)), text_(std::move(text)) {}
  template <class P>
  const P& as() const {
    return *static_cast<const P*>(value_.get());
  }
  /// The same parameters for whoever takes a base class of theirs by as<Base>().
  template <class P, class Base>
  Params seen_as() const {
    return {std::shared_ptr<const Base>(value_, &as<P>()), text_};
  }
  /// Canonical text of the parameters that differ from their defaults, in declaration order: "delta=4;s=8"; "" where
  /// none does.
  const std::string& text() const { return text_; }
  /// The same parameters with another text, of a method that adds to it.
  Params with_text(std::string text) const { return {value_, std::move(text)}; }

 private:
  std::shared_ptr<const void> value_;
  std::string text_;
};

namespace detail {
using Visit = void (*)(ParamVisitor&, void*);
std::vector<ParamSpec> schema_of(Visit visit, void* defaults);
/// Applies settings in order; returns the canonical text. Throws Error, naming the method, the parameter, the value and
/// the accepted values.
std::string assign(std::string_view method, Visit visit, void* value, void* defaults,
                   std::span<const Assignment> settings);
template <class P>
void visit_fields(ParamVisitor& visitor, void* value) {
  fields(visitor, *static_cast<P*>(value));
}
}  // namespace detail

template <class P>
std::vector<ParamSpec> schema_of() {
  P defaults;
  return detail::schema_of(detail::visit_fields<P>, &defaults);
}

template <class P>
Params bind_params(std::string_view method, std::span<const Assignment> settings) {
  auto value = std::make_shared<P>();
  P defaults;
  std::string text = detail::assign(method, detail::visit_fields<P>, value.get(), &defaults, settings);
  if constexpr (requires { check(std::as_const(*value)); }) check(std::as_const(*value));
  return {std::move(value), std::move(text)};
}

}  // namespace kvbench::methods
