# These tests train with the built programs; without a libtorch there is nothing to test.
if(NOT TARGET syncopate-train)
  set_target_properties(test_train PROPERTIES EXCLUDE_FROM_ALL TRUE)
  if(SYNCOPATE_TRAIN)
    syncopate_leave_out(train train "no libtorch, scripts/install")
  endif()
  return()
endif()
add_dependencies(test_train syncopate-cli syncopate-train syncopate-server example_own_model)
find_package(nlohmann_json REQUIRED)
file(GLOB ranks CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/programs/train/ranks/*.cpp)  # no tensors: tested by itself too
target_sources(test_train PRIVATE ${PROJECT_SOURCE_DIR}/test/process/run_program.cpp ${ranks}
  ${PROJECT_SOURCE_DIR}/programs/train/recipe/part.cpp)
target_include_directories(test_train PRIVATE ${PROJECT_SOURCE_DIR}/programs/train)
target_compile_definitions(test_train PRIVATE SYNCOPATE_PROGRAM="$<TARGET_FILE:syncopate-cli>"
  OWN_MODEL="$<TARGET_FILE:example_own_model>"
  EXAMPLE_JOB="${PROJECT_SOURCE_DIR}/example/job.toml"
  DAWNBENCH="${PROJECT_SOURCE_DIR}/data/recipe/dawnbench.json"
  DAWNBENCH_SMALL="${PROJECT_SOURCE_DIR}/data/recipe/dawnbench_small.json")
gtest_discover_tests(test_train TEST_PREFIX train/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS train TIMEOUT 600)
