// The files of a folder or a tar archive that are records, and their classes, for the sources in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "bind.hpp"
#include "signals.hpp"
#include "syncopate/files.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

/// Paths are bytes, because a file's name may be no valid UTF-8.
using RecordRow = std::tuple<nb::bytes, std::uint64_t, std::uint64_t, std::int64_t>;
using List = std::vector<input::StoredFile> (*)(const std::string&, input::Extensions);

constexpr const char* kFolderDoc =
    "The records below a folder, sorted: (path below it, bytes, 0, modification time in ns). extensions: endings of "
    "names, in any case; none: every file. Hidden files are left out. Raises SystemFailure.";
constexpr const char* kTarDoc =
    "The records in a tar archive, in its order: (path in it, bytes, offset of the contents, 0). Raises SystemFailure; "
    "Corrupt with archive, offset and reason.";
constexpr const char* kClassesDoc =
    "The class of each path of a set: its first folder below the deepest one in which every path has a folder; empty: "
    "it has none.";

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

template <List list>
std::vector<RecordRow> rows_of(const nb::bytes& path, const std::vector<std::string>& extensions) {
  const auto files = made_on_own_thread([path = std::string(path.c_str(), path.size()), extensions] {
    return list(path, std::vector<std::string_view>(extensions.begin(), extensions.end()));
  });
  std::vector<RecordRow> rows;
  rows.reserve(files.size());
  for (const input::StoredFile& file : files)
    rows.emplace_back(bytes_of(file.name), file.bytes, file.offset, file.changed_ns);
  return rows;
}

std::vector<nb::bytes> classes_of(const std::vector<nb::bytes>& paths) {
  std::vector<std::string_view> views;
  views.reserve(paths.size());
  for (const nb::bytes& path : paths) views.emplace_back(path.c_str(), path.size());
  std::vector<nb::bytes> classes;
  classes.reserve(paths.size());
  for (const std::string& one : input::classes_of(views)) classes.push_back(bytes_of(one));
  return classes;
}

}  // namespace

void bind_records(nb::module_& module) {
  module.def("files_in_folder", rows_of<input::files_in_folder>, "folder"_a, "extensions"_a, kFolderDoc);
  module.def("files_in_tar", rows_of<input::files_in_tar>, "archive"_a, "extensions"_a, kTarDoc);
  module.def("classes_of", classes_of, "paths"_a, kClassesDoc);
  nb::list extensions;
  for (const std::string_view one : input::kPictureExtensions) extensions.append(nb::str(one.data(), one.size()));
  module.attr("PICTURE_EXTENSIONS") = nb::tuple(extensions);
}

}  // namespace syncopate::bind
