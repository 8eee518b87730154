// TCP transport: frames over one or several connections per pair of ranks, made on first use.
#include "transport/tcp/transport.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/require.hpp"

namespace syncopate::transport::tcp {

namespace {

constexpr int kPollsWithoutLook = 16;
/// A longer frame is on the wire longer than a wake-up lasts: at 1 Gbit/s 131 us. Spinning for it would burn a core
/// that other ranks, or the backward pass, could use (256 KiB, 4 ranks: 3.4 ms of CPU awake, 1.4 ms asleep, same time).
constexpr std::size_t kWorthWaitingAwake = 16 << 10;

}  // namespace

TcpTransport::TcpTransport(const TransportOptions& options, std::shared_ptr<membership::ControlProtocol> control,
                           std::shared_ptr<membership::Mailbox> mailbox)
    : options_(options),
      control_(std::move(control)),
      mailbox_(std::move(mailbox)),
      peers_(static_cast<std::size_t>(options.size)),
      link_failures_(options.rank, control_) {}

void TcpTransport::send(const transport::Frame& frame) {
  Peer& to = peer_at(frame.peer);
  Stream& stream = *to.streams[to.frames_out++ % options_.streams];
  const bool first = !stream.sending();
  stream.send(frame.label, frame.bytes, frame.token);
  // After frames that the kernel did not take, a direct attempt is useless.
  if (first && stream.attached()) stream.push(finished_);
  touch(stream);
}

void TcpTransport::receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) {
  Peer& from = peer_at(peer);
  Stream& stream = *from.streams[from.frames_in++ % options_.streams];
  stream.receive(label, into, token);
  touch(stream);
}

TcpTransport::Peer& TcpTransport::peer_at(int rank) {
  base::require(rank >= 0 && rank < options_.size && rank != options_.rank,
                "rank {} cannot exchange frames with rank {}; allowed: the other ranks from 0 to {}", options_.rank,
                rank, options_.size - 1);
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.streams.empty()) {
    open(rank, peer);
    control_->connect_data(rank);
  }
  return peer;
}

void TcpTransport::open(int rank, Peer& peer) {
  for (std::uint32_t index = 0; index < options_.streams; ++index)
    peer.streams.push_back(std::make_unique<Stream>(rank, options_.rules, traffic_));
}

void TcpTransport::touch(Stream& stream) {
  if (stream.pending() && std::find(active_.begin(), active_.end(), &stream) == active_.end())
    active_.push_back(&stream);
}

std::span<const Event> TcpTransport::poll(base::Time deadline, Patience patience) {
  bool direct = patience.spin.count() > 0 && awaited_bytes() <= kWorthWaitingAwake;
  const base::Time begin = direct ? now() : base::Time{};
  direct = direct && backoff_.may_stay_awake(begin);
  const base::Time awake_until = begin + patience.spin;
  reported_.clear();
  for (;;) {
    if (mailbox_->take_ring()) collect_news();
    if (control_->failed()) membership::raise(*control_->failure());
    progress(direct);
    if (!finished_.empty()) break;
    const base::Time at = now();
    const base::Time look_again = report_link_failures(at);
    if (woken_.exchange(false, std::memory_order_relaxed) || at >= deadline) break;
    direct = at < awake_until;
    if (direct)
      backoff_.yield(at);
    else
      sleep(std::min(deadline, look_again));
  }
  // Sends that end at once could hide arrivals, so the sockets are polled now and then in any case.
  if (++polls_without_look_ > kPollsWithoutLook) sleep(base::Time{});
  std::swap(reported_, finished_);
  return reported_;
}

std::size_t TcpTransport::awaited_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Stream* stream : active_) bytes += stream->awaited_bytes();
  return bytes;
}

void TcpTransport::sleep(base::Time deadline) {
  polls_without_look_ = 0;
  for (Stream* stream : active_) stream->announce_whole_frames();
  for (const socket::Ready& ready : mailbox_->poller().wait(deadline)) {
    if (ready.key == kForeignKey) {
      woken_.store(true, std::memory_order_relaxed);
      continue;
    }
    reinterpret_cast<Stream*>(static_cast<std::uintptr_t>(ready.key))->note_ready(ready.events);
  }
}

void TcpTransport::progress(bool direct) {
  for (std::size_t i = 0; i < active_.size();) {
    Stream& stream = *active_[i];
    if (stream.healthy()) stream.advance(direct, finished_);
    if (stream.pending()) {
      ++i;
    } else {
      active_[i] = active_.back();
      active_.pop_back();
    }
  }
}

void TcpTransport::collect_news() {
  for (membership::LinkNews& news : mailbox_->links()) attach(std::move(news));
  woken_.store(true, std::memory_order_relaxed);  // the wake-up may be meant for another caller
}

void TcpTransport::attach(membership::LinkNews news) {
  Peer& peer = peers_[static_cast<std::size_t>(news.peer)];
  if (peer.streams.empty()) open(news.peer, peer);
  Stream& stream = *peer.streams[news.stream];
  if (!news.channel)
    return stream.fail({membership::LinkFailure::Kind::lost, "cannot be reached at " + news.reason, {}});
  const auto key = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&stream));
  // Edge-triggered and never changed: a stream whose next receive is not posted stays unread at no cost.
  mailbox_->poller().add(news.channel.socket(), key, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  stream.attach(std::move(news.channel));
}

/// Looks at what keeps posts from finishing. Returns when to look again.
base::Time TcpTransport::report_link_failures(base::Time at) {
  base::Time again = base::kNever;
  bool any_failed = false;
  for (const Stream* stream : active_) {
    const bool gone = !stream->attached() && control_->has_left(stream->peer());
    if (!stream->link_failure() && !gone) continue;
    any_failed = true;
    const membership::LinkFailure link_failure = stream->link_failure().value_or(
        membership::LinkFailure{membership::LinkFailure::Kind::lost, "is not connected", {}});
    again = std::min(again, link_failures_.report(stream->peer(), link_failure, at));
  }
  if (!any_failed) link_failures_.clear();
  return again;
}

void TcpTransport::wake() noexcept {
  woken_.store(true, std::memory_order_relaxed);
  mailbox_->poller().wake();
}

std::pair<std::uint64_t, std::uint64_t> TcpTransport::traffic() const noexcept { return traffic_.bytes(); }

}  // namespace syncopate::transport::tcp
