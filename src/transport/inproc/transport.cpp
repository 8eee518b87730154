// Transport between ranks of one process: offers, matches, and the return of borrowed memory.
#include "transport/inproc/transport.hpp"

#include <sched.h>

#include <algorithm>
#include <tuple>

#include "transport/matching.hpp"

namespace syncopate::transport::inproc {

InprocTransport::InprocTransport(std::shared_ptr<Hub> hub, std::shared_ptr<InprocControl> control, int rank)
    : hub_(std::move(hub)),
      control_(std::move(control)),
      rank_(rank),
      expected_(hub_->mailboxes.size()),
      link_failures_(rank, control_) {}

InprocTransport::~InprocTransport() {
  withdraw();
  control_->leave();
}

void InprocTransport::send(const Frame& frame) {
  ++in_flight_;
  traffic_.sent.add(frame.bytes.size());
  mailbox_of(static_cast<std::size_t>(frame.peer)).change([&](Mailbox& mailbox) SYNCOPATE_REQUIRES(mailbox.mutex) {
    mailbox.offers[static_cast<std::size_t>(rank_)].push_back({frame.label, frame.bytes, frame.token});
  });
}

void InprocTransport::receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) {
  expected_[static_cast<std::size_t>(peer)].push_back({{label, into.size()}, token});
}

void InprocTransport::release(std::uint64_t token) {
  const auto found = std::ranges::find(borrowed_, token, &Borrowed::token);
  give_back(*found);
  borrowed_.erase(found);
}

void InprocTransport::give_back(const Borrowed& borrowed) {
  mailbox_of(borrowed.sender).change([&](Mailbox& mailbox) SYNCOPATE_REQUIRES(mailbox.mutex) {
    mailbox.sent.push_back(borrowed.sender_token);
  });
}

std::span<const Event> InprocTransport::poll(base::Time deadline, Patience patience) {
  events_.clear();
  const base::SteadyClock clock;
  while (true) {
    const std::uint64_t seen = mine().signals.load(std::memory_order_acquire);
    if (!control_->failed()) collect();
    if (misfit_) std::ignore = link_failures_.report(misfit_->sender, misfit_->link_failure, clock.now());
    if (events_.empty() && hub_->is_incomplete) report_departed();
    if (control_->failed()) {
      withdraw();
      membership::raise(*control_->failure());
    }
    if (!events_.empty() || woken_.exchange(false) || clock.now() >= deadline) return events_;
    wait_for_signal(seen, deadline, patience);
  }
}

void InprocTransport::collect() {
  const base::Lock lock(mine().mutex);
  for (const std::uint64_t token : mine().sent) events_.push_back({token, false, {}});
  in_flight_ -= mine().sent.size();
  mine().sent.clear();
  for (std::size_t sender = 0; sender < expected_.size(); ++sender) match(sender, mine().offers[sender]);
}

void InprocTransport::match(std::size_t sender, std::deque<Offer>& offers) {
  auto& expected = expected_[sender];
  while (!expected.empty() && !offers.empty()) {
    const Offer& offer = offers.front();
    if (auto wrong = transport::match(expected.front().frame, {offer.label, offer.bytes.size()})) {
      misfit_ = {static_cast<int>(sender), std::move(*wrong)};
      return;
    }
    const std::uint64_t token = expected.front().token;
    events_.push_back({token, true, offer.bytes});
    borrowed_.push_back({token, sender, offer.token});
    traffic_.received.add(offer.bytes.size());
    expected.pop_front();
    offers.pop_front();
  }
}

/// Whether this rank waits for an offer of a rank that left, or for it to take one. Its earlier frames are visible.
bool InprocTransport::awaits(std::size_t peer) {
  {
    const base::Lock lock(mine().mutex);
    if (!expected_[peer].empty() && mine().offers[peer].empty()) return true;
  }
  const base::Lock lock(mailbox_of(peer).mutex);
  return !mailbox_of(peer).offers[static_cast<std::size_t>(rank_)].empty();
}

void InprocTransport::report_departed() {
  for (std::size_t peer = 0; peer < expected_.size(); ++peer)
    if (control_->has_left(static_cast<int>(peer)) && awaits(peer))
      std::ignore = link_failures_.report(
          static_cast<int>(peer), {membership::LinkFailure::Kind::lost, "it has left", {}}, base::SteadyClock().now());
}

void InprocTransport::wait_for_signal(std::uint64_t seen, base::Time deadline, Patience patience) {
  const auto changed = [&] { return mine().signals.load(std::memory_order_acquire) != seen; };
  const base::SteadyClock clock;
  const base::Time awake_until = std::min(deadline, clock.now() + patience.spin);
  while (!changed() && clock.now() < awake_until) sched_yield();  // threads may outnumber cores
  base::Lock lock(mine().mutex);
  while (!changed() && mine().changed.wait_until(lock, deadline)) continue;
}

// After a failure callers get their memory back at once, so no other rank may keep reading it. Every rank first gives
// back what it borrowed, then takes back what no rank took, then waits for the rest: no rank waits while it holds
// memory.
void InprocTransport::withdraw() noexcept {
  for (const Borrowed& borrowed : borrowed_) give_back(borrowed);
  borrowed_.clear();
  for (auto& expected : expected_) expected.clear();
  for (Mailbox& mailbox : hub_->mailboxes) {
    const base::Lock lock(mailbox.mutex);
    auto& offers = mailbox.offers[static_cast<std::size_t>(rank_)];
    in_flight_ -= offers.size();
    offers.clear();
  }
  base::Lock lock(mine().mutex);
  while (mine().sent.size() < in_flight_) mine().changed.wait(lock);
  in_flight_ = 0;
  mine().sent.clear();
}

void InprocTransport::wake() noexcept {
  woken_.store(true);
  mine().change([](Mailbox&) {});
}

std::pair<std::uint64_t, std::uint64_t> InprocTransport::traffic() const noexcept { return traffic_.bytes(); }

}  // namespace syncopate::transport::inproc
