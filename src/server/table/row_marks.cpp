// The marks of a table of rows: steps and meetings of its workers.
#include "server/table/row_marks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/error.hpp"

namespace syncopate::server {

void RowMarks::apply(std::size_t worker, const Message& push) {
  Worker& own = workers_[worker];
  ++own.applied;
  if (push.kind != MessageKind::mark_rows) return;
  own.ended = std::max(own.ended, push.last);
  if (push.first != 0 && push.last > 0) own.met = std::max(own.met, push.last);
  if (push.first != 0 && push.last == 0) ++own.meetings;
  find_common();
}

void RowMarks::join(std::size_t worker, Clock from, std::uint64_t process) {
  come_back(worker);
  workers_[worker] = {.process = process, .meetings = workers_[worker].meetings, .ended = std::max(from, Clock{0})};
  find_common();
}

void RowMarks::leave(std::size_t worker) {
  workers_[worker].takes_part = false;
  find_common();
}

void RowMarks::come_back(std::size_t worker) {
  if (workers_[worker].takes_part) return;
  workers_[worker].meetings = newest_meeting();
  workers_[worker].takes_part = true;
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
  return !common_ || (common_->meetings >= own.meetings && common_->ended >= own.met);
}

std::optional<Clock> RowMarks::ended() const noexcept { return common_ ? std::optional(common_->ended) : std::nullopt; }

void RowMarks::write_to(std::string& bytes) const {
  for (const Worker& worker : workers_)
    for (const std::uint64_t number :
         {std::uint64_t{worker.takes_part}, worker.process, worker.applied, worker.meetings,
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
    worker = {.takes_part = next() != 0,
              .process = next(),
              .applied = next(),
              .meetings = next(),
              .ended = static_cast<Clock>(next()),
              .met = static_cast<Clock>(next())};
    for (const Clock step : {worker.ended, worker.met})
      if (step < 0 || step > kMostClock) throw Corrupt(fmt::format("a mark of rows has the step {}", step));
  }
  find_common();
}

}  // namespace syncopate::server
