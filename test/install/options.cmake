# The install test needs everything that is installed; a sanitizer's library cannot be linked by a stranger's project.
if(SYNCOPATE_SANITIZE)
  set_target_properties(test_install PROPERTIES EXCLUDE_FROM_ALL TRUE)
  return()
endif()
add_dependencies(test_install syncopate syncopate-cli)
if(TARGET syncopate-train)
  add_dependencies(test_install syncopate-train)
endif()
target_compile_definitions(test_install PRIVATE CMAKE_PROGRAM="${CMAKE_COMMAND}" BUILD_FOLDER="${PROJECT_BINARY_DIR}"
  EXAMPLE_FOLDER="${PROJECT_SOURCE_DIR}/example" PROJECT_VERSION="${PROJECT_VERSION}")
gtest_discover_tests(test_install TEST_PREFIX install/ PROPERTIES LABELS install TIMEOUT 600)
