# kvbench_chunks(sources...): which sources a unity build compiles together. Neighbouring folders share a chunk of at
# most 16 sources, and no folder is split, so that a new source recompiles the chunk of its folder alone.
function(kvbench_chunks)
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND folders ${folder})
    list(APPEND sources_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  list(SORT folders)
  set(size 0)
  foreach(folder ${folders})
    list(LENGTH sources_${folder} count)
    math(EXPR size "${size} + ${count}")
    if(size EQUAL count OR size GREATER 16)
      cmake_path(GET folder FILENAME chunk)
      set(size ${count})
    endif()
    set_source_files_properties(${sources_${folder}} PROPERTIES UNITY_GROUP ${chunk})
  endforeach()
endfunction()

# kvbench_library(NAME LINKS targets... [SOURCES generated files...] [COLD]) creates kvbench_NAME and kvbench::NAME from
# all sources below the folder. <kvbench/NAME/x.hpp> is the file lib/kvbench/NAME/x.hpp. tests/architecture checks which
# library may include which. COLD: the library formats and parses; -O1 compiles it in three quarters of the time.
function(kvbench_library name)
  cmake_parse_arguments(arg "COLD" "" "SOURCES;LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  add_library(kvbench_${name} STATIC ${sources} ${arg_SOURCES})
  add_library(kvbench::${name} ALIAS kvbench_${name})
  set_target_properties(kvbench_${name} PROPERTIES EXPORT_NAME ${name} UNITY_BUILD ${KVBENCH_UNITY}
    UNITY_BUILD_MODE GROUP)
  kvbench_chunks(${sources} ${arg_SOURCES})
  target_include_directories(kvbench_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib>
    $<INSTALL_INTERFACE:include>)
  target_compile_features(kvbench_${name} PUBLIC cxx_std_20)
  target_link_libraries(kvbench_${name} PUBLIC ${arg_LINKS} PRIVATE $<BUILD_INTERFACE:kvbench_flags>)
  if(arg_COLD)
    target_compile_options(kvbench_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  set_property(GLOBAL APPEND PROPERTY KVBENCH_LIBRARIES ${name})
endfunction()
