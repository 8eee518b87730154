// Transport for ranks of which some share this host: memory with those, sockets with the others, one wait for both.
#include "transport/shm/transport.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "transport/shm/fence.hpp"

namespace syncopate::transport::shm {

namespace {
base::Time now() { return std::chrono::steady_clock::now(); }

// When ranks take turns on a core, each reduces and copies what its rings hold before it yields: about 0.3 ms.
constexpr base::Duration kTurnsOfOthers = std::chrono::milliseconds(2);
// Limit of waiting for neighbours that still touch this rank's vectors after a failure.
constexpr base::Duration kWithdrawal = std::chrono::milliseconds(100);
}  // namespace

/// One poll's time awake, and its work between two looks.
class ShmTransport::Wait final {
 public:
  Wait(Patience patience, bool crowded, Backoff& backoff) : patience_(patience), crowded_(crowded), backoff_(backoff) {}

  /// Looks are cheaper than clock reads: with its own core this rank looks several times per read.
  [[nodiscard]] bool look_at_once() noexcept {
    if (crowded_ || patience_.spin.count() == 0 || ++quick_ % kLooksPerClock == 0) return false;
    pause();
    return true;
  }
  /// Called between two looks; false: sleep now.
  [[nodiscard]] bool stay_awake(base::Time at) {
    if (looks_++ == 0) begun_ = at;
    if (at >= begun_ + patience_.spin) return false;
    // With a core for every rank no rank waits for this core, and data arrives soon. Else the awaited rank may need
    // this core.
    if (!crowded_ && at < begun_ + kAlone) {
      pause();
      return true;
    }
    if (!backoff_.may_stay_awake(at)) return false;
    backoff_.yield(at);
    return true;
  }
  [[nodiscard]] bool time_to_check_failures() const noexcept { return looks_ % kLooksPerCheck == kLooksPerCheck - 1; }

 private:
  static constexpr auto kAlone = std::chrono::microseconds(20);
  static constexpr unsigned kLooksPerClock = 8, kLooksPerCheck = 64;

  const Patience patience_;
  const bool crowded_;
  Backoff& backoff_;
  unsigned quick_ = 0, looks_ = 0;
  base::Time begun_{};
};

ShmTransport::ShmTransport(ShmOptions options, std::unique_ptr<tcp::TcpTransport> far,
                           std::shared_ptr<membership::ControlProtocol> control,
                           std::shared_ptr<membership::Mailbox> mailbox)
    : options_(std::move(options)),
      far_(std::move(far)),
      control_(std::move(control)),
      mailbox_(std::move(mailbox)),
      link_failures_(options_.rank, control_),
      backoff_(options_.crowded ? kTurnsOfOthers : Backoff::kLongYield),
      links_(options_.near.size()) {
  options_.heap->close_after(static_cast<std::size_t>(std::ranges::count(options_.near, true)));
}

bool ShmTransport::is_near(int rank) const noexcept {
  const auto index = static_cast<std::size_t>(rank);
  return rank >= 0 && index < links_.size() && options_.near[index];
}

Link* ShmTransport::link_to(int rank) {
  if (!is_near(rank)) return nullptr;
  if (const auto& known = links_[static_cast<std::size_t>(rank)]) return known.get();
  Link& link = open_link(rank);
  control_->connect_memory(rank);
  return &link;
}

Link& ShmTransport::open_link(int rank) {
  auto& link = links_[static_cast<std::size_t>(rank)];
  link = std::make_unique<Link>(rank, *options_.heap, traffic_);
  known_.push_back(link.get());
  return *link;
}

FrameLengths ShmTransport::frame_lengths(int peer) const noexcept {
  return is_near(peer) ? kMemoryFrames : kWireFrames;
}

std::shared_ptr<std::byte[]> ShmTransport::allocate(std::size_t bytes) {
  auto memory = options_.heap->allocate(bytes);
  return memory ? memory : base::zeroed_pages(bytes);
}

bool ShmTransport::reaches(base::ConstBytes vector) const noexcept {
  return options_.heap->place_of(vector).has_value();
}

void ShmTransport::send(const Frame& frame) {
  Link* link = link_to(frame.peer);
  if (link == nullptr) return far_->send(frame);
  link->send(frame, finished_);
  touch(*link);
}

void ShmTransport::lend(const Frame& frame) {
  Link* link = link_to(frame.peer);
  if (link == nullptr) return far_->send(frame);
  link->lend(frame, finished_);
  touch(*link);
}

void ShmTransport::receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) {
  Link* link = link_to(peer);
  if (link == nullptr) return far_->receive(peer, label, into, token);
  link->receive(label, into, token);
  touch(*link);
}

void ShmTransport::release(std::uint64_t token) {
  for (Link* link : known_)
    if (link->release(token)) return;
}

ReplyMemory ShmTransport::reply_memory(std::uint64_t arrival, int peer) {
  Link* link = link_to(peer);
  return link == nullptr ? ReplyMemory{} : link->reply_memory(arrival);
}

void ShmTransport::reply(std::uint64_t arrival, const Frame& frame) {
  Link* link = link_to(frame.peer);
  if (link == nullptr) return far_->send(frame);  // arrivals by socket are not lent, so there is nothing to give back
  link->reply(arrival, frame, finished_);
  touch(*link);
}

void ShmTransport::touch(Link& link) {
  if (link.pending() && std::find(active_.begin(), active_.end(), &link) == active_.end()) active_.push_back(&link);
}

std::span<const Event> ShmTransport::poll(base::Time deadline, Patience patience) {
  reported_.clear();
  Wait wait(patience, options_.crowded, backoff_);
  while (true) {
    if (control_->failed()) give_up();
    progress();
    if (mailbox_->rung() || far_->busy()) look_far({}, patience);
    if (!finished_.empty()) break;
    if (woken_.load(std::memory_order_relaxed) && woken_.exchange(false)) break;
    if (wait.look_at_once()) continue;
    const base::Time at = now();
    if (at >= deadline) break;
    if (!wait.stay_awake(at))
      sleep(at, deadline);
    else if (wait.time_to_check_failures())
      static_cast<void>(report_link_failures(at));
  }
  std::swap(reported_, finished_);
  return reported_;
}

/// A neighbour that has not learned of the failure yet may read and write this rank's vectors. It learns of it within a
/// millisecond and withdraws, unless it caused the failure or does not run.
void ShmTransport::give_up() {
  const membership::Failure failure = *control_->failure();
  const int culprit = failure.where.peer >= 0 ? failure.where.peer : failure.where.rank;
  for (Link* link : known_) link->withdraw();
  const base::Time end = now() + kWithdrawal;
  for (Link* link : known_)
    while (!link->revoke() && link->peer() != culprit && now() < end) backoff_.yield(now());
  membership::raise(failure);
}

/// Runs the sockets' own poll, until the deadline at most.
void ShmTransport::look_far(base::Time deadline, Patience patience) {
  const auto events = far_->poll(deadline, patience);
  finished_.insert(finished_.end(), events.begin(), events.end());
  collect_news();
}

void ShmTransport::collect_news() {
  for (membership::LinkNews& news : mailbox_->memory()) {
    auto& known = links_[static_cast<std::size_t>(news.peer)];
    Link& link = known ? *known : open_link(news.peer);
    if (!news.channel) {
      link.fail({membership::LinkFailure::Kind::lost, "cannot be reached at " + news.reason, {}});
      continue;
    }
    mailbox_->poller().add(news.channel.socket(), tcp::TcpTransport::kForeignKey, EPOLLIN | EPOLLRDHUP | EPOLLET);
    link.attach(std::move(news.channel), news.peer < options_.rank ? Side::maker : Side::guest);
  }
}

void ShmTransport::progress() {
  for (std::size_t i = 0; i < active_.size();) {
    Link& link = *active_[i];
    link.progress(finished_);
    if (link.pending()) {
      ++i;
    } else {
      active_[i] = active_.back();
      active_.pop_back();
    }
  }
}

base::Time ShmTransport::report_link_failures(base::Time at) {
  base::Time again = base::kNever;
  bool any_failed = false;
  for (Link* link : active_) {
    if (!link->link_failure() && control_->has_left(link->peer())) {
      link->progress(finished_);  // everything that it wrote before it left is visible now
      if (finished_.empty() && link->pending()) link->fail({membership::LinkFailure::Kind::lost, "it has left", {}});
    }
    if (!link->link_failure()) continue;
    any_failed = true;
    again = std::min(again, link_failures_.report(link->peer(), *link->link_failure(), at));
  }
  if (!any_failed) link_failures_.clear();
  return again;
}

void ShmTransport::sleep(base::Time at, base::Time deadline) {
  for (Link* link : active_) link->announce_sleep();
  membarrier_all();
  progress();
  const base::Time look_again = report_link_failures(at);
  if (finished_.empty()) look_far(std::min(deadline, look_again), {});
  for (Link* link : known_) link->end_sleep();
}

void ShmTransport::wake() noexcept {
  woken_.store(true);
  far_->wake();
}

std::pair<std::uint64_t, std::uint64_t> ShmTransport::traffic() const noexcept {
  const auto [sent, received] = far_->traffic();
  return {sent + traffic_.sent.bytes(), received + traffic_.received.bytes()};
}

}  // namespace syncopate::transport::shm
