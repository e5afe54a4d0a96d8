# make install: the programs, the libraries with their headers, and a package for find_package(kvbench).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY KVBENCH_LIBRARIES)
set(targets kvbench_kernels)
foreach(name ${libraries})
  list(APPEND targets kvbench_${name})
  install(DIRECTORY lib/${name}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kvbench/${name} FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(DIRECTORY kernels/include/kvbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ${targets} EXPORT kvbench-targets DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS kvbench DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY traces configs DESTINATION ${CMAKE_INSTALL_DATADIR}/kvbench USE_SOURCE_PERMISSIONS)  # configs/slurm/submit runs

install(EXPORT kvbench-targets NAMESPACE kvbench:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvbench)
configure_package_config_file(cmake/kvbench-config.cmake.in ${PROJECT_BINARY_DIR}/kvbench-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvbench)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kvbench-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kvbench-config.cmake ${PROJECT_BINARY_DIR}/kvbench-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvbench)
