// SPDX-License-Identifier: Apache-2.0
#include <python/extension/python_object.hpp>

#include <set>
#include <string>

#include <nanobind/stl/string.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench::python {
namespace {

/// The threads in which a method runs. With the GIL.
std::multiset<unsigned long>& running() {
  static auto* threads = new std::multiset<unsigned long>;  // never destroyed: threads may outlive main()
  return *threads;
}

bool is(const nb::python_error& error, const char* module, const char* name) {
  return error.matches(nb::module_::import_(module).attr(name));
}

std::string message(const nb::python_error& error) { return nb::cast<std::string>(nb::str(error.value())); }

std::string joined(const nb::object& lines) { return nb::cast<std::string>(nb::str("").attr("join")(lines)); }

}  // namespace

Held::Held(nb::object object)
    : object_(object.release().ptr(), [](PyObject* held) {
        if (Py_IsInitialized() == 0) return;
        const nb::gil_scoped_acquire gil;
        Py_DECREF(held);
      }) {}

MethodCall::ThreadState::ThreadState() {
  thread_local bool kept = false;
  if (kept || PyGILState_Check() != 0) return;  // a thread of Python that holds the GIL has a state
  PyGILState_Ensure();
  PyEval_SaveThread();
  kept = true;
}

MethodCall::MethodCall() { running().insert(PyThread_get_thread_ident()); }

MethodCall::~MethodCall() { running().erase(running().find(PyThread_get_thread_ident())); }

void interrupt_calls() {
  for (const unsigned long thread : running()) PyThreadState_SetAsyncExc(thread, PyExc_KeyboardInterrupt);
}

void rethrow(nb::python_error& error) {
  if (error.matches(PyExc_KeyboardInterrupt)) throw Interrupted();
  if (is(error, "kvbench.method", "Unavailable")) throw methods::Unavailable(message(error));
  if (is(error, "kvbench.method", "Infeasible")) throw methods::Infeasible(message(error));
  const nb::module_ traceback = nb::module_::import_("traceback");
  const nb::object whole = traceback.attr("format_exception")(error.type(), error.value(), error.traceback());
  std::string line = joined(traceback.attr("format_exception_only")(error.type(), error.value()));
  if (is(error, "kvbench._error", "Error")) line = message(error);
  while (line.ends_with('\n')) line.pop_back();
  throw methods::Failed(line.substr(line.rfind('\n') + 1), joined(whole));
}

}  // namespace kvbench::python
