// The snapshots of a job: the newest step that all servers have, and the files that are kept.
#include "server/snapshot/snapshot_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "server/snapshot/round_step.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kServer = "server", kStep = ".step";
constexpr std::string_view kEnding = ".snapshot", kDraft = ".writing", kAbandoned = ".abandoned";
constexpr std::size_t kMostCommon = 2;  // so that one may be damaged

/// The number that `text` begins with, which is removed from it with the ending behind it.
template <class Number>
std::optional<Number> number_before(std::string_view& text, std::string_view ending) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{} || !text.starts_with(ending)) return std::nullopt;
  text.remove_prefix(ending.size());
  return number;
}

/// The server and the step of a snapshot's name.
std::optional<std::pair<std::size_t, Clock>> place_in(std::string_view name) {
  if (!name.starts_with(kServer)) return std::nullopt;
  name.remove_prefix(kServer.size());
  const auto server = number_before<std::size_t>(name, kStep);
  if (!server) return std::nullopt;
  const auto step = number_before<Clock>(name, kEnding);
  if (!step || !name.empty() || *step <= 0) return std::nullopt;
  return std::pair(*server, *step);
}

/// The servers of a job that have something to write: blocks, or tables of rows.
std::vector<std::size_t> writers_of(const Setup& setup) {
  std::vector<bool> writes(setup.servers, !setup.rows.empty());
  for (const Block& block : blocks_of(setup)) writes[block.server] = true;
  std::vector<std::size_t> writers;
  for (std::size_t server = 0; server < setup.servers; ++server)
    if (writes[server]) writers.push_back(server);
  return writers;
}

}  // namespace

SnapshotFolder::SnapshotFolder(std::string folder, std::size_t server, syncopate::Log log)
    : folder_(std::move(folder)), server_(server), log_(std::move(log)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || !fs::is_directory(folder_, error))
    throw SystemFailure(fmt::format("cannot make the folder {} of --snapshots: {}", folder_, error.message()));
  remove(kDraft);  // of a process of this server that was killed while it wrote
}

/// Removes this server's files with this ending.
void SnapshotFolder::remove(std::string_view ending) const {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder_, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(fmt::format("{}{}{}", kServer, server_, kStep)) && name.ends_with(ending))
      files.push_back(entry->path());
  }
  for (const fs::path& file : files) fs::remove(file, ignored);
}

std::string SnapshotFolder::file_of(std::size_t server, Clock step) const {
  return fmt::format("{}/{}{}{}{}{}", folder_, kServer, server, kStep, step, kEnding);
}

std::vector<std::pair<std::size_t, Clock>> SnapshotFolder::files() const {
  std::vector<std::pair<std::size_t, Clock>> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error))
    if (const auto place = place_in(entry->path().filename().string())) files.push_back(*place);
  if (error) throw SystemFailure(fmt::format("cannot read the folder {} of --snapshots: {}", folder_, error.message()));
  std::ranges::sort(files, std::greater{}, [](const auto& file) { return file.second; });
  return files;
}

std::vector<Clock> SnapshotFolder::own_steps() const {
  std::vector<Clock> steps;
  for (const auto& [server, step] : files())
    if (server == server_) steps.push_back(step);
  return steps;
}

std::optional<Snapshot> SnapshotFolder::whole(std::size_t server, Clock step) const {
  const std::string file = file_of(server, step);
  std::error_code unknown;
  if (fs::symlink_status(file, unknown).type() == fs::file_type::not_found) return std::nullopt;
  try {
    Snapshot snapshot = read_snapshot(file);
    if (snapshot.server == server && snapshot.step == step) return snapshot;
    throw Corrupt(fmt::format("{} is a snapshot of server {} at step {}", file, snapshot.server, snapshot.step));
  } catch (const Error& error) {
    log_.write(LogLevel::warning, fmt::format("server {}: ignored a snapshot: {}", server_, error.what()));
    return std::nullopt;
  }
}

bool SnapshotFolder::others_have(const Snapshot& own) const {
  for (const std::size_t server : writers_of(own.setup)) {
    if (server == own.server) continue;
    const auto other = whole(server, own.step);
    if (!other || !difference(own.setup, other->setup).empty()) return false;
  }
  return true;
}

/// The state of a server that writes nothing is empty, and the others' files have the job and its steps.
std::optional<Snapshot> SnapshotFolder::empty_in_common() const {
  for (const auto& [server, step] : files()) {
    auto of = whole(server, step);
    if (!of || server_ >= of->setup.servers) continue;
    if (std::ranges::binary_search(writers_of(of->setup), server_)) return std::nullopt;
    if (!others_have(*of)) continue;
    of->server = server_;
    of->images.clear();
    return of;
  }
  return std::nullopt;
}

std::optional<Snapshot> SnapshotFolder::newest_in_common() const {
  const std::vector<Clock> steps = own_steps();
  if (steps.empty()) return empty_in_common();
  for (const Clock step : steps)
    if (auto own = whole(server_, step); own && others_have(*own)) return own;
  log_.write(LogLevel::warning,
             fmt::format("server {}: {} has no step of which every server has a whole snapshot; the job restarts",
                         server_, folder_));
  return std::nullopt;
}

/// Renames, because that is fast: workers wait for it.
void SnapshotFolder::begin(Clock step) const {
  try {
    for (const Clock other : own_steps()) {
      if (other <= step) break;
      const std::string file = file_of(server_, other);
      fs::rename(file, file + std::string(kAbandoned));
    }
  } catch (const std::exception& error) {
    log_.write(LogLevel::error, fmt::format("server {}: cannot set aside the snapshots after step {}, which belong to "
                                            "an abandoned run: {}; remove them",
                                            server_, step, error.what()));
  }
}

void SnapshotFolder::write(const Snapshot& snapshot) const {
  write_snapshot(file_of(server_, snapshot.step), snapshot);
  remove_old(writers_of(snapshot.setup));
  remove(kAbandoned);
}

/// Files appear complete, so a name suffices.
bool SnapshotFolder::is_common(Clock step, std::span<const std::size_t> writers) const {
  return std::ranges::all_of(writers, [&](std::size_t server) {
    std::error_code error;
    return fs::is_regular_file(file_of(server, step), error);
  });
}

void SnapshotFolder::remove_old(std::span<const std::size_t> writers) const {
  std::vector<Clock> common, ahead, old;
  for (const Clock step : own_steps()) {
    if (common.size() < kMostCommon && is_common(step, writers))
      common.push_back(step);
    else
      (common.empty() ? ahead : old).push_back(step);
  }
  std::ranges::sort(ahead, is_rounder);
  for (std::size_t i = kMostAhead; i < ahead.size(); ++i) old.push_back(ahead[i]);
  std::error_code ignored;
  for (const Clock step : old) fs::remove(file_of(server_, step), ignored);
}

}  // namespace syncopate::server
