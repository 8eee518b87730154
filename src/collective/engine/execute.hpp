// The engine: runs any program on any transport. A state machine that receives events and never waits by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "collective/engine/scratch.hpp"
#include "collective/plan/program.hpp"
#include "collective/plan/shape.hpp"
#include "kernel/reduce.hpp"
#include "transport/transport.hpp"

namespace syncopate::collective::engine {

/// The segment size for a step of `range_bytes` bytes on a link with these frame lengths.
[[nodiscard]] std::size_t segment_bytes(std::size_t range_bytes, const transport::FrameLengths& lengths);

/// One operation on one rank. A step's range is cut into segments. A segment is posted as soon as the steps that it
/// waits for have finished its bytes, so that a chunk is forwarded while the rest of it still arrives. The receive of a
/// segment that is to be reduced is posted earlier, into memory outside the vector; otherwise two ranks that exchange
/// the same chunk would wait for each other.
/// Law: the finished bytes of a step are a prefix of its range. A segment that overtakes others on another stream
/// counts as soon as those before it have finished.
class Execution final {
 public:
  struct Parameters {
    Buffer data;
    ConstBuffer source{};  ///< is only sent: an all-to-all's `in`, or a message; `data` continues it as one vector
    kernel::Reduction reduction{};
    transport::Label label{};
    transport::Label arrivals{};          ///< label of receives; operation 0: the same as `label` (messages have two)
    std::span<const std::size_t> cuts{};  ///< chunk boundaries in elements; empty: even chunks
    bool has_payload = true;              ///< false: frames have lengths only and nothing is reduced (simulation)
    std::uint64_t first_token = 0;        ///< offset of its tokens if operations share links; not for plans that reduce
  };

  Execution(transport::Transport& links, Scratch& scratch)
      : links_(links), lending_(links.lending()), scratch_(scratch) {}
  Execution(const plan::Program& program, const Parameters& parameters, transport::Transport& links, Scratch& scratch)
      : Execution(links, scratch) {
    begin(program, parameters);
  }

  /// Starts an operation and reuses the memory of the last one. `program` must stay alive until the operation is done.
  void begin(const plan::Program& program, const Parameters& parameters);

  /// Posts all segments that can be posted. Call it once after `begin`; `take` does the rest.
  void advance();
  /// Handles the events of a poll; all of them belong to this operation. A segment that an event unblocks is posted at
  /// once, while its bytes are in the cache.
  void take(std::span<const transport::Event> events);
  [[nodiscard]] bool done() const noexcept { return unfinished_ == 0; }
  /// A peer that this rank waits for; -1 if there is none.
  [[nodiscard]] int awaited_peer() const noexcept;

 private:
  struct Step {
    std::size_t begin = 0, end = 0;   ///< byte range in the vector
    const std::byte* from = nullptr;  ///< a send's first byte
    std::byte* into = nullptr;        ///< first byte of the others
    std::size_t segment = 0;          ///< bytes per segment
    std::uint32_t posted = 0;         ///< segments posted
    std::uint32_t finished = 0;       ///< segments in the finished prefix
    std::uint64_t overtakers = 0;     ///< bit i: segment finished + i is finished
    std::uint32_t segments = 0;
    [[nodiscard]] std::size_t prefix_end() const noexcept;
    [[nodiscard]] Range range_of(std::uint32_t segment_index) const noexcept;  ///< in bytes, from the step's first
    [[nodiscard]] base::ConstBytes sent(std::uint32_t segment_index) const noexcept;
    [[nodiscard]] base::Bytes received(std::uint32_t segment_index) const noexcept;
  };
  struct Queue {
    const plan::Route* route;
    std::size_t head = 0;           ///< index into route->steps
    std::uint32_t outstanding = 0;  ///< segments posted and not finished
  };

  /// Increases along a route.
  [[nodiscard]] static std::uint64_t token_of(std::uint32_t step, std::uint32_t segment) noexcept {
    return std::uint64_t{step} << 32 | segment;
  }

  /// A segment that is to be reduced: its receive is posted, or it has arrived and waits for earlier steps.
  struct Landing {
    std::uint32_t step = 0, segment = 0;
    base::Bytes beside;          ///< memory outside the vector, for bytes that are not borrowed, or no longer
    base::ConstBytes arrived{};  ///< empty until the segment arrives
    bool borrowed = false;
    transport::ReplyMemory memory{};  ///< valid while borrowed, if the sum returns to the sender
    [[nodiscard]] std::uint64_t token() const noexcept { return token_of(step, segment); }
  };

  /// A reduced arrival whose memory will carry the sum back; kept until the sum is sent.
  struct Lent {
    std::uint32_t step = 0, segment = 0;  ///< the send that returns the sum
    std::uint64_t arrival = 0;
    transport::ReplyMemory memory;
    bool has_sum = false;
  };

  void place(std::uint32_t index, const plan::ChunkLayout& layout);
  void advance(Queue& queue);
  [[nodiscard]] bool may_touch(std::uint32_t index, std::uint32_t segment) const;
  void account_for(const transport::Event& event);
  void post(std::uint32_t index, std::uint32_t segment);
  [[nodiscard]] transport::Label label_of(std::uint32_t index) const noexcept;
  void send(std::uint32_t index, const transport::Frame& frame);
  void absorb(std::size_t landing);
  void absorb_waiting();
  void copy_borrowed();
  void copy_aside(Landing& landing);
  void lend(const Landing& landing);
  void keep_no_more_of(std::uint32_t peer);
  void release_brief();
  [[nodiscard]] kernel::Reduction reduction_of(std::uint32_t index) const;
  void reduce(std::uint32_t index, std::uint32_t segment, base::ConstBytes arrived) const;
  void reduce_over(std::uint32_t index, std::uint32_t segment, base::Bytes back) const;
  void finish(std::uint32_t index, std::uint32_t segment);

  const plan::Program* program_ = nullptr;
  Parameters parameters_;
  transport::Transport& links_;
  transport::Lending* const lending_;  ///< the links' lending; null if they have none
  Scratch& scratch_;
  std::vector<Step> steps_;
  std::vector<Queue> outgoing_, incoming_;
  std::vector<Landing> landings_;
  std::vector<Lent> lent_;      ///< in the order of arrival
  std::size_t waiting_ = 0;     ///< landings that have arrived
  std::size_t unfinished_ = 0;  ///< steps that have not finished
};

}  // namespace syncopate::collective::engine
