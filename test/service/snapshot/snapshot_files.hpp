// Files of snapshots: a folder for them that goes with the test.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

namespace syncopate::test {

namespace fs = std::filesystem;

class SnapshotFiles final {
 public:
  SnapshotFiles() {
    static int folders = 0;
    path_ = fs::temp_directory_path() /
            ("syncopate-snapshots-" + std::to_string(getpid()) + "-" + std::to_string(++folders));
    fs::remove_all(path_);
  }
  ~SnapshotFiles() { fs::remove_all(path_); }
  SnapshotFiles(const SnapshotFiles&) = delete;
  SnapshotFiles& operator=(const SnapshotFiles&) = delete;
  [[nodiscard]] std::string name() const { return path_.string(); }
  [[nodiscard]] std::string file(int server, int step) const {
    return (path_ / ("server" + std::to_string(server) + ".step" + std::to_string(step) + ".snapshot")).string();
  }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) names.insert(entry.path().filename().string());
    return names;
  }

 private:
  fs::path path_;
};

}  // namespace syncopate::test
