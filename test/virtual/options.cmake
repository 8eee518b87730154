# The ranks of a history make the calls of random programs.
target_sources(test_virtual PRIVATE ${PROJECT_SOURCE_DIR}/test/random/oracle.cpp ${PROJECT_SOURCE_DIR}/test/random/perform.cpp
  ${PROJECT_SOURCE_DIR}/test/random/step.cpp ${PROJECT_SOURCE_DIR}/test/random/values.cpp)
# What is played is a program of its own: it is worth to be optimised as the library is.
if(NOT SYNCOPATE_SANITIZE)
  target_compile_options(test_virtual PRIVATE $<$<CONFIG:Release>:-O2>)
endif()
# Histories are many in one case: sanitizers take a while for them.
gtest_discover_tests(test_virtual TEST_PREFIX virtual/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS virtual TIMEOUT 600)
# What a parameter server does with its workers' streams and with a replica needs no gRPC.
target_sources(test_virtual PRIVATE ${PROJECT_SOURCE_DIR}/src/server/process/replica_keeper.cpp ${PROJECT_SOURCE_DIR}/src/server/process/seats.cpp)
