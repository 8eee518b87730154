# The ranks of a history make the calls of random programs.
target_sources(test_virtual PRIVATE ${PROJECT_SOURCE_DIR}/test/random/oracle.cpp ${PROJECT_SOURCE_DIR}/test/random/perform.cpp
  ${PROJECT_SOURCE_DIR}/test/random/step.cpp ${PROJECT_SOURCE_DIR}/test/random/values.cpp)
# Simulated time costs real time: optimised as the library is.
if(NOT SYNCOPATE_SANITIZE)
  target_compile_options(test_virtual PRIVATE $<$<CONFIG:Release>:-O2>)
endif()
# One test case runs many histories, which takes long under sanitizers.
gtest_discover_tests(test_virtual TEST_PREFIX virtual/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS virtual TIMEOUT 600)
