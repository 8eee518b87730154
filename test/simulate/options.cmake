# These tests read the published numbers of data/.
target_compile_definitions(test_simulate PRIVATE DATA_FOLDER="${PROJECT_SOURCE_DIR}/data")
gtest_discover_tests(test_simulate TEST_PREFIX simulate/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS simulate TIMEOUT 600)
