// SPDX-License-Identifier: Apache-2.0
#include <python/extension/returned.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <nanobind/stl/string.h>

namespace kvbench::python {
namespace {

constexpr std::size_t longest_value = 40, longest_text = 500;  // characters

std::string shown(nb::handle text, std::size_t longest) {
  return nb::cast<std::string>(nb::module_::import_("kvbench.methods.caches").attr("shown")(text, longest));
}

[[noreturn]] void refuse(nb::handle value, const std::string& name, const std::string& wanted) {
  throw std::logic_error(fmt::format("{} is {}; it must be {}", name, shown(nb::repr(value), longest_value), wanted));
}

/// Of a bool of Python or NumPy.
bool is_truth(nb::handle value) {
  return PyBool_Check(value.ptr()) || std::string(nb::type_name(value.type()).c_str()).starts_with("numpy.bool");
}

}  // namespace

Index count_in(nb::handle value, const std::string& name, Index most) {
  const std::string wanted = fmt::format("a whole number from 0 to {}", most);
  if (PyIndex_Check(value.ptr()) == 0 || is_truth(value)) refuse(value, name, wanted);
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  int overflow = 0;
  if (number.is_valid()) {
    const long long count = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0 && count >= 0 && count <= most) return count;
  }
  PyErr_Clear();
  refuse(value, name, wanted);
}

double amount_in(nb::handle value, const std::string& name) {
  const double amount = PyFloat_AsDouble(value.ptr());
  const bool read = PyErr_Occurred() == nullptr;
  PyErr_Clear();
  if (!read || !std::isfinite(amount) || amount < 0) refuse(value, name, "a finite number, and not negative");
  return amount;
}

bool truth_in(nb::handle value, const std::string& name) {
  if (!is_truth(value)) refuse(value, name, "True or False");
  return PyObject_IsTrue(value.ptr()) == 1;
}

std::string text_in(nb::handle value, const std::string& name) {
  if (!nb::isinstance<nb::str>(value)) refuse(value, name, "text");
  return shown(value, longest_text);
}

methods::Protected protected_in(nb::handle sinks, nb::handle recent, Index n, const std::string& function) {
  methods::Protected fixed;
  fixed.sinks = std::min(n, count_in(sinks, function + ": sinks"));
  fixed.recent = std::min(n - fixed.sinks, count_in(recent, function + ": recent"));
  return fixed;
}

std::size_t items_in(nb::handle value, std::size_t least, std::size_t most, const std::string& name) {
  const bool listed =
      nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value) || nb::hasattr(value, "__array__");
  const Py_ssize_t items = listed ? PySequence_Size(value.ptr()) : -1;
  PyErr_Clear();
  if (items < static_cast<Py_ssize_t>(least) || items > static_cast<Py_ssize_t>(most))
    refuse(value, name, fmt::format("a list of {} to {} items", least, most));
  return static_cast<std::size_t>(items);
}

}  // namespace kvbench::python
