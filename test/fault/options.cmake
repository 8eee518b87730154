# One process test at a time, with at most one other test.
# These tests measure how long a machine takes to notice a failure. Their ranks make the calls of random programs.
target_sources(test_fault PRIVATE ${PROJECT_SOURCE_DIR}/test/random/oracle.cpp ${PROJECT_SOURCE_DIR}/test/random/perform.cpp
  ${PROJECT_SOURCE_DIR}/test/random/step.cpp ${PROJECT_SOURCE_DIR}/test/random/values.cpp)
gtest_discover_tests(test_${name} TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 60
  PROPERTIES LABELS ${name} TIMEOUT 600 RESOURCE_LOCK processes PROCESSORS 3)
