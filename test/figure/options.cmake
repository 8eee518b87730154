# The figures are part of the command line, not of the library: their sources are compiled into this test.
find_package(nlohmann_json QUIET)
file(GLOB figure_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/programs/syncopate/figure/*.cpp ${PROJECT_SOURCE_DIR}/programs/syncopate/svg/*.cpp)
target_sources(test_figure PRIVATE ${figure_sources})
set_source_files_properties(${figure_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # files of one shape use the same names
target_include_directories(test_figure PRIVATE ${PROJECT_SOURCE_DIR}/programs/syncopate ${PROJECT_SOURCE_DIR}/programs)
gtest_discover_tests(test_figure TEST_PREFIX figure/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS figure TIMEOUT 600)
