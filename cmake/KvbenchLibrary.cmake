# kvbench_library(NAME SOURCES files... LINKS targets...) makes kvbench_NAME and kvbench::NAME.
# Headers stand beside their sources. Each library has an include root of its own, in which its folder appears as kvbench/NAME,
# so <kvbench/NAME/x.hpp> is found only by targets that link kvbench::NAME: an include against the arrows does not compile.
function(kvbench_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(kvbench_${name} STATIC ${arg_SOURCES})
  add_library(kvbench::${name} ALIAS kvbench_${name})
  set_target_properties(kvbench_${name} PROPERTIES EXPORT_NAME ${name})
  set(root ${PROJECT_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root}/kvbench)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/kvbench/${name} SYMBOLIC)
  target_include_directories(kvbench_${name} PUBLIC $<BUILD_INTERFACE:${root}> $<INSTALL_INTERFACE:include>)
  target_compile_features(kvbench_${name} PUBLIC cxx_std_20)
  target_link_libraries(kvbench_${name} PUBLIC ${arg_LINKS} PRIVATE $<BUILD_INTERFACE:kvbench_flags>)
  set_property(GLOBAL APPEND PROPERTY KVBENCH_LIBRARIES ${name})
endfunction()
