# Histories are many in one case: sanitizers take a while for them.
gtest_discover_tests(test_virtual TEST_PREFIX virtual/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS virtual TIMEOUT 600)
