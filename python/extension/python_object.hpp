// SPDX-License-Identifier: Apache-2.0
// Objects and calls of Python in threads that do not hold the GIL.
#pragma once

#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

namespace kvbench::python {

namespace nb = nanobind;

/// An object of Python that threads may hold, copy and drop without the GIL.
class Held {
 public:
  Held() = default;
  /// Takes the object. With the GIL.
  explicit Held(nb::object object);
  /// With the GIL.
  nb::handle get() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

/// The end of a call of Python: throws what the exception means to the library. kvbench.Unavailable and
/// kvbench.Infeasible become those of the contract, KeyboardInterrupt Interrupted, and every other one methods::Failed
/// with the last line of its traceback (of kvbench.Error: its message) and the whole one, shortened. With the GIL.
[[noreturn]] void rethrow(nb::python_error& error);

/// As long as it exists, this thread holds the GIL for a call of a method, which interrupt_calls() can end.
class MethodCall {
 public:
  MethodCall();
  ~MethodCall();
  MethodCall(const MethodCall&) = delete;
  MethodCall& operator=(const MethodCall&) = delete;

 private:
  /// Makes the state of Python for this thread at its first call. It is not given back: making one for every call takes
  /// longer than most methods.
  struct ThreadState {
    ThreadState();
  };
  ThreadState state_;
  nb::gil_scoped_acquire gil_;
};

/// How this thread rounds, and whether it takes subnormal numbers for zero, on which the rows of all methods depend:
/// what has changed is restored when the guard ends.
class ArithmeticGuard {
 public:
  ArithmeticGuard();
  ~ArithmeticGuard();
  ArithmeticGuard(const ArithmeticGuard&) = delete;
  ArithmeticGuard& operator=(const ArithmeticGuard&) = delete;
  /// Restores it now, with a warning of Python. With the GIL.
  void restore();

 private:
  bool changed() const;

  int rounding_;
  unsigned control_;
};

/// call() with the GIL, and its result, if it has one, which must not be an object of Python. Throws as rethrow() does.
template <class F>
auto with_python(F call) {
  const MethodCall running;
  try {
    ArithmeticGuard arithmetic;
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      call();
      arithmetic.restore();
    } else {
      auto result = call();
      arithmetic.restore();
      return result;
    }
  } catch (nb::python_error& error) {
    rethrow(error);
  } catch (const nb::cast_error&) {
    throw std::logic_error("a value that a method in Python returned is of a type that the contract does not allow");
  }
}

/// Whether a method, or the file of one, runs in this thread. With the GIL.
bool in_method();
/// Raises KeyboardInterrupt in all threads in which a method runs. With the GIL.
void interrupt_calls();

}  // namespace kvbench::python
