// Link: this rank's end of the memory shared with one peer: queued frames to send, and queued receives.
#include "transport/shm/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "syncopate/error.hpp"
#include "transport/membership/control.hpp"
#include "transport/shm/fence.hpp"
#include "transport/shm/shared_memory.hpp"

namespace syncopate::transport::shm {

namespace {

/// Shorter frames are copied even if they lie in the heap: that is faster than waiting until the peer has read them.
constexpr std::size_t kWorthReferring = std::size_t{8} << 10;
const membership::LinkFailure kClosed{membership::LinkFailure::Kind::lost, "the connection was closed", {}};

}  // namespace

void Link::attach(socket::Channel channel, Side side) {
  channel_ = std::move(channel);
  side_ = side;
  if (side != Side::maker) return;
  map(Region::make());
  const bool is_passed = send_descriptor(channel_.socket(), region_->memory()) && heap_.pass(channel_.socket());
  region_->close_descriptor();
  if (!is_passed) fail(kClosed);
}

void Link::map(Region region) {
  region_.emplace(std::move(region));
  writer_.emplace(region_->ring(side_), region_->tail(side_));
  reader_.emplace(region_->ring(other(side_)), region_->tail(other(side_)));
}

void Link::fail(membership::LinkFailure link_failure) {
  if (!link_failure_) link_failure_ = std::move(link_failure);
}

void Link::open() {
  if (!channel_) return;
  if (!region_) {
    auto memory = receive_descriptor(channel_.socket());
    if (!memory) return;
    map(Region::adopt(std::move(*memory)));
    region_->close_descriptor();
  }
  auto memory = receive_descriptor(channel_.socket());
  if (!memory) return;
  theirs_.emplace(PeerHeap::adopt(*memory));
  open_ = side_ == Side::maker || heap_.pass(channel_.socket());
  if (!open_) fail(kClosed);
}

void Link::post(const Frame& frame, bool is_loan, std::vector<Event>& finished) {
  out_.emplace_back(frame, is_loan);
  if (out_.size() == 1 && open_ && !link_failure_) progress(finished);
}

void Link::progress(std::vector<Event>& finished) noexcept {
  if (link_failure_) return;
  attempt([&] { move(finished); });
}

void Link::move(std::vector<Event>& finished) {
  if (!open_) {
    open();
    if (!open_) return;
    announce_sleep();
    membarrier_all();  // this may be the last look before a sleep, and the region could not know of it yet
  }
  if (!borrowed_.empty() && borrowed_.front().reply != 0) give_back_prefix();
  if (!referred_.empty()) complete_referred(finished);
  if (!out_.empty()) push(finished);
  if (!in_.empty()) pull(finished);
}

void Link::complete_referred(std::vector<Event>& finished) {
  std::erase_if(referred_, [&](const Referred& frame) {
    const bool is_done = writer_->is_given_back(frame.at);
    if (is_done) finished.emplace_back(frame.token, false);
    return is_done;
  });
}

bool Link::revoke() noexcept {
  std::erase_if(referred_, [&](const Referred& frame) { return writer_->revoke(frame.at); });
  return referred_.empty();
}

void Link::push(std::vector<Event>& finished) {
  bool moved = false;
  while (!out_.empty()) {
    const Frame& frame = out_.front().frame;
    const auto place = frame.bytes.size() < kWorthReferring ? std::nullopt : heap_.place_of(frame.bytes);
    if (!(place ? refer(out_.front(), *place) : push_front())) break;
    moved = true;
    if (!place && out_.front().gone < frame.bytes.size()) continue;
    if (!place) finished.emplace_back(frame.token, false);
    out_.pop_front();
  }
  if (moved) changed(kFrames);
}

bool Link::push_front() {
  Outgoing& out = out_.front();
  const base::ConstBytes bytes = out.frame.bytes;
  const auto piece = bytes.subspan(out.gone, std::min(kMostPiece, bytes.size() - out.gone));
  if (!writer_->push({out.frame.label, bytes.size()}, piece)) return false;
  out.gone += piece.size();
  count(traffic_.sent, piece.size());
  return true;
}

bool Link::refer(const Outgoing& out, std::uint64_t place) {
  const Frame& frame = out.frame;
  const std::uint64_t at = writer_->position();
  const Kind kind = out.is_loan ? Kind::loan : Kind::reference;
  if (!writer_->push({frame.label, frame.bytes.size()}, kind, place)) return false;
  referred_.push_back({frame.token, at});
  count(traffic_.sent, frame.bytes.size());
  return true;
}

void Link::give_back(std::uint64_t end) noexcept {
  reader_->give_back(end);
  changed(kRoom);
}

void Link::count(ByteCounter& counter, std::size_t piece) noexcept {
  counter.add(kLineBytes + (piece > kInlineBytes ? piece : 0));
}

void Link::changed(std::uint64_t what) noexcept {
  std::atomic_ref sleeper(*region_->sleeper(other(side_)));
  std::atomic_signal_fence(std::memory_order_seq_cst);  // compiler fence only: the sleeper orders the processors
  if ((sleeper.load(std::memory_order_relaxed) & what) == 0) return;
  if (sleeper.exchange(0) != 0) ring(channel_);
}

void Link::announce_sleep() noexcept {
  if (!open_) return;
  const bool replied = std::ranges::any_of(borrowed_, [](const Borrowed& lent) { return lent.reply != 0; });
  sleeping_for_ = (in_.empty() ? 0 : kFrames) | (out_.empty() && referred_.empty() && !replied ? 0 : kRoom);
  std::atomic_ref(*region_->sleeper(side_)).store(sleeping_for_);
}

void Link::end_sleep() noexcept {
  if (!open_ || sleeping_for_ == 0) return;
  const bool rung = std::atomic_ref(*region_->sleeper(side_)).exchange(0) == 0;
  sleeping_for_ = 0;
  // A closed connection is not yet a failure: earlier frames of the peer are still here, and control reports its end.
  std::size_t rings = 0;
  if (rung) static_cast<void>(take_rings(channel_, rings));
}

}  // namespace syncopate::transport::shm
