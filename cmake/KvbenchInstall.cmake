# make install: the programs, the libraries with their headers, and a package for find_package(kvbench). No installed
# file contains the prefix, so that it may be moved. share/kvbench has the layout of the repository, so that links
# between pages, paths in commands and the traces of sweep files are valid there.
#
# The component `programs` is what needs no compiler: scripts/release makes an archive of it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY KVBENCH_LIBRARIES)
set(targets kvbench_kernels)
foreach(name ${libraries})
  list(APPEND targets kvbench_${name})
endforeach()
install(DIRECTORY lib/kvbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY kernels/include/kvbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ${targets} EXPORT kvbench-targets DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS kvbench kvbench-validate DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
add_custom_target(kvbench_programs DEPENDS kvbench kvbench-validate)
if(KVBENCH_KVDUMP)
  add_dependencies(kvbench_programs kveval kvdump)
endif()
# install_printed(COMMAND WORD FOLDER NAME...): what `kvbench COMMAND WORD` writes from the flags, under each name.
function(install_printed command word folder)
  set(printed ${PROJECT_BINARY_DIR}/${command}.${word})
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:kvbench>\" ${command} ${word} OUTPUT_FILE \"${printed}\"
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR \"kvbench ${command} ${word}: \${failed}\")
  endif()" COMPONENT programs)
  foreach(name ${ARGN})
    install(FILES ${printed} DESTINATION ${folder} RENAME ${name} COMPONENT programs)
  endforeach()
endfunction()
set(manual kvbench kvbench-validate)
if(KVBENCH_KVDUMP)
  list(APPEND manual kveval kvdump)
endif()
foreach(program ${manual})
  install_printed(man ${program} ${CMAKE_INSTALL_MANDIR}/man1 ${program}.1)
endforeach()
# Under each name by which the shell looks for it.
function(install_completion shell folder)
  install_printed(completion ${shell} ${CMAKE_INSTALL_DATADIR}/${folder} ${ARGN})
endfunction()
set(completed kvbench kvbench-validate kveval kvdump kvbench-bundle kvbench-choose kvbench-cite kvbench-claim
  kvbench-dump-hf kvbench-report kvbench-verify)
list(TRANSFORM completed APPEND .fish OUTPUT_VARIABLE completed_in_fish)
install_completion(bash bash-completion/completions ${completed})
install_completion(zsh zsh/site-functions _kvbench)
install_completion(fish fish/vendor_completions.d ${completed_in_fish})
if(KVBENCH_WITH_CUDA)
  install(TARGETS kvbench_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT programs)
  add_dependencies(kvbench_programs kvbench_cuda)
endif()
install(DIRECTORY traces results configs docs python DESTINATION ${CMAKE_INSTALL_DATADIR}/kvbench COMPONENT programs
  USE_SOURCE_PERMISSIONS  # configs/slurm/submit is executable
  PATTERN __pycache__ EXCLUDE PATTERN "*.egg-info" EXCLUDE PATTERN build EXCLUDE)
install(FILES README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md HACKING.md LICENSE DESTINATION
  ${CMAKE_INSTALL_DATADIR}/kvbench COMPONENT programs)

install(EXPORT kvbench-targets NAMESPACE kvbench:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvbench)
configure_package_config_file(cmake/kvbench-config.cmake.in ${PROJECT_BINARY_DIR}/kvbench-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvbench)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kvbench-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kvbench-config.cmake ${PROJECT_BINARY_DIR}/kvbench-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvbench)
