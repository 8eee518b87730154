# The streams' tests need gRPC; without it the others remain.
if(TARGET syncopate_server)
  target_link_libraries(test_server PRIVATE syncopate_server PkgConfig::SYNCOPATE_GRPC)
else()
  list(FILTER sources EXCLUDE REGEX "/server/(rpc|process)/")
  set_target_properties(test_server PROPERTIES SOURCES "${sources}")
endif()
gtest_discover_tests(test_server TEST_PREFIX server/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS server TIMEOUT 120)
