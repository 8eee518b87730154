# These tests look into the command line's benchmark: its sources, and the method it shares with the contenders.
find_package(nlohmann_json QUIET)
set(bench_sources rows.cpp agent.cpp codec/rows.cpp codec/nth_element.cpp step/pytorch.cpp step/rows.cpp
    exchange/law.cpp exchange/rows.cpp server/rows.cpp server/thesis.cpp)
list(TRANSFORM bench_sources PREPEND ${PROJECT_SOURCE_DIR}/programs/syncopate/bench/)
target_sources(test_bench PRIVATE ${bench_sources})
target_include_directories(test_bench PRIVATE ${PROJECT_SOURCE_DIR}/programs/syncopate ${PROJECT_SOURCE_DIR}/programs ${PROJECT_SOURCE_DIR}/bench)
gtest_discover_tests(test_bench TEST_PREFIX bench/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS bench TIMEOUT 600)
