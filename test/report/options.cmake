# The report is part of the command line, not of the library: its sources are compiled into this test.
file(GLOB_RECURSE report_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/programs/syncopate/report/*.cpp
     ${PROJECT_SOURCE_DIR}/programs/syncopate/svg/*.cpp)
target_sources(test_report PRIVATE ${report_sources})
target_include_directories(test_report PRIVATE ${PROJECT_SOURCE_DIR}/programs/syncopate ${PROJECT_SOURCE_DIR}/programs)
target_compile_definitions(test_report PRIVATE SYNCOPATE_COMMAND_LINE="$<TARGET_FILE:syncopate-cli>")
add_dependencies(test_report syncopate-cli)
gtest_discover_tests(test_report TEST_PREFIX report/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS report TIMEOUT 600)
