# The sources of the CUDA backend, for nvcc and for the host compiler of tests/emulated.
include(${CMAKE_CURRENT_LIST_DIR}/../operations.cmake)
list(TRANSFORM operation_files APPEND .cu OUTPUT_VARIABLE cuda_files)
list(APPEND cuda_files backend.cu context.cpp uploader.cpp)
