// Tar archives and sets of pictures that tests write.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace syncopate::input::test {

inline std::string padded(std::string text) {
  text.resize((text.size() + 511) / 512 * 512);
  return text;
}

inline void seal(std::string& header) {
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%06o", sum);
  header.replace(148, 7, text.data(), 7);
}

struct Entry {
  std::string name, contents;
  char kind = '0';
  std::string target{};  ///< of a link
};

inline std::string header_of(const Entry& entry) {
  std::string header(512, '\0');
  header.replace(0, std::min<std::size_t>(entry.name.size(), 100), entry.name.substr(0, 100));
  std::array<char, 13> size{};
  std::snprintf(size.data(), size.size(), "%011zo", entry.contents.size());
  header.replace(124, 12, size.data(), 12);
  header[156] = entry.kind;
  header.replace(157, entry.target.size(), entry.target);
  header.replace(257, 8, std::string("ustar\00000", 8));
  seal(header);
  return header;
}

inline std::string archive_of(const std::vector<Entry>& entries) {
  std::string bytes;
  for (const Entry& entry : entries) bytes += header_of(entry) + padded(entry.contents);
  return bytes + std::string(1024, '\0');
}

/// A folder that goes with the test.
class Place final {
 public:
  explicit Place(const std::string& name)
      : path(std::filesystem::temp_directory_path() / fmt::format("syncopate-input-{}-{}", getpid(), name)) {
    std::filesystem::remove_all(path);
  }
  ~Place() { std::filesystem::remove_all(path); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  const std::filesystem::path path;
};

inline void put(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace syncopate::input::test
