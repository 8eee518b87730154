# Gathers a shelf folder into a constant table: every .cpp in it is one entry whose stem is its symbol.
#
# syncopate_shelf(TARGET FOLDER NAMESPACE TYPE ACCESSOR HEADER)
#   Each FOLDER/<stem>.cpp defines `extern constinit const TYPE <stem>;` in NAMESPACE::<folder name>.
#   The generated source defines `std::span<const TYPE* const> NAMESPACE::ACCESSOR()`, ordered by name.
function(syncopate_shelf target folder namespace type accessor header)
  file(GLOB entries CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  list(SORT entries)
  get_filename_component(inner ${folder} NAME)
  set(declarations "")
  set(rows "")
  foreach(entry ${entries})
    get_filename_component(stem ${entry} NAME_WE)
    string(APPEND declarations "extern const ${type} ${stem};\n")
    string(APPEND rows "    &${inner}::${stem},\n")
  endforeach()
  string(REPLACE "::" "_" file "${namespace}_${inner}")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${file}.cpp)
  file(CONFIGURE OUTPUT ${output} CONTENT "// Generated from the files in ${folder}.
#include \"${header}\"

namespace ${namespace} {
namespace ${inner} {
${declarations}}  // namespace ${inner}

std::span<const ${type}* const> ${accessor}() {
  static constexpr const ${type}* table[] = {
${rows}  };
  return table;
}
}  // namespace ${namespace}
" @ONLY)
  target_sources(${target} PRIVATE ${output} ${entries})
  set_source_files_properties(${entries} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # entries use the same names
endfunction()
