// Writes a server's snapshots: images are gathered under a short lock, and written outside of all locks.
#include "server/snapshot/snapshot_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/snapshot/round_step.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

constexpr std::size_t kMostGathered = 2;

}  // namespace

SnapshotWriter::SnapshotWriter(Write write, std::size_t server, syncopate::Log log)
    : write_(std::move(write)), server_(server), log_(std::move(log)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

SnapshotWriter::~SnapshotWriter() {
  {
    const base::Lock lock(mutex_);
    thread_.request_stop();
  }
  due_.notify_all();
}

void SnapshotWriter::add(ServerTables::Image image) {
  const base::Lock lock(mutex_);
  auto [at, is_new] = gathered_.try_emplace(image.step);
  Gathered& gathered = at->second;
  if (is_new)
    gathered = {.snapshot = {.server = server_, .step = image.step, .setup = image.setup, .images = {}},
                .pieces = std::vector<std::vector<Payload>>(image.pieces),
                .left = image.pieces};
  gathered.pieces[image.piece] = std::move(image.parts);
  if (--gathered.left == 0) {
    if (!waiting_ || is_rounder(image.step, waiting_->step)) {
      waiting_ = std::move(gathered.snapshot);
      for (auto& parts : gathered.pieces) std::ranges::move(parts, std::back_inserter(waiting_->images));
    }
    gathered_.erase(gathered_.begin(), std::next(at));
    due_.notify_all();
  } else if (gathered_.size() > kMostGathered) {
    gathered_.erase(std::ranges::max_element(gathered_, is_rounder, &std::pair<const Clock, Gathered>::first));
  }
}

void SnapshotWriter::run(const std::stop_token& stop) {
  for (;;) {
    std::optional<Snapshot> snapshot;
    {
      base::Lock lock(mutex_);
      while (!waiting_ && !stop.stop_requested()) due_.wait(lock);
      snapshot = std::exchange(waiting_, std::nullopt);
    }
    if (!snapshot) return;  // stopped, and nothing waits
    write(*snapshot);
  }
}

void SnapshotWriter::write(const Snapshot& snapshot) {
  try {
    write_(snapshot);
    has_failed_ = false;
  } catch (const Error& error) {
    if (!std::exchange(has_failed_, true))
      log_.write(LogLevel::error, fmt::format("server {}: no snapshot of step {}: {}; the job continues, and the older "
                                              "snapshots stay",
                                              server_, snapshot.step, error.what()));
  }
}

}  // namespace syncopate::server
