# KVBENCH_CUDA: AUTO builds the CUDA back end where nvcc is found, ON requires it, OFF does not build it. It is a
# module, libkvbench_cuda.so, which tests and benchmarks load from the build folder; the program loads it from its own
# folder, or from the library folder of an installation.
set(CMAKE_BUILD_RPATH ${PROJECT_BINARY_DIR})
set(KVBENCH_CUDA AUTO CACHE STRING "CUDA back end: AUTO, ON or OFF")
set_property(CACHE KVBENCH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(KVBENCH_WITH_CUDA OFF)
if(NOT KVBENCH_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "GPU architectures")
    endif()
    enable_language(CUDA)
    # CMake 3.25 has no C++20 option for nvcc, which supports it from version 12 on
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    find_package(CUDAToolkit REQUIRED)
    set(KVBENCH_WITH_CUDA ON)
  elseif(KVBENCH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "KVBENCH_CUDA=ON but no CUDA compiler was found. Install the CUDA toolkit (12 or 13), put nvcc "
      "on PATH, or configure with -DKVBENCH_CUDA=OFF.")
  endif()
endif()
message(STATUS "kvbench: CUDA back end ${KVBENCH_WITH_CUDA}")
