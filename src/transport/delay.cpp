// Delay: frames wait in a queue, and a poll ends no later than the first of them is due.
#include "transport/delay.hpp"

#include <algorithm>

namespace syncopate::transport {

namespace {
base::Time now() { return std::chrono::steady_clock::now(); }
}  // namespace

DelayTransport::DelayTransport(std::unique_ptr<Transport> inner, base::Duration delay)
    : inner_(std::move(inner)), lender_(inner_->lending()), delay_(delay) {}

void DelayTransport::send(const Frame& frame) { held_.push_back({now() + delay_, frame, false}); }

void DelayTransport::lend(const Frame& frame) { held_.push_back({now() + delay_, frame, true}); }

void DelayTransport::reply(std::uint64_t arrival, const Frame& frame) {
  release(arrival);
  send(frame);
}

void DelayTransport::receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) {
  inner_->receive(peer, label, into, token);
}

void DelayTransport::release(std::uint64_t token) { inner_->release(token); }

void DelayTransport::send_due(base::Time now) {
  for (; !held_.empty() && held_.front().due <= now; held_.pop_front()) {
    const Held& next = held_.front();
    if (next.is_loan)
      lender_->lend(next.frame);
    else
      inner_->send(next.frame);
  }
}

std::span<const Event> DelayTransport::poll(base::Time deadline, Patience patience) {
  while (true) {
    send_due(now());
    const base::Time due = held_.empty() ? base::kNever : held_.front().due;
    const std::span<const Event> events = inner_->poll(std::min(deadline, due), patience);
    if (!events.empty() || woken_.exchange(false) || deadline <= due) return events;
  }
}

void DelayTransport::wake() noexcept {
  woken_.store(true);
  inner_->wake();
}

std::pair<std::uint64_t, std::uint64_t> DelayTransport::traffic() const noexcept { return inner_->traffic(); }

std::unique_ptr<Transport> delayed(std::unique_ptr<Transport> inner, base::Duration delay) {
  if (delay.count() == 0) return inner;
  return std::make_unique<DelayTransport>(std::move(inner), delay);
}

}  // namespace syncopate::transport
