// SPDX-License-Identifier: Apache-2.0
// kvbench._core: what Python sees of kvbench.
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <apps/kvbench/run_kvbench.hpp>

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

}  // namespace

NB_MODULE(_core, module) { module.def("run_program", &run_program, nb::arg("arguments")); }
