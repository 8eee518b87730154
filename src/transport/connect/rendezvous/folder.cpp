// Rendezvous in a folder: one file per rank, complete from the moment it has its name.
#include "transport/connect/rendezvous/folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "base/require.hpp"
#include "syncopate/error.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::connect::rendezvous {

namespace {
constexpr std::string_view kBefore = "syncopate rendezvous 1\nsize ";
}

std::string encode(const FolderText& mine) { return fmt::format("{}{}\n{}", kBefore, mine.size, mine.text); }

FolderText decode_folder_text(std::string_view bytes, const std::string& file) {
  const auto check = [&](bool fine, const char* what) {
    if (!fine) throw Corrupt(fmt::format("'{}' {}", file, what));
  };
  FolderText found;
  check(bytes.starts_with(kBefore), "is not a rendezvous file");
  bytes.remove_prefix(kBefore.size());
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), found.size);
  check(error == std::errc{} && end != bytes.data() + bytes.size() && *end == '\n', "is not a rendezvous file");
  found.text = bytes.substr(static_cast<std::size_t>(end - bytes.data()) + 1);
  check(found.text.size() <= kMaxText, "is too long");
  return found;
}

namespace {

namespace fs = std::filesystem;
constexpr auto kShortestWait = std::chrono::milliseconds(2), kLongestWait = std::chrono::milliseconds(50);

fs::path file_of(const fs::path& folder, int rank) { return folder / fmt::format("rank-{}", rank); }

/// Writes under another name first and links it to the rank's: readers see the whole file or none, and of two processes
/// that claim one rank exactly one succeeds.
void publish(const fs::path& folder, const Member& me, const std::string& text) {
  std::random_device random;
  const fs::path draft = folder / fmt::format(".rank-{}.{:08x}{:08x}", me.rank, random(), random());
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file << encode(FolderText{me.size, text});
    file.flush();
    std::error_code failed;
    fs::permissions(draft, fs::perms::owner_read | fs::perms::owner_write, failed);
    if (!file || failed)
      throw SystemFailure(fmt::format("cannot write '{}': {}", draft.string(), socket::reason_of(errno)));
  }
  const fs::path final_name = file_of(folder, me.rank);
  const bool linked = ::link(draft.c_str(), final_name.c_str()) == 0;
  const int error = errno;
  ::unlink(draft.c_str());
  base::require(linked || error != EEXIST,
                "'{}' exists already: the folder is left from an earlier job, or another process is rank {} too; "
                "allowed: an empty or new folder per job",
                final_name.string(), me.rank);
  if (!linked)
    throw SystemFailure(fmt::format("cannot create '{}': {}", final_name.string(), socket::reason_of(error)));
}

/// A user who may write there can hide ranks from each other, and without a secret send texts in their name.
void require_own(const fs::path& folder) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0)
    throw SystemFailure(fmt::format("cannot inspect the folder '{}': {}", folder.string(), socket::reason_of(errno)));
  base::require(found.st_uid == ::geteuid(),
                "the rendezvous folder '{}' belongs to user {}, this rank runs as user {}; allowed: your own "
                "folder, the same user on every rank",
                folder.string(), found.st_uid, ::geteuid());
  base::require((found.st_mode & (S_IWGRP | S_IWOTH)) == 0,
                "other users may write to the rendezvous folder '{}'; make it yours alone: chmod go-w {}, or name a "
                "folder that does not exist yet",
                folder.string(), folder.string());
}

/// Creates the folder with its parents, unless it exists.
void make(const fs::path& folder) {
  std::error_code failed;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), failed);
  if (!failed && ::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    failed = std::error_code(errno, std::generic_category());
  if (failed) throw SystemFailure(fmt::format("cannot create the folder '{}': {}", folder.string(), failed.message()));
}

std::optional<std::string> read_text(const fs::path& folder, const Member& me, int rank) {
  std::ifstream file(file_of(folder, rank), std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes(kMostFolderBytes + 1, '\0');
  bytes.resize(static_cast<std::size_t>(file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())).gcount()));
  FolderText found = decode_folder_text(bytes, file_of(folder, rank).string());
  base::require(found.size == me.size, "rank {} has a job of {} ranks, rank {} one of {}", rank, found.size, me.rank,
                me.size);
  return std::move(found.text);
}

class InFolder final : public Rendezvous {
 public:
  explicit InFolder(std::string folder) : folder_(std::move(folder)) {}

  std::vector<std::string> exchange(const Member& me, std::string mine, base::Time deadline) override {
    make(folder_);
    require_own(folder_);
    publish(folder_, me, mine);
    try {
      return gather(me, deadline);
    } catch (...) {
      std::error_code failed;
      fs::remove(file_of(folder_, me.rank), failed);  // so that the job can be restarted with this folder
      throw;
    }
  }

 private:
  std::vector<std::string> gather(const Member& me, base::Time deadline) const {
    std::vector<std::string> all(static_cast<std::size_t>(me.size));
    std::vector<bool> present(all.size());
    std::size_t count = 0;
    for (auto pause = kShortestWait;; pause = std::min(pause * 2, kLongestWait)) {
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (present[rank]) continue;
        auto text = read_text(folder_, me, static_cast<int>(rank));
        if (!text) continue;
        all[rank] = std::move(*text);
        present[rank] = true;
        ++count;
      }
      if (count == all.size()) return all;
      if (std::chrono::steady_clock::now() >= deadline)
        throw Timeout(
            fmt::format("{} did not come to the rendezvous in '{}'", missing_ranks(present), folder_.string()),
            {.rank = me.rank});
      std::this_thread::sleep_for(pause);
    }
  }

  fs::path folder_;
};

}  // namespace

std::unique_ptr<Rendezvous> in_folder(std::string folder) { return std::make_unique<InFolder>(std::move(folder)); }

}  // namespace syncopate::transport::connect::rendezvous
