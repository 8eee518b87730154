// Link: this rank's end of the memory shared with one peer: queued frames to send, and queued receives.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "syncopate/error.hpp"
#include "transport/membership/link_failure.hpp"
#include "transport/shm/heap.hpp"
#include "transport/shm/ring_buffer.hpp"
#include "transport/socket/channel.hpp"
#include "transport/traffic.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::shm {

/// Used by the polling thread only. Opening: the maker sends the region and its heap, the guest maps them and sends its
/// own heap; until then posts wait. Law of waking: an end that sleeps first sets its word in the region, then looks
/// once more; an end that changed something reads that word afterwards. The sleeper's barrier covers both
/// (fence.hpp), so at least one of the two sees the other.
class Link final {
 public:
  using LinkFailure = membership::LinkFailure;

  Link(int peer, Heap& heap, LinkTraffic& traffic) : peer_(peer), heap_(heap), traffic_(traffic) {}

  /// Takes a connection whose handshake is done. The rank that called makes the memory.
  void attach(socket::Channel channel, Side side);
  void fail(membership::LinkFailure link_failure);

  void send(const Frame& frame, std::vector<Event>& finished) { post(frame, false, finished); }
  /// Posts a frame over which the peer may write its reply.
  void lend(const Frame& frame, std::vector<Event>& finished) { post(frame, true, finished); }
  void receive(const Label& label, base::Bytes into, std::uint64_t token) { in_.emplace_back(label, into, token); }
  /// Memory of a borrowed arrival.
  [[nodiscard]] ReplyMemory reply_memory(std::uint64_t arrival) noexcept;
  /// Sends a frame in the memory of a borrowed arrival, where the caller has written it, if it can leave at once. Else
  /// gives the arrival back and sends the frame as an ordinary one: no operation may wait for room that a reply holds.
  void reply(std::uint64_t arrival, const Frame& frame, std::vector<Event>& finished);
  /// Gives a borrowed arrival back; false if `token` is not of this link.
  bool release(std::uint64_t token) noexcept;

  /// After a failure of the group: stops touching the peer's memory, and posts nothing more.
  void withdraw() noexcept;
  /// Takes back what the peer has not read yet; false while it touches this rank's heap.
  [[nodiscard]] bool revoke() noexcept;

  /// Moves what can move and appends finished posts.
  void progress(std::vector<Event>& finished) noexcept;
  /// Announces what this end waits for. A heavy barrier and one more `progress` must follow.
  void announce_sleep() noexcept;
  void end_sleep() noexcept;

  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] bool pending() const noexcept { return !out_.empty() || !in_.empty() || !referred_.empty(); }
  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] const std::optional<membership::LinkFailure>& link_failure() const noexcept { return link_failure_; }

 private:
  struct Outgoing {
    Frame frame;
    bool is_loan = false;
    std::size_t gone = 0;  ///< bytes already in the ring
  };
  /// A frame that the peer reads in this rank's heap.
  struct Referred {
    std::uint64_t token = 0;
    std::uint64_t at = 0;  ///< position of its record
  };
  struct Incoming {
    Label label;
    base::Bytes into;
    std::uint64_t token = 0;
  };
  struct Borrowed {
    std::uint64_t token = 0;
    Record record;
    bool released = false;
    std::uint64_t reply = 0;  ///< sequence number of the reply, 0 if none; the bytes stay until the peer has read it
  };

  // Bits of a sleeper word: what the end waits for.
  static constexpr std::uint64_t kFrames = 1, kRoom = 2;

  /// Runs `move`; an error that it finds becomes this link's link_failure.
  template <class Move>
  void attempt(Move move) noexcept;
  void post(const Frame& frame, bool is_loan, std::vector<Event>& finished);
  void move(std::vector<Event>& finished);
  void open();
  void map(Region region);
  void complete_referred(std::vector<Event>& finished);
  void push(std::vector<Event>& finished);
  [[nodiscard]] bool push_front();
  [[nodiscard]] bool refer(const Outgoing& out, std::uint64_t place);
  [[nodiscard]] base::Bytes frame_elsewhere(const Record& record);
  void pull(std::vector<Event>& finished);
  [[nodiscard]] bool fits(const Record& record, const Incoming& post);
  void arrive(const Record& record, std::vector<Event>& finished);
  [[nodiscard]] Borrowed* borrowed(std::uint64_t token) noexcept;
  [[nodiscard]] bool leave_at_once(Borrowed& arrival, const FrameHead& frame);
  void finish_with(Borrowed& arrival) noexcept;
  [[nodiscard]] std::uint64_t replies_seen() const noexcept;  ///< by the peer
  void give_back_prefix() noexcept;
  void give_back(std::uint64_t end) noexcept;
  void changed(std::uint64_t what) noexcept;
  /// Counts a piece together with its line of fields, wherever the piece lies.
  static void count(ByteCounter& counter, std::size_t piece) noexcept;

  const int peer_;
  Heap& heap_;
  LinkTraffic& traffic_;
  socket::Channel channel_;
  Side side_ = Side::maker;
  std::optional<Region> region_;
  std::optional<RingWriter> writer_;
  std::optional<RingReader> reader_;
  std::optional<PeerHeap> theirs_;
  bool open_ = false;
  std::uint64_t sleeping_for_ = 0;
  std::optional<membership::LinkFailure> link_failure_;
  std::deque<Outgoing> out_;
  std::vector<Referred> referred_;
  std::deque<Incoming> in_;
  std::size_t have_ = 0;  ///< bytes of the front receive from earlier records
  std::deque<Borrowed> borrowed_;
  std::uint64_t replies_ = 0;       ///< written here
  std::uint64_t replies_read_ = 0;  ///< of the peer's replies
};

template <class Move>
void Link::attempt(Move move) noexcept try {
  move();
} catch (const Corrupt& corrupt) {
  fail({membership::LinkFailure::Kind::corrupt, corrupt.what(), {}});
} catch (const SystemFailure& failure) {
  fail({membership::LinkFailure::Kind::refused, failure.what(), {}});
} catch (const std::exception& error) {
  fail({membership::LinkFailure::Kind::lost, error.what(), {}});
}

}  // namespace syncopate::transport::shm
