# One process test at a time: they measure how long a machine takes to notice.
gtest_discover_tests(test_${name} TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 60
  PROPERTIES LABELS ${name} TIMEOUT 120 RUN_SERIAL TRUE)
