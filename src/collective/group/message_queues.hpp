// Message queues: messages in progress between this rank and others, and arrivals whose receive is not posted yet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "collective/engine/execute.hpp"
#include "collective/group/request.hpp"
#include "syncopate/dtype.hpp"
#include "transport/membership/control.hpp"

namespace syncopate::collective::group {

/// A short message travels inside its envelope. The elements of a longer one follow in frames of their own.
struct Envelope {
  static constexpr std::size_t kBytes = 64;  ///< one cache line
  static constexpr std::size_t kRoom = 40;   ///< for elements
  using Wire = std::array<std::byte, kBytes>;

  std::int64_t tag = 0;
  std::uint64_t count = 0;
  DType dtype = DType::f32;

  /// Throws Corrupt for a type that does not exist, or for a length beyond the address space.
  [[nodiscard]] static Envelope decode(const Wire& wire);
  /// With the elements, if they fit.
  [[nodiscard]] static Wire encode(std::int64_t tag, const ConstBuffer& data);
  /// Signature of the frames that follow, which both ranks compute.
  [[nodiscard]] static std::uint64_t signature_of(const Wire& wire) noexcept;
  [[nodiscard]] static base::ConstBytes elements_in(const Wire& wire) noexcept {
    return base::ConstBytes(wire).last(kRoom);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return count * size_of(dtype); }
  [[nodiscard]] bool is_whole() const noexcept { return bytes() <= kRoom; }
};

/// "f32 x 3 (12 bytes)".
[[nodiscard]] std::string text_of_length(DType dtype, std::uint64_t count);

/// A queue holds the messages to one peer, or those from it. They run in the order of the calls, so that the k-th
/// message from one rank to another matches the k-th receive. Queues do not wait for each other. Used by one thread at
/// a time.
/// Law of tags: a message with a tag matches the earliest receive with that tag. A queue reads messages in the order in
/// which they were sent, as long as one of its receives waits. A message whose receive is not posted yet is kept in
/// memory until it is, so that its sender never waits for the order of the receives.
class MessageQueues final {
 public:
  struct Options {
    int rank = 0;
    /// Limit of one message, from the end of those before it in its queue; read when a message begins.
    const std::atomic<base::Duration>* timeout = nullptr;
    const base::Clock* clock = nullptr;
  };
  MessageQueues(const Options& options, transport::Transport& links, transport::membership::Control& control)
      : options_(options), links_(links), control_(control) {}

  /// Adds a message. Its buffers must stay alive until `wait` has returned its id, or until `clear`.
  void add(std::uint64_t id, const Request& request);
  [[nodiscard]] bool empty() const noexcept { return legs_left_.empty(); }
  /// Waits for the links once, at most until `until`, and returns the messages that have ended since the last call.
  /// Throws what the links throw, and Timeout.
  [[nodiscard]] std::vector<std::uint64_t> wait(transport::Patience patience, base::Time until);
  /// Drops all messages, after the group has failed and its links have released them.
  void clear() noexcept;

 private:
  /// One direction of a message; an exchange has two.
  struct Leg {
    std::uint64_t message = 0;
    ConstBuffer sent;  ///< this or `received`
    Buffer received;
    std::string tensor;
    std::optional<std::int64_t> tag;
  };
  /// A message that arrived before its receive.
  struct Unmatched {
    Envelope envelope;
    std::unique_ptr<std::byte[]> elements;
  };
  /// The bytes that a queue's execution moves: of a message without a tag, or of a part of a message with a tag.
  enum class Phase : std::uint8_t { whole, envelope, elements };
  struct Queue {
    Queue(int from, int to, std::size_t index, MessageQueues& queues);
    int from, to;
    bool sends;
    std::uint64_t first_token;
    plan::Program program;
    engine::Execution execution;
    std::uint64_t count = 0;  ///< messages begun so far
    std::list<Leg> legs{};    ///< not empty: something is in progress
    /// Receives by tag, so that none is searched for among many; equal tags in the order of the calls.
    std::multimap<std::int64_t, std::list<Leg>::iterator> by_tag{};
    transport::membership::OperationRecord record{};  ///< record of the front leg
    base::Time deadline = base::kNever;
    Phase phase = Phase::whole;
    Envelope::Wire wire{};                          ///< of the message in progress
    Unmatched arriving{};                           ///< receives: its envelope, and its elements if it has no receive
    std::optional<std::list<Leg>::iterator> owner;  ///< receives: the leg that it belongs to
    std::multimap<std::int64_t, Unmatched> unmatched{};  ///< by tag; equal ones in the order of arrival
  };

  void add_leg(std::pair<int, int> way, Leg leg);
  void begin(Queue& queue);
  void post(Queue& queue, Phase phase, const ConstBuffer& sent, const Buffer& received, std::uint64_t signature);
  void finish(Queue& queue);
  [[nodiscard]] bool follow(Queue& queue);
  [[nodiscard]] std::byte* open(Queue& queue);
  void deliver(Queue& queue);
  [[nodiscard]] bool take_unmatched(Queue& queue, const Leg& leg);
  void check_length(const Queue& queue, const Leg& leg, const Envelope& sent) const;
  void reserve(const Queue& queue, const Envelope& envelope);
  void release(const Envelope& envelope) noexcept;
  [[nodiscard]] static std::optional<std::list<Leg>::iterator> receive_of(Queue& queue, std::int64_t tag);
  static void remove(Queue& queue, std::list<Leg>::iterator leg);
  void end(Queue& queue, std::list<Leg>::iterator leg);
  void end_leg(std::uint64_t message);
  [[nodiscard]] base::Time deadline_from_now() const;
  [[nodiscard]] base::Time first_deadline() const noexcept;
  void check_deadlines() const;
  [[nodiscard]] static std::string text_of_unmatched(const Queue& queue);

  Options options_;
  transport::Transport& links_;
  transport::membership::Control& control_;
  engine::Scratch scratch_;
  std::deque<Queue> queues_;                      ///< an event's token holds the index
  std::map<std::pair<int, int>, Queue*> by_way_;  ///< by sender and receiver
  std::map<std::uint64_t, int> legs_left_;        ///< by message
  std::vector<std::uint64_t> over_;
  std::size_t unmatched_bytes_ = 0;  ///< of all queues
};

}  // namespace syncopate::collective::group
