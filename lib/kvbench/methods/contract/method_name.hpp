// SPDX-License-Identifier: Apache-2.0
// The name of a method, as users write it and as results have it. Nothing else reads such a text; find_method() says
// which method it names (methods/registry.hpp).
//
//   text      = name [ "[" settings "]" ]      also in ( ) or { }, if they hold a "=" or nothing
//   name      = "plan:" FILE | chosen [ "+" QUANTISER ]
//   chosen    = base | WRAPPER "(" base ")"
//   base      = NAME | "scores:" FILE | FILE [ ":" OBJECT ] | "py:" OBJECT
//   settings  = [ PARAMETER "=" VALUE { "," PARAMETER "=" VALUE } ]      also with ";" as rows print them
//
// Spaces around these parts are left out. A path may have any sign of the grammar: that of a plan goes to the end of
// the name, that of scores to the last ".h5", that of a method in Python to the last ".py" before a ":". A file of
// Python without an OBJECT is no method: Python refuses it by what the file has. An OBJECT has no brackets, and a
// WRAPPER is of letters, digits, "@", "-" and "_".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/methods/contract/params.hpp>

namespace kvbench::methods {

/// Who defines the base of a method: kvbench, a plan of the layers of a model, a file of scores, or Python.
enum class Origin { kvbench, plan, scores, python };

struct MethodName {
  std::string wrapper;                   ///< "adakv" of "adakv(snapkv)"; "": none
  std::string base;                      ///< "snapkv", "plan:p.toml", "mine.py:Mine"
  std::optional<std::string> quantiser;  ///< "int8" of "snapkv+int8", "" of "snapkv+"
  std::optional<std::string> settings;   ///< "t=4,delta=2"
  Origin origin = Origin::kvbench;       ///< of the base
  std::string file = {};                 ///< the path in the base; "": no file defines it
  std::string object = {};               ///< of Origin::python: the class or scorer, in the file or in a running Python

  /// The name alone, as results have it: "adakv(snapkv)+int8".
  std::string name() const;
  /// With the settings, as parse_method_text() reads it.
  std::string text() const;
  /// The same with another path; as it is if no file defines it.
  MethodName with_file(const std::string& path) const;
  /// The settings, none if there are no brackets. Throws Error as parse_settings() does.
  std::vector<Assignment> assignments() const;

  bool operator==(const MethodName&) const = default;
};

/// Reads a name without settings. Every text is one: what fits nothing else is a NAME, which no method has.
MethodName parse_method_name(std::string_view name);
/// Reads a text. Absent if it has square brackets, but not one pair that ends it, or if the brackets that end it hold
/// others of their kind.
std::optional<MethodName> parse_method_text(std::string_view text);
/// Whether a name is that of a plan.
inline bool is_plan(std::string_view name) { return parse_method_name(name).origin == Origin::plan; }

/// "t=4,delta=2". Throws Error for an item that is not PARAMETER=VALUE, and for a parameter that is given twice.
std::vector<Assignment> parse_settings(std::string_view settings);

}  // namespace kvbench::methods
