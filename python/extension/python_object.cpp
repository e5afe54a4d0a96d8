// SPDX-License-Identifier: Apache-2.0
#include <python/extension/python_object.hpp>

#include <cfenv>
#include <set>
#include <string>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

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

#ifdef __SSE2__
unsigned control_bits() { return _mm_getcsr() & ~unsigned{_MM_EXCEPT_MASK}; }
void set_control_bits(unsigned bits) { _mm_setcsr(bits | (_mm_getcsr() & _MM_EXCEPT_MASK)); }
#elif defined(__aarch64__)
unsigned control_bits() { return __builtin_aarch64_get_fpcr(); }
void set_control_bits(unsigned bits) { __builtin_aarch64_set_fpcr(bits); }
#else
unsigned control_bits() { return 0; }
void set_control_bits(unsigned) {}
#endif

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

ArithmeticGuard::ArithmeticGuard() : rounding_(std::fegetround()), control_(control_bits()) {}

bool ArithmeticGuard::changed() const { return std::fegetround() != rounding_ || control_bits() != control_; }

ArithmeticGuard::~ArithmeticGuard() {
  std::fesetround(rounding_);
  set_control_bits(control_);
}

void ArithmeticGuard::restore() {
  if (!changed()) return;
  std::fesetround(rounding_);
  set_control_bits(control_);
  constexpr const char* said =
      "a method in Python, or a library that it loaded, has changed how this thread rounds, or that it takes tiny "
      "numbers for zero (fesetround(), torch.set_flush_denormal()); kvbench has restored it";
  if (PyErr_WarnEx(PyExc_UserWarning, said, 1) != 0) throw nb::python_error();
}

void interrupt_calls() {
  for (const unsigned long thread : running()) PyThreadState_SetAsyncExc(thread, PyExc_KeyboardInterrupt);
}

bool in_method() { return running().contains(PyThread_get_thread_ident()); }

void rethrow(nb::python_error& error) {
  if (error.matches(PyExc_KeyboardInterrupt)) throw Interrupted();
  std::string kind, line, whole;
  try {
    const nb::object told = nb::module_::import_("kvbench.methods.caches").attr("told")(error.value());
    kind = nb::cast<std::string>(told[0]), line = nb::cast<std::string>(told[1]),
    whole = nb::cast<std::string>(told[2]);
  } catch (const nb::python_error&) {  // no memory or stack is left
    line = whole = "an exception that cannot be described";
  }
  if (kind == "unavailable") throw methods::Unavailable(line);
  if (kind == "infeasible") throw methods::Infeasible(line);
  throw methods::Failed(line, whole);
}

}  // namespace kvbench::python
