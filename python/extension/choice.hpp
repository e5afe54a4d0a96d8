// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::python {

/// A method as it was read: files that it names, such as plans, may change, and it stays what it is.
struct Choice {
  replay::MethodChoice method;
  std::shared_ptr<const methods::MethodInfo> own;  ///< that of a method which is in no registry
};

/// Adds the class Choice, and choices(): those that --method means by an item; the class MethodName, and
/// parse_method(): methods::parse_method_text().
void add_choice(nanobind::module_& module);

}  // namespace kvbench::python
