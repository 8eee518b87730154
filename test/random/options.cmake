# One test case runs many programs of up to eight ranks, which takes long on a busy machine.
gtest_discover_tests(test_random TEST_PREFIX random/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS random TIMEOUT 600)
