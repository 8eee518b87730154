// Install: another project finds the installed package, links it, and its programs run.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

/// A folder that disappears with the test.
class Folder final {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "syncopate-install-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Outcome {
  int status = -1;
  std::string output;
};

/// Runs a shell command outside any job and keeps what it prints.
Outcome run(const std::string& command) {
  const std::string clean = "env -u SYNCOPATE_RANK -u SYNCOPATE_SIZE -u SYNCOPATE_RENDEZVOUS " + command + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(clean.c_str(), "r");
  std::array<char, 4096> piece{};
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe))
    outcome.output.append(piece.data(), size);
  outcome.status = pclose(pipe);
  return outcome;
}

void expect_success(const std::string& command) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.output;
}

void expect_output(const std::string& command, const std::string& part) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.output;
  EXPECT_NE(outcome.output.find(part), std::string::npos) << command << "\n" << outcome.output;
}

TEST(Install, AnotherProjectFindsLinksAndRunsThePackage) {
  const Folder folder;
  const std::string cmake = CMAKE_PROGRAM;
  expect_success(cmake + " --install " BUILD_FOLDER " --prefix " + (folder / "prefix"));
  fs::copy(EXAMPLE_FOLDER, folder / "project", fs::copy_options::recursive);
  expect_success(cmake + " -G Ninja -DCMAKE_BUILD_TYPE=Release -S " + (folder / "project") + " -B " +
                 (folder / "build") + " -DCMAKE_PREFIX_PATH=" + (folder / "prefix"));
  expect_success(cmake + " --build " + (folder / "build"));
  expect_output(folder / "build/example_allreduce", "rank 0 of 1: average 0\n");
  expect_output(folder / "build/example_synchronizer", "rank 3 of 4: y = 3.0000 x + -1.0000\n");
  expect_output(folder / "build/example_own_codec", "rank 3 of 4: 2 buckets, weights 1.5\n");
  expect_output(folder / "build/example_own_rule", "rank 3 of 4: 2 buckets, weights 1.5\n");
  expect_output(folder / "build/example_own_policy", "rank 3 of 4: 2 buckets, weights 1.5\n");
  if (HAS_SERVER) {
    expect_output(folder / "build/example_own_placement", "server 0 keeps 144 bytes\nserver 1 keeps 296 bytes\n");
    // Which updates a quorum leaves out depends on timing; the program fails beyond 0.2.
    expect_output(folder / "build/example_own_consistency", "server 1 keeps 220 bytes\n");
    expect_output(folder / "build/example_own_storage", "server 1 keeps 220 bytes\n");
    expect_output(folder / "build/example_own_call_sites", "server 1 keeps 220 bytes\n");
    expect_output((folder / "prefix/bin/syncopate") + " run -n 3 --servers 2 --own-servers -- " +
                      (folder / "build/example_own_placement"),
                  "worker 2 of 3: weights 1.0\n");
    expect_output(folder / "build/example_server", "worker 2 of 3: y = 3.00 x + -1.00\n");
    expect_output((folder / "prefix/bin/syncopate") + " run -n 3 --servers 2 -- " + (folder / "build/example_server"),
                  "worker 2 of 3: y = 3.00 x + -1.00\n");
  }
  for (const char* example : {"build/example_allreduce", "build/example_synchronizer"}) {
    const Outcome wrong = run("env SYNCOPATE_LOG=loud " + (folder / example));
    EXPECT_EQ(WEXITSTATUS(wrong.status), 1) << "an error is reported, without a core dump: " << wrong.output;
    EXPECT_NE(wrong.output.find("loud"), std::string::npos) << wrong.output;
  }
}

TEST(Install, TheInstalledCommandLineRuns) {
  const Folder folder;
  expect_success(std::string(CMAKE_PROGRAM) + " --install " BUILD_FOLDER " --prefix " + (folder / "prefix"));
  const Outcome version = run((folder / "prefix/bin/syncopate") + " --version");
  EXPECT_EQ(version.status, 0) << version.output;
  EXPECT_NE(version.output.find(PROJECT_VERSION), std::string::npos) << version.output;
  if (fs::exists(folder / "prefix/bin/syncopate-train"))
    expect_success((folder / "prefix/bin/syncopate") + " train --help");
}

}  // namespace
