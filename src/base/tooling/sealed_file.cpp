// Sealed files: writes a draft and renames it; reads a file only if its hash is right.
#include "syncopate/tooling/sealed_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/require.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using base::require;

template <class... Args>
void require_intact(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) throw Corrupt(fmt::format(message, std::forward<Args>(args)...));
}

constexpr std::size_t kFixed = 8 + 8 + 8;  ///< magic, header length, hash

std::uint64_t word_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// The hash of the parts written so far.
class Hash final {
 public:
  Hash() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
  ~Hash() { XXH3_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  void add(std::string_view bytes) { XXH3_64bits_update(state_, bytes.data(), bytes.size()); }
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* state_;
};

[[noreturn]] void fail(const char* what, const std::string& file) {
  throw SystemFailure(fmt::format("cannot {} {}: {}", what, file, std::strerror(errno)));
}

constexpr std::string_view kDraftEnding = ".writing";
constexpr std::size_t kDraftDigits = 8;

/// FILE.<8 hexadecimal digits>.writing
bool is_draft_of(const std::string& file, std::string_view name) {
  if (name.size() != file.size() + 1 + kDraftDigits + kDraftEnding.size()) return false;
  const std::string_view digits = name.substr(file.size() + 1, kDraftDigits);
  return name.starts_with(file) && name[file.size()] == '.' && name.ends_with(kDraftEnding) &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string folder_of(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// Removes a draft that no process is writing. A writer holds a lock on its draft until it renames or removes it.
void remove_if_dead(const std::filesystem::path& draft) {
  const int descriptor = ::open(draft.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    ::unlink(draft.c_str());
  ::close(descriptor);
}

/// Removes the drafts that killed processes have left.
void remove_dead_drafts(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  std::error_code ignored;
  std::vector<std::filesystem::path> drafts;
  for (std::filesystem::directory_iterator entry(folder_of(file), ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (is_draft_of(name, entry->path().filename().string())) drafts.push_back(entry->path());
  for (const std::filesystem::path& draft : drafts) remove_if_dead(draft);
}

/// A draft next to the file, under a unique name. The destructor removes it unless `replace` has succeeded.
class Draft final {
 public:
  explicit Draft(const std::string& file) : file_(file) {
    while (!make()) ::close(descriptor_);
  }
  ~Draft() {
    if (!replaced_) ::unlink(name_.c_str());
    ::close(descriptor_);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write", name_);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void replace() {
    if (::fsync(descriptor_) != 0) fail("flush", name_);
    if (::rename(name_.c_str(), file_.c_str()) != 0) fail("replace", file_);
    replaced_ = true;
  }

 private:
  /// False if another process removed the draft between its creation and its lock, because it looked dead.
  bool make() {
    name_ = fmt::format("{}.{:08x}{}", file_, std::random_device{}(), kDraftEnding);
    descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail("write", name_);
    static_cast<void>(::flock(descriptor_, LOCK_EX));  // on a file system without locks dead drafts remain
    struct stat status {};
    return ::fstat(descriptor_, &status) != 0 || status.st_nlink > 0;
  }

  const std::string file_;
  std::string name_;
  int descriptor_ = -1;
  bool replaced_ = false;
};

/// A regular file opened for reading. Refuses any other kind; opening does not block, as it would on a FIFO.
class Opened final {
 public:
  explicit Opened(const std::string& file)
      : file_(file), descriptor_(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) fail("open", file);
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::size_t>(status.st_size);
      return;
    }
    ::close(descriptor_);
    throw SystemFailure(fmt::format("cannot read {}: it is {}; allowed: a regular file", file,
                                    S_ISDIR(status.st_mode) ? "a folder" : "not a regular file"));
  }
  ~Opened() { ::close(descriptor_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void read(std::span<std::uint8_t> into) const {
    while (!into.empty()) {
      const ssize_t got = ::read(descriptor_, into.data(), into.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", file_);
      if (got == 0) throw SystemFailure(fmt::format("cannot read {}: it became shorter while it was read", file_));
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  const std::string file_;
  const int descriptor_;
  std::size_t size_ = 0;
};

/// Flushes a folder's names to the disk.
void flush_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", folder);
  const bool flushed = ::fsync(descriptor) == 0;
  ::close(descriptor);
  if (!flushed) fail("flush", folder);
}

std::string_view view(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view view(const std::uint64_t& word) { return {reinterpret_cast<const char*>(&word), sizeof word}; }

}  // namespace

void require_writable(const std::string& file) {
  std::error_code unknown;
  const auto kind = std::filesystem::status(file, unknown).type();
  require(kind != std::filesystem::file_type::directory, "--checkpoint {} is a folder: give the name of a file", file);
  require(kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found,
          "--checkpoint {} is not a regular file: give another name", file);
  const Draft probe(file);
}

void write_sealed(const std::string& file, std::string_view magic, const std::string& header,
                  std::span<const std::span<const std::byte>> payload) {
  remove_dead_drafts(file);
  Draft draft(file);
  Hash hash;
  const auto write = [&](std::string_view bytes) {
    hash.add(bytes);
    draft.write(bytes);
  };
  const std::uint64_t header_bytes = header.size();
  write(magic);
  write(view(header_bytes));
  write(header);
  for (const std::span<const std::byte> part : payload) write(view(part));
  const std::uint64_t sum = hash.value();
  draft.write(view(sum));
  draft.replace();
  flush_folder(folder_of(file));
}

Sealed parse_sealed(std::vector<std::uint8_t> all, const std::string& file, const SealedKind& kind) {
  Sealed sealed{.bytes = std::move(all)};
  const std::vector<std::uint8_t>& bytes = sealed.bytes;
  require_intact(bytes.size() >= kFixed && std::memcmp(bytes.data(), kind.magic.data(), 8) == 0,
                 "{} is not a {} of Syncopate", file, kind.what);
  const std::size_t end = bytes.size() - 8;
  require_intact(XXH3_64bits(bytes.data(), end) == word_at(bytes, end),
                 "{} is damaged: its bytes do not match their hash", file);
  const std::uint64_t header_bytes = word_at(bytes, 8);
  require_intact(header_bytes <= end - 16, "{} is damaged: its header is longer than the file", file);
  sealed.header = {reinterpret_cast<const char*>(bytes.data()) + 16, header_bytes};
  sealed.payload = std::span<const std::uint8_t>(bytes).subspan(16 + header_bytes, end - 16 - header_bytes);
  return sealed;
}

Sealed read_sealed(const std::string& file, std::string_view magic, std::string_view what) {
  const Opened opened(file);
  std::vector<std::uint8_t> bytes(opened.size());
  opened.read(bytes);
  return parse_sealed(std::move(bytes), file, {magic, what});
}

}  // namespace syncopate
