// The folder for what lives only while something runs: secrets of jobs, state of labs.
#pragma once

#include <string>

namespace syncopate::tools::launch {

/// /run/syncopate for root, $XDG_RUNTIME_DIR/syncopate for others, else syncopate-<uid> in $TMPDIR or /tmp: the first
/// that this user has alone. Made with mode 0700 if need be; throws SystemFailure, which names the variable to set, if
/// all are missing, belong to somebody else, or are writable by others.
[[nodiscard]] std::string runtime_folder();

/// Writes a file only this user can read, whole or not at all.
void write_private_file(const std::string& path, const std::string& text);

/// A job's secret: 32 random bytes in hexadecimal, in a file that goes with this object.
class SecretFile final {
 public:
  SecretFile();
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::string path_;
};

}  // namespace syncopate::tools::launch
