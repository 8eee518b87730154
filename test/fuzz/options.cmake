# Each source file in a folder below is a target: its stem is its function, its corpus folder and its fuzzing program.
find_package(nlohmann_json REQUIRED)
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${folder}/*/*.cpp)
set(declarations "")
set(rows "")
foreach(target ${fuzz_targets})
  get_filename_component(stem ${target} NAME_WE)
  string(APPEND declarations "void ${stem}(Input input);\n")
  string(APPEND rows "      {\"${stem}\", target::${stem}},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/fuzz_targets.cpp CONTENT "// Generated from the folders of test/fuzz.
#include \"fuzz/target.hpp\"

namespace syncopate::fuzz {
namespace target {
${declarations}}  // namespace target

std::span<const Target> targets() {
  static constexpr Target table[] = {
${rows}  };
  return table;
}
}  // namespace syncopate::fuzz
" @ONLY)

# Sources that targets need in addition to the library: from the command line and the training program.
add_library(fuzzed OBJECT ${PROJECT_SOURCE_DIR}/programs/syncopate/bench/rows.cpp ${PROJECT_SOURCE_DIR}/programs/syncopate/lab/shape.cpp
  ${PROJECT_SOURCE_DIR}/programs/syncopate/report/record/run.cpp ${PROJECT_SOURCE_DIR}/programs/syncopate/report/record/jsonl.cpp
  ${PROJECT_SOURCE_DIR}/programs/syncopate/report/record/overlap.cpp
  ${PROJECT_SOURCE_DIR}/programs/train/record/checkpoint_header.cpp ${PROJECT_SOURCE_DIR}/programs/train/data/files.cpp)
target_include_directories(fuzzed PUBLIC ${PROJECT_SOURCE_DIR}/programs/syncopate ${PROJECT_SOURCE_DIR}/programs ${PROJECT_SOURCE_DIR}/programs/train)
target_compile_definitions(fuzzed PUBLIC XXH_INLINE_ALL)
target_link_libraries(fuzzed PUBLIC syncopate syncopate_settings fmt::fmt)

target_sources(test_fuzz PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/fuzz_targets.cpp)
target_link_libraries(test_fuzz PRIVATE fuzzed)
target_compile_definitions(test_fuzz PRIVATE CORPUS_FOLDER="${folder}/corpus")
gtest_discover_tests(test_fuzz TEST_PREFIX fuzz/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS fuzz TIMEOUT 600)

if(SYNCOPATE_FUZZ)
  add_custom_target(fuzz)
  foreach(target ${fuzz_targets})
    get_filename_component(stem ${target} NAME_WE)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/fuzz_${stem}.cpp CONTENT "// Generated: libFuzzer's way into one target.
#include \"fuzz/target.hpp\"

namespace syncopate::fuzz::target {
void ${stem}(Input input);
}

extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  syncopate::fuzz::target::${stem}(std::as_bytes(std::span(data, size)));
  return 0;
}
" @ONLY)
    add_executable(fuzz_${stem} ${target} ${CMAKE_CURRENT_BINARY_DIR}/fuzz_${stem}.cpp)
    target_include_directories(fuzz_${stem} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/test)
    target_link_libraries(fuzz_${stem} PRIVATE fuzzed)
    # libFuzzer looks at every counter of the program after every run: what a target cannot reach stays out of it.
    target_link_options(fuzz_${stem} PRIVATE -fsanitize=fuzzer -Wl,--gc-sections -Wl,-z,start-stop-gc)
    add_dependencies(fuzz fuzz_${stem})
  endforeach()
endif()
