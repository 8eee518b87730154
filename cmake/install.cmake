# Installation: headers, the library, the programs, and a package for find_package(syncopate).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/syncopate)
install(TARGETS syncopate EXPORT syncopate-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS syncopate-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET syncopate-train AND NOT SKBUILD)  # keeps finding the libtorch it was linked against, also where that lies in the build tree
  set_target_properties(syncopate-train PROPERTIES INSTALL_RPATH ${SYNCOPATE_LIBTORCH_ROOT}/lib)
  install(TARGETS syncopate-train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS syncopate-server RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET bench_server)
  install(TARGETS bench_server RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(EXPORT syncopate-targets NAMESPACE syncopate:: DESTINATION ${package})
configure_package_config_file(cmake/syncopate-config.cmake.in ${CMAKE_BINARY_DIR}/syncopate-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/syncopate-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/syncopate-config.cmake ${CMAKE_BINARY_DIR}/syncopate-config-version.cmake
  DESTINATION ${package})
