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
constexpr std::string_view kEnding = ".snapshot", kDraft = ".writing", kAbandoned = ".abandoned";
constexpr std::size_t kMostCommon = 2;  // so that one may be damaged

std::optional<Clock> step_in(std::string_view name, std::string_view beginning) {
  if (!name.starts_with(beginning) || !name.ends_with(kEnding) || name.size() < beginning.size() + kEnding.size())
    return std::nullopt;
  const std::string_view digits = name.substr(beginning.size(), name.size() - beginning.size() - kEnding.size());
  Clock step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc{} || end != digits.data() + digits.size() || step <= 0) return std::nullopt;
  return step;
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
    if (name.starts_with(fmt::format("server{}.step", server_)) && name.ends_with(ending))
      files.push_back(entry->path());
  }
  for (const fs::path& file : files) fs::remove(file, ignored);
}

std::string SnapshotFolder::file_of(std::size_t server, Clock step) const {
  return fmt::format("{}/server{}.step{}{}", folder_, server, step, kEnding);
}

std::vector<Clock> SnapshotFolder::steps_of(std::size_t server) const {
  std::vector<Clock> steps;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error))
    if (const auto step = step_in(entry->path().filename().string(), fmt::format("server{}.step", server)))
      steps.push_back(*step);
  if (error) throw SystemFailure(fmt::format("cannot read the folder {} of --snapshots: {}", folder_, error.message()));
  std::ranges::sort(steps, std::greater{});
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
  for (std::size_t server = 0; server < own.setup.servers; ++server) {
    if (server == server_) continue;
    const auto other = whole(server, own.step);
    if (!other || !difference(own.setup, other->setup).empty()) return false;
  }
  return true;
}

std::optional<Snapshot> SnapshotFolder::newest_in_common() const {
  const std::vector<Clock> steps = steps_of(server_);
  for (const Clock step : steps)
    if (auto own = whole(server_, step); own && others_have(*own)) return own;
  if (!steps.empty())
    log_.write(LogLevel::warning,
               fmt::format("server {}: {} has no step of which every server has a whole snapshot; the job restarts",
                           server_, folder_));
  return std::nullopt;
}

/// Renames, because that is fast: workers wait for it.
void SnapshotFolder::begin(Clock step) const {
  try {
    for (const Clock other : steps_of(server_)) {
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
  remove_old(snapshot.setup.servers);
  remove(kAbandoned);
}

/// Files appear complete, so a name suffices.
bool SnapshotFolder::is_common(Clock step, std::size_t servers) const {
  for (std::size_t server = 0; server < servers; ++server) {
    std::error_code error;
    if (!fs::is_regular_file(file_of(server, step), error)) return false;
  }
  return true;
}

void SnapshotFolder::remove_old(std::size_t servers) const {
  std::vector<Clock> common, ahead, old;
  for (const Clock step : steps_of(server_)) {
    if (common.size() < kMostCommon && is_common(step, servers))
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
