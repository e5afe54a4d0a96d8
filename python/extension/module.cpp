// SPDX-License-Identifier: Apache-2.0
// kvbench._core: what Python sees of kvbench.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/eval/results.hpp>
#include <kvbench/methods/find_method.hpp>
#include <kvbench/testing/contract.hpp>

#include <apps/kvbench/run_kvbench.hpp>
#include <python/extension/bindings.hpp>
#include <python/extension/choice.hpp>
#include <python/extension/python_method.hpp>
#include <python/extension/python_object.hpp>
#include <python/extension/worker.hpp>

namespace nb = nanobind;

namespace {

/// The program with these arguments, the first of which is its name.
int run_program(const std::vector<nb::bytes>& given) {
  std::vector<std::string> arguments;
  for (const nb::bytes& argument : given) arguments.emplace_back(argument.c_str(), argument.size());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const nb::gil_scoped_release release;
  return kvbench::app::run_kvbench(static_cast<int>(arguments.size()), argv.data());
}

/// What the property tests find on a method: for each what it demands, whether it "holds", is
/// "broken" or "not tested", and why. As run_in_thread().
std::vector<std::tuple<std::string, std::string, std::string>> test_contract(const kvbench::python::Choice& choice) {
  using kvbench::testing::Compliance, kvbench::testing::Finding;
  const auto findings = std::make_shared<std::vector<Finding>>();  // an interrupted call outlives this one
  const auto test = [choice, findings] {
    const auto backend = kvbench::make_cpu_backend(kvbench::best_isa());
    *findings = kvbench::testing::test_contract({choice.method.info, choice.method.params}, *backend);
    return 0;
  };
  kvbench::python::run_in_thread(test, nb::none());
  std::vector<std::tuple<std::string, std::string, std::string>> found;
  for (const Finding& finding : *findings) {
    const bool holds = finding.compliance == Compliance::holds, broken = finding.compliance == Compliance::broken;
    found.emplace_back(finding.test->demand, holds ? "holds" : broken ? "broken" : "not tested", finding.sentence);
  }
  return found;
}

/// Errors of the library as exceptions of Python: kvbench.Error, OSError, KeyboardInterrupt.
void translate(const std::exception_ptr& thrown, void* error_class) {
  try {
    std::rethrow_exception(thrown);
  } catch (const kvbench::Error& error) {
    PyErr_SetString(static_cast<PyObject*>(error_class), error.what());
  } catch (const kvbench::methods::Unavailable& error) {  // in a model that decodes; replays make a row of it
    PyErr_SetString(static_cast<PyObject*>(error_class), error.what());
  } catch (const kvbench::IoError& error) {
    PyErr_SetString(PyExc_OSError, kvbench::printable(error.what(), "\n").c_str());
  } catch (const kvbench::Interrupted&) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

}  // namespace

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // what the user still holds when Python ends is no leak
  const nb::object error_class = nb::module_::import_("kvbench._error").attr("Error");
  nb::module_::import_("threading");  // takes the thread that imports it first for the main one, and waits for its end
  kvbench::methods::set_definer(kvbench::methods::Origin::python,
                                {&kvbench::python::find_python_method, &kvbench::python::source_sha256});
  nb::register_exception_translator(&translate, error_class.inc_ref().ptr());
  module.def("run_program", &run_program, nb::arg("arguments"));
  module.def("run_command", &kvbench::python::run_command, nb::arg("arguments"), nb::arg("show").none());
  kvbench::python::add_choice(module);
  kvbench::python::add_method_scores(module);
  kvbench::python::add_decoder(module);
  kvbench::python::add_evaluation(module);
  module.def("test_contract", &test_contract, nb::arg("choice"));
  module.attr("version") = std::string(kvbench::version());
  module.attr("least_scale") = kvbench::eval::least_scale;
  module.def("in_method", &kvbench::python::in_method);
  module.def("wait_for_worker", &kvbench::python::wait_for_worker);
}
