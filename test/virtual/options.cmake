# The ranks of a history make the calls of random programs.
target_sources(test_virtual PRIVATE ${PROJECT_SOURCE_DIR}/test/random/oracle.cpp ${PROJECT_SOURCE_DIR}/test/random/perform.cpp
  ${PROJECT_SOURCE_DIR}/test/random/step.cpp ${PROJECT_SOURCE_DIR}/test/random/values.cpp)
# Simulated time costs real time: optimised as the library is.
if(NOT SYNCOPATE_SANITIZE)
  target_compile_options(test_virtual PRIVATE $<$<CONFIG:Release>:-O2>)
endif()
# One test case runs many histories, which takes long under sanitizers.
gtest_discover_tests(test_virtual TEST_PREFIX virtual/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS virtual TIMEOUT 600)
# The streams of a parameter server's workers and replicas, without gRPC.
target_sources(test_virtual PRIVATE ${PROJECT_SOURCE_DIR}/src/server/process/replica_keeper.cpp ${PROJECT_SOURCE_DIR}/src/server/process/worker_slots.cpp)
# GCC 12 crashes on this file at -O2 (pass "cp") where it is compiled with GoogleTest's precompiled header.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/server/process/worker_slots.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_OPTIONS -fno-ipa-cp)
