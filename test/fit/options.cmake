# Fitting is part of the command line, not of the library: its sources are compiled into this test.
target_sources(test_fit PRIVATE ${PROJECT_SOURCE_DIR}/programs/syncopate/fit/links.cpp
               ${PROJECT_SOURCE_DIR}/programs/syncopate/fit/cluster.cpp ${PROJECT_SOURCE_DIR}/programs/syncopate/bench/rows.cpp)
target_include_directories(test_fit PRIVATE ${PROJECT_SOURCE_DIR}/programs/syncopate ${PROJECT_SOURCE_DIR}/programs)
gtest_discover_tests(test_fit TEST_PREFIX fit/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS fit TIMEOUT 600)
