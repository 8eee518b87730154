# These tests start the server's program.
add_dependencies(test_service syncopate-server)
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/service/start_up.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_DEFINITIONS "SYNCOPATE_SERVER_PROGRAM=\"$<TARGET_FILE:syncopate-server>\"")
gtest_discover_tests(test_service TEST_PREFIX service/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS service TIMEOUT 600)
