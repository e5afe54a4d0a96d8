# kvbench_library(NAME LINKS targets... [SOURCES generated files...] [COLD]) creates kvbench_NAME and kvbench::NAME from
# all sources below the folder. <kvbench/NAME/x.hpp> is the file lib/kvbench/NAME/x.hpp. tests/architecture checks which
# library may include which. COLD: the library formats and parses; -O1 compiles it in three quarters of the time.
function(kvbench_library name)
  cmake_parse_arguments(arg "COLD" "" "SOURCES;LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  add_library(kvbench_${name} STATIC ${sources} ${arg_SOURCES})
  add_library(kvbench::${name} ALIAS kvbench_${name})
  set_target_properties(kvbench_${name} PROPERTIES EXPORT_NAME ${name} UNITY_BUILD ${KVBENCH_UNITY}
    UNITY_BUILD_BATCH_SIZE 16)
  target_include_directories(kvbench_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib>
    $<INSTALL_INTERFACE:include>)
  target_compile_features(kvbench_${name} PUBLIC cxx_std_20)
  target_link_libraries(kvbench_${name} PUBLIC ${arg_LINKS} PRIVATE $<BUILD_INTERFACE:kvbench_flags>)
  if(arg_COLD)
    target_compile_options(kvbench_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  set_property(GLOBAL APPEND PROPERTY KVBENCH_LIBRARIES ${name})
endfunction()
