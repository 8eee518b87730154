// The folder for what lives only while something runs: secrets of jobs, state of labs.
#include "launch/runtime_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "launch/process/descriptor.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::launch {
namespace {

/// Makes it if need be; false where this user cannot have it.
bool usable(const std::string& folder) {
  struct stat about {};
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  // lstat: a link that somebody else put there must not lead us elsewhere.
  if (lstat(folder.c_str(), &about) != 0) return false;
  return S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & 022) == 0 &&
         access(folder.c_str(), W_OK) == 0;
}

/// Empty if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string random_hex() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) process::fail("no random bytes");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

std::string runtime_folder() {
  const bool is_root = geteuid() == 0;
  std::vector<std::string> choices;
  if (is_root) choices.emplace_back("/run/syncopate");
  if (const std::string given = variable("XDG_RUNTIME_DIR"); !is_root && !given.empty())
    choices.push_back(given + "/syncopate");
  const std::string temporary = variable("TMPDIR");
  choices.push_back(fmt::format("{}/syncopate-{}", temporary.empty() ? "/tmp" : temporary, geteuid()));
  for (const std::string& choice : choices)
    if (usable(choice)) return choice;
  throw SystemFailure(
      fmt::format("no folder of this user's own for run-time files; tried: {}; set {} to a folder that only this user "
                  "can write to",
                  fmt::join(choices, ", "), is_root ? "TMPDIR" : "XDG_RUNTIME_DIR or TMPDIR"));
}

void write_private_file(const std::string& path, const std::string& text) {
  const std::string draft = fmt::format("{}.{}", path, getpid());
  const process::Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open() || !process::write_all(file.get(), text) || rename(draft.c_str(), path.c_str()) != 0)
    process::fail("cannot write " + path);
}

SecretFile::SecretFile()
    : text_(random_hex()),
      path_(fmt::format("{}/secret-{}-{}", runtime_folder(), getpid(), random_hex().substr(0, 8))) {
  write_private_file(path_, text_);
}

SecretFile::~SecretFile() { unlink(path_.c_str()); }

}  // namespace syncopate::tools::launch
