# The header-only dependencies: the installed package where CMake finds one, else a folder with the headers
# (-DKVBENCH_HEADERS=DIR with DIR/fmt, DIR/Eigen, DIR/doctest; `scripts/gpu-check --collect DIR` creates it).
set(KVBENCH_HEADERS "" CACHE PATH "Folder of header-only dependencies, used where no package is found")

# kvbench_header_only(PACKAGE TARGET HEADER DEBIAN_PACKAGE [definitions...])
function(kvbench_header_only package target header debian)
  find_package(${package} QUIET)
  if(TARGET ${target})
    return()
  endif()
  if(NOT EXISTS "${KVBENCH_HEADERS}/${header}")
    message(FATAL_ERROR "${package} was not found. Install the Debian package ${debian}, or give a folder that "
      "contains ${header} with -DKVBENCH_HEADERS=DIR (now: '${KVBENCH_HEADERS}').")
  endif()
  add_library(${target} INTERFACE IMPORTED)
  target_include_directories(${target} INTERFACE ${KVBENCH_HEADERS})
  target_compile_definitions(${target} INTERFACE ${ARGN})
endfunction()

kvbench_header_only(fmt fmt::fmt-header-only fmt/format.h libfmt-dev FMT_HEADER_ONLY=1)
kvbench_header_only(Eigen3 Eigen3::Eigen Eigen/Core libeigen3-dev)
if(KVBENCH_TESTS)
  kvbench_header_only(doctest doctest::doctest doctest/doctest.h doctest-dev)
endif()

# Header-only fmt where no compiled dependency is allowed; elsewhere its library, which halves the build time.
if(KVBENCH_BARE OR NOT TARGET fmt::fmt)
  set(KVBENCH_FMT fmt::fmt-header-only)
else()
  set(KVBENCH_FMT fmt::fmt)
endif()
