# KVBENCH_PYTHON: ON builds the Python extension (`pip install .` does), AUTO where nanobind and the headers of Python
# are found, OFF does not. Outside of pip, Python is the one of Python_EXECUTABLE, or the environment of the tests
# (scripts/fetch-model). No Python runs an extension with a sanitizer.
set(KVBENCH_PYTHON AUTO CACHE STRING "Python extension: AUTO, ON or OFF")
set_property(CACHE KVBENCH_PYTHON PROPERTY STRINGS AUTO ON OFF)
set(KVBENCH_WITH_PYTHON OFF)

if(NOT KVBENCH_PYTHON STREQUAL "OFF" AND NOT KVBENCH_BARE AND NOT KVBENCH_SANITIZE)
  if("$ENV{XDG_CACHE_HOME}" MATCHES "^/")
    set(environment $ENV{XDG_CACHE_HOME}/kvbench/venv/bin/python)
  else()
    set(environment $ENV{HOME}/.cache/kvbench/venv/bin/python)
  endif()
  if(NOT Python_EXECUTABLE AND EXISTS ${environment})
    set(Python_EXECUTABLE ${environment})
  endif()
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  if(Python_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_package(nanobind CONFIG QUIET)
  endif()
  if(Python_FOUND AND nanobind_FOUND)
    set(KVBENCH_WITH_PYTHON ON)
  elseif(KVBENCH_PYTHON STREQUAL "ON")
    message(FATAL_ERROR "KVBENCH_PYTHON=ON needs Python 3.10 or later with its headers (Debian package python3-dev) "
      "and the Python package nanobind. Run `pip install .`, which brings nanobind, or name a Python that has both "
      "with -DPython_EXECUTABLE=PYTHON.")
  endif()
endif()
message(STATUS "kvbench: Python extension ${KVBENCH_WITH_PYTHON}")
