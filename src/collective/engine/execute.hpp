// The engine: runs any program on any transport. A state machine fed with events; it never waits by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "collective/engine/scratch.hpp"
#include "collective/plan/chunk_layout.hpp"
#include "collective/plan/program.hpp"
#include "kernel/reduce.hpp"
#include "transport/lending.hpp"

namespace syncopate::collective::engine {

/// What a step of so many bytes is cut into, on a link for frames of such lengths.
[[nodiscard]] std::size_t segment_bytes(std::size_t range_bytes, const transport::FrameLengths& lengths);

/// One operation on one rank. A step's range is cut into segments; a segment is posted as soon as the steps it waits
/// for have finished its bytes, so that a chunk is forwarded while its rest still arrives. What is to be reduced may
/// arrive before that, beside the vector: two ranks that exchange the same chunk would otherwise wait for each other.
/// Law: finished bytes of a step form a prefix of its range (arrivals across streams may overtake; the prefix waits).
class Execution final {
 public:
  struct Parameters {
    Buffer data;
    kernel::Reduction reduction;
    transport::Label label;
    Buffer second{};                      ///< an all-to-all's `out`: the vector goes on there
    transport::Label arrivals{};          ///< label of what is received, if not the same (messages); number 0: it is
    std::span<const std::size_t> cuts{};  ///< where chunks begin and end, in elements, if not at even parts
    bool has_payload = true;              ///< false: frames have lengths only (simulation); nothing is added up
    std::uint64_t first_token = 0;  ///< added to its tokens, where others share the links: plans that reduce nothing
  };

  Execution(transport::Transport& links, Scratch& scratch)
      : links_(links), lending_(links.lending()), scratch_(scratch) {}
  Execution(const plan::Program& program, const Parameters& parameters, transport::Transport& links, Scratch& scratch)
      : Execution(links, scratch) {
    begin(program, parameters);
  }

  /// Takes on an operation, in the memory of the one before. `program` must stay until it is done.
  void begin(const plan::Program& program, const Parameters& parameters);

  /// Posts everything that may be posted now. To be called once; after that `take` does.
  void advance();
  /// Takes what a poll of the transport found; all of it belongs to this operation. What an event makes possible is
  /// posted at once: the next rank then finds the bytes in the cache.
  void take(std::span<const transport::Event> events);
  [[nodiscard]] bool done() const noexcept { return unfinished_ == 0; }
  /// A peer that this rank still waits for; -1 when none.
  [[nodiscard]] int awaited_peer() const noexcept;

 private:
  struct Step {
    std::size_t begin = 0, end = 0;  ///< bytes of the vector
    std::byte* memory = nullptr;     ///< where they lie
    std::size_t segment = 0;         ///< bytes per segment
    std::uint32_t posted = 0;        ///< segments
    std::uint32_t finished = 0;      ///< segments in the finished prefix
    std::uint64_t overtakers = 0;    ///< bit i: segment finished + i is finished
    std::uint32_t segments = 0;
    [[nodiscard]] std::size_t prefix_end() const noexcept;
    [[nodiscard]] base::Bytes bytes_of(std::uint32_t segment_index) const noexcept;
  };
  struct Queue {
    const plan::Route* route;
    std::size_t head = 0;           ///< index into route->steps
    std::uint32_t outstanding = 0;  ///< segments posted and not finished
  };

  /// Ascends along a route.
  [[nodiscard]] static std::uint64_t token_of(std::uint32_t step, std::uint32_t segment) noexcept {
    return std::uint64_t{step} << 32 | segment;
  }

  /// An arrival that is to be reduced: posted, or there and waiting for its turn.
  struct Landing {
    std::uint32_t step = 0, segment = 0;
    base::Bytes beside;          ///< where it lies if the transport does not lend it, or not for so long
    base::ConstBytes arrived{};  ///< empty until then
    bool borrowed = false;
    transport::ReplyMemory memory{};  ///< while borrowed, if what it is added to returns
    [[nodiscard]] std::uint64_t token() const noexcept { return token_of(step, segment); }
  };

  /// A reduced arrival whose memory can carry the sum back, until that is sent.
  struct Lent {
    std::uint32_t step = 0, segment = 0;  ///< of the send
    std::uint64_t arrival = 0;
    transport::ReplyMemory memory;
    bool has_sum = false;
  };

  void place(std::uint32_t index, const plan::ChunkLayout& layout);
  void advance(Queue& queue);
  [[nodiscard]] bool may_touch(std::uint32_t index, std::uint32_t segment) const;
  void settle(const transport::Event& event);
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
  transport::Lending* const lending_;  ///< of the links; null if they have none
  Scratch& scratch_;
  std::vector<Step> steps_;
  std::vector<Queue> outgoing_, incoming_;
  std::vector<Landing> landings_;
  std::vector<Lent> lent_;      ///< in the order of their arrival
  std::size_t waiting_ = 0;     ///< landings that are there
  std::size_t unfinished_ = 0;  ///< steps
};

}  // namespace syncopate::collective::engine
