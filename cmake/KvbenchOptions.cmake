# Options of the build, and the target kvbench_flags with the warnings.
option(KVBENCH_TESTS "Build the tests" ON)
option(KVBENCH_BENCH "Build the benchmarks" OFF)
option(KVBENCH_KVDUMP "Build kvdump and kveval (needs llama.cpp: find_package(llama))" OFF)
option(KVBENCH_BARE "Build only kernels, core, methods and their tests, without compiled dependencies (GPU machines)"
  OFF)
option(KVBENCH_UNITY "Compile several sources of a library at a time; off, every file must include what it uses"
  OFF)
if("$ENV{KVBENCH_WERROR}")   # .ci/run sets it
  set(werror ON)
endif()
option(KVBENCH_WERROR "Treat warnings as errors" ${werror})
set(KVBENCH_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(KVBENCH_CCACHE ccache)
if(KVBENCH_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The compiler cache accepts precompiled headers only with these settings (ccache's manual, "Precompiled headers").
  set(cache CCACHE_SLOPPINESS=pch_defines,time_macros)
  if(SKBUILD)  # `pip install .` finds what make compiled: in another folder, by another name of the compiler
    list(APPEND cache CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
    cmake_path(REPLACE_FILENAME CMAKE_CXX_COMPILER c++ OUTPUT_VARIABLE usual)
    file(REAL_PATH ${CMAKE_CXX_COMPILER} compiler)
    file(REAL_PATH ${usual} usual_compiler)
    if(compiler STREQUAL usual_compiler)
      list(APPEND cache CCACHE_COMPILER=${usual})
    endif()
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${cache} ${KVBENCH_CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${KVBENCH_CCACHE})
endif()

# -ffp-contract=off: results must not depend on the compiler's choice of fused operations; kernels use FMA explicitly.
add_library(kvbench_flags INTERFACE)
# -Wno-restrict, -Wno-stringop-overflow, -Wno-maybe-uninitialized: GCC 12 reports overlaps and sizes in std::string, and
# members of temporaries without a value, that do not exist (GCC bugs 105651 and 105616); which, depends on how the
# sources of a folder are joined.
target_compile_options(kvbench_flags INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-maybe-uninitialized>"
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-Wno-missing-field-initializers;-ffp-contract=off>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${KVBENCH_WERROR}>>:-Werror>)
if(KVBENCH_SANITIZE)
  target_compile_options(kvbench_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${KVBENCH_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  target_link_options(kvbench_flags INTERFACE -fsanitize=${KVBENCH_SANITIZE})
endif()
