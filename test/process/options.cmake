# These tests start the built command line; those of labs run one at a time, because they measure.
add_dependencies(test_process syncopate-cli)
target_compile_definitions(test_process PRIVATE SYNCOPATE_PROGRAM="$<TARGET_FILE:syncopate-cli>")
if(TARGET syncopate-server)
  add_dependencies(test_process syncopate-server)
  target_compile_definitions(test_process PRIVATE SYNCOPATE_HAVE_SERVER)
  if(SYNCOPATE_BENCHMARKS)
    add_dependencies(test_process bench_server)
  endif()
endif()
find_package(nlohmann_json QUIET)
gtest_discover_tests(test_process TEST_PREFIX process/ TEST_FILTER -Lab* TEST_LIST process_tests
  DISCOVERY_TIMEOUT 60 PROPERTIES LABELS process TIMEOUT 600)
gtest_discover_tests(test_process TEST_PREFIX process/ TEST_FILTER Lab* TEST_LIST process_lab_tests
  DISCOVERY_TIMEOUT 60 PROPERTIES LABELS process TIMEOUT 600 RUN_SERIAL TRUE)
