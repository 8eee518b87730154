# Pictures are written by the libraries that read them; without these only the order is tested.
if(NOT SYNCOPATE_PICTURES STREQUAL "JPEG;PNG")
  syncopate_leave_out("input/Decoding.*, DecodedTier.*, Pipelines.*, Whole.*" input "no JPEG or no PNG, scripts/install")
  set_source_files_properties(${folder}/decoding.cpp ${folder}/pipelines.cpp ${folder}/whole.cpp PROPERTIES HEADER_FILE_ONLY ON)
else()
  target_link_libraries(test_input PRIVATE JPEG::JPEG PNG::PNG)
endif()
target_link_libraries(test_input PRIVATE ZLIB::ZLIB)
gtest_discover_tests(test_input TEST_PREFIX input/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS input TIMEOUT 600)
