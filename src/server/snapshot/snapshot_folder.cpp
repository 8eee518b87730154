// The snapshots of a job: the newest step that all servers have, and the files that are kept.
#include "server/snapshot/snapshot_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kEnding = ".snapshot";

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
  remove_drafts();
}

/// Removes the drafts of a process of this server that was killed while it wrote.
void SnapshotFolder::remove_drafts() const {
  std::error_code ignored;
  std::vector<fs::path> drafts;
  for (fs::directory_iterator entry(folder_, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(fmt::format("server{}.step", server_)) && name.ends_with(".writing"))
      drafts.push_back(entry->path());
  }
  for (const fs::path& draft : drafts) fs::remove(draft, ignored);
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

void SnapshotFolder::write(const Snapshot& snapshot) {
  write_snapshot(file_of(server_, snapshot.step), snapshot);
  std::erase(kept_, snapshot.step);
  kept_.push_back(snapshot.step);
  if (kept_.size() > 2) kept_.erase(kept_.begin());
  std::error_code ignored;
  for (const Clock step : steps_of(server_))
    if (std::ranges::find(kept_, step) == kept_.end()) fs::remove(file_of(server_, step), ignored);
}

}  // namespace syncopate::server
