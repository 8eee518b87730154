// The workers of a server: the state of their streams.
#include "server/process/seats.hpp"

#include <algorithm>

namespace syncopate::server {

namespace {
constexpr std::chrono::milliseconds kTurn{50};
}  // namespace

std::uint64_t Seats::take(std::size_t worker, std::shared_ptr<rpc::Stream> stream) {
  const std::lock_guard lock(mutex_);
  return seat_on(seats_[worker], std::move(stream), 0);
}

std::optional<std::uint64_t> Seats::take_free(std::size_t worker, std::shared_ptr<rpc::Stream> stream,
                                              std::uint64_t process) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[worker];
  if (seat.stream && seat.process != process) return std::nullopt;
  return seat_on(seat, std::move(stream), process);
}

std::uint64_t Seats::seat_on(Seat& seat, std::shared_ptr<rpc::Stream> stream, std::uint64_t process) {
  if (seat.stream) {
    seat.stream->close("the worker has opened another stream");
    retired_.push_back(std::move(seat.stream));
  }
  seat.stream = std::move(stream);
  seat.process = process;
  seat.is_given_up = false;
  seat.first.reset();
  changed_.notify_all();
  return ++seat.life;
}

void Seats::expect(std::size_t worker, int change) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[worker];
  seat.expected += change;
  if (seat.expected == 0 && !seat.stream) seat.away_since = clock_->now();
}

bool Seats::admit(std::size_t worker, std::uint64_t life, std::size_t bytes, Message& message) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[worker];
  if (seat.life != life) return false;
  received_bytes_ += bytes;
  if (!is_open_) seat.first = std::move(message);
  return is_open_;
}

std::vector<std::pair<std::size_t, Message>> Seats::open() {
  const std::lock_guard lock(mutex_);
  is_open_ = true;
  std::vector<std::pair<std::size_t, Message>> kept;
  for (auto& [worker, seat] : seats_)
    if (auto first = std::exchange(seat.first, std::nullopt)) kept.emplace_back(worker, std::move(*first));
  return kept;
}

void Seats::send(Outgoing outgoing) {
  std::shared_ptr<rpc::Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    const auto seat = seats_.find(outgoing.worker);
    if (seat == seats_.end() || !seat->second.stream) return;
    stream = seat->second.stream;
    sent_bytes_ += outgoing.message.body.bytes.size();
  }
  stream->send(outgoing.priority, head_of(outgoing.message), std::move(outgoing.message.body));
}

void Seats::cut_off(std::size_t worker, std::string_view why) {
  const std::lock_guard lock(mutex_);
  if (const Seat& seat = seats_[worker]; seat.stream) seat.stream->close(why);
}

std::uint64_t Seats::life_of(std::size_t worker) const {
  const std::lock_guard lock(mutex_);
  const auto seat = seats_.find(worker);
  return seat == seats_.end() ? 0 : seat->second.life;
}

void Seats::turn_away(std::size_t worker, std::uint64_t life, const Message& refusal) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[worker];
  if (seat.life != life || !seat.stream) return;
  ++seat.life;
  seat.stream->send(0, head_of(refusal), refusal.body);
  seat.stream->close({});
  retired_.push_back(std::move(seat.stream));
  seat.away_since = clock_->now();
  changed_.notify_all();
}

void Seats::mark_finished(std::size_t worker) {
  const std::lock_guard lock(mutex_);
  seats_[worker].has_finished = true;
  changed_.notify_all();
}

void Seats::give_up(std::size_t worker) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[worker];
  seat.is_given_up = !seat.stream;
  changed_.notify_all();
}

bool Seats::lose(std::size_t worker, std::uint64_t life) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[worker];
  if (seat.life != life) return false;
  retired_.push_back(std::move(seat.stream));
  seat.away_since = clock_->now();
  changed_.notify_all();
  return !seat.has_finished;
}

void Seats::retire(std::shared_ptr<rpc::Stream> stream) {
  const std::lock_guard lock(mutex_);
  retired_.push_back(std::move(stream));
  changed_.notify_all();
}

std::vector<std::size_t> Seats::turn(std::size_t workers) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kTurn, [&] { return is_woken_ || !retired_.empty(); });
    is_woken_ = false;
  }
  return due(workers);
}

std::vector<std::size_t> Seats::due(std::size_t workers) {
  std::vector<std::shared_ptr<rpc::Stream>> retired;
  std::unique_lock lock(mutex_);
  retired.swap(retired_);
  std::vector<std::size_t> given_up = overdue(workers);
  lock.unlock();
  for (const auto& stream : retired) stream->end();
  return given_up;
}

std::vector<std::size_t> Seats::overdue(std::size_t workers) {
  std::vector<std::size_t> given_up;
  if (workers == 0) return given_up;
  const base::Time now = clock_->now();
  if (!began_) began_ = now;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const bool is_known = seats_.contains(worker);
    Seat& seat = seats_[worker];
    if (!is_known) seat.away_since = *began_;
    if (seat.stream || seat.expected > 0 || seat.is_given_up || seat.has_finished || now - seat.away_since < patience_)
      continue;
    seat.is_given_up = true;
    given_up.push_back(worker);
  }
  if (!given_up.empty()) changed_.notify_all();
  return given_up;
}

void Seats::wake() {
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  changed_.notify_all();
}

void Seats::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  changed_.notify_all();
}

bool Seats::wait_for_end(std::chrono::milliseconds time, const std::function<std::size_t()>& workers) {
  const base::Time deadline = clock_->now() + time;
  std::unique_lock lock(mutex_);
  const auto have_all_ended = [&] {
    const std::size_t count = workers();
    return count > 0 && seats_.size() >= count && std::ranges::all_of(seats_, [](const auto& entry) {
             return entry.second.has_finished || entry.second.is_given_up;
           });
  };
  changed_.wait_until(lock, deadline, [&] { return failure_ || have_all_ended(); });
  if (failure_) std::rethrow_exception(failure_);
  return have_all_ended();
}

void Seats::count(ServerStatus& status) const {
  const std::lock_guard lock(mutex_);
  status.received_bytes = received_bytes_;
  status.sent_bytes = sent_bytes_;
  for (const auto& [worker, seat] : seats_) {
    status.connected += seat.stream || seat.expected > 0 ? 1 : 0;
    status.finished += seat.has_finished ? 1 : 0;
  }
}

}  // namespace syncopate::server
