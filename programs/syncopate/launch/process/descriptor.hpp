// Descriptor: an open file that closes itself, and the few things one does with it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "syncopate/tooling/standard_streams.hpp"

namespace syncopate::tools::launch::process {

class Descriptor final {
 public:
  Descriptor() = default;
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      file_ = std::exchange(other.file_, -1);
    }
    return *this;
  }
  [[nodiscard]] int get() const noexcept { return file_; }
  [[nodiscard]] bool open() const noexcept { return file_ >= 0; }
  void close() noexcept;

 private:
  int file_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

/// Raises this process's limit of descriptors to `count`, or as far as the system allows. Returns the limit before,
/// which programs that it starts should have: select() fails with more than 1024.
rlim_t raise_descriptor_limit(rlim_t count) noexcept;
[[nodiscard]] Pipe make_pipe();  ///< closed on exec; throws SystemFailure
using syncopate::write_all;
/// The same to a program that may have ended: that must not end this one by SIGPIPE.
void write_to_program(int file, std::string_view bytes) noexcept;
[[nodiscard]] std::string read_file(const std::string& path);  ///< empty where it cannot be read
void set_nonblocking(int file);
/// "what: why", with errno in words.
[[noreturn]] void fail(const std::string& what);

}  // namespace syncopate::tools::launch::process
