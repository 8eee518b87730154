// The marks of a table of rows: steps and meetings of its workers.
#include "server/rows/row_marks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {
/// The end of the visit whose begin or end has this number; 0: of none.
std::uint64_t end_of(std::uint64_t meeting) { return meeting + meeting % 2; }
}  // namespace

void RowMarks::apply(std::size_t worker, const RowPush& push) {
  Worker& own = workers_[worker];
  ++own.applied;
  const auto* const mark = std::get_if<MarkRows>(&push);
  if (mark == nullptr) return;
  own.ended = std::max(own.ended, mark->steps);
  if (mark->meets) meet(own, *mark);
  find_common();
}

void RowMarks::meet(Worker& own, const MarkRows& mark) {
  own.met = std::max(own.met, mark.steps);
  if (mark.steps > 0) return;
  const auto number = static_cast<std::uint64_t>(mark.meeting);
  own.meetings = std::max(own.meetings, number);
  own.excused = own.meetings - number;
}

/// A job's processes do not come at the same time: the first one of a worker belongs to a visit that others have begun.
void RowMarks::join(std::size_t worker, Clock from, std::uint64_t process, std::uint64_t meeting) {
  Worker& own = workers_[worker];
  const bool replaces = own.process != 0 && own.process != process;
  const std::uint64_t meetings =
      std::max(meeting, replaces || !own.takes_part ? end_of(newest_meeting()) : own.meetings);
  own = {.process = process, .meetings = meetings, .excused = meetings, .ended = std::max(from, Clock{0})};
  find_common();
}

void RowMarks::leave(std::size_t worker) {
  workers_[worker].takes_part = false;
  find_common();
}

void RowMarks::come_back(std::size_t worker) {
  Worker& own = workers_[worker];
  if (own.takes_part) return;
  if (const std::uint64_t newest = newest_meeting(); own.meetings < newest) {
    own.excused += end_of(newest) - own.meetings;
    own.meetings = end_of(newest);
  }
  own.takes_part = true;
  find_common();
}

std::uint64_t RowMarks::newest_meeting() const noexcept {
  std::uint64_t newest = 0;
  for (const Worker& worker : workers_)
    if (worker.takes_part) newest = std::max(newest, worker.meetings);
  return newest;
}

void RowMarks::find_common() {
  common_.reset();
  for (const Worker& worker : workers_) {
    if (!worker.takes_part) continue;
    if (!common_) common_ = {worker.meetings, worker.ended};
    common_ = {std::min(common_->meetings, worker.meetings), std::min(common_->ended, worker.ended)};
  }
}

bool RowMarks::has_met(std::size_t worker) const noexcept {
  const Worker& own = workers_[worker];
  return !common_ || (common_->meetings >= own.meetings - own.excused && common_->ended >= own.met);
}

std::optional<Clock> RowMarks::ended() const noexcept { return common_ ? std::optional(common_->ended) : std::nullopt; }

/// The first number: whether it takes part, and twice the meetings that it is excused from.
void RowMarks::write_to(std::string& bytes) const {
  for (const Worker& worker : workers_)
    for (const std::uint64_t number :
         {(worker.takes_part ? 1 : 0) + 2 * worker.excused, worker.process, worker.applied, worker.meetings,
          static_cast<std::uint64_t>(worker.ended), static_cast<std::uint64_t>(worker.met)})
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void RowMarks::read_from(base::ConstBytes bytes) {
  std::size_t at = 0;
  const auto next = [&] {
    const auto number = base::get<std::uint64_t>(bytes, at);
    at += sizeof number;
    return number;
  };
  for (Worker& worker : workers_) {
    const std::uint64_t part = next();
    worker = {.takes_part = part % 2 != 0,
              .process = next(),
              .applied = next(),
              .meetings = next(),
              .excused = part / 2,
              .ended = static_cast<Clock>(next()),
              .met = static_cast<Clock>(next())};
    for (const Clock step : {worker.ended, worker.met})
      if (step < 0 || step > kMostClock) throw Corrupt(fmt::format("a mark of rows has the step {}", step));
    if (worker.excused > worker.meetings)
      throw Corrupt(fmt::format("a worker is excused from {} of {} meetings", worker.excused, worker.meetings));
  }
  find_common();
}

}  // namespace syncopate::server
