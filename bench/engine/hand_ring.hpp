// A ring all-reduce written out by hand for the benchmark: what the engine's interpretation of a plan is compared with.
#pragma once

#include <cstring>
#include <vector>

#include "kernel/reduce.hpp"
#include "transport/transport.hpp"

namespace syncopate::bench {

/// All-reduces f32 vectors whose length is a multiple of size * segment. A segment is forwarded as soon as it arrived:
/// segment j of step s+1 is what segment j of step s became. Used by one thread.
class HandRing final {
 public:
  HandRing(transport::Transport& links, int rank, int size) : links_(links), rank_(rank), size_(size) {}

  void allreduce(std::span<float> data, std::size_t segment_bytes, const transport::Label& label,
                 transport::Patience patience) {
    begin(data, segment_bytes, label);
    for (std::uint64_t left = 2 * std::uint64_t{steps()} * segments_; left > 0;) {
      const auto events = links_.poll(base::kNever, patience);
      for (const transport::Event& event : events)
        if (event.arrival) arrive(event);
      left -= events.size();
    }
  }

 private:
  [[nodiscard]] std::uint32_t steps() const { return 2 * static_cast<std::uint32_t>(size_ - 1); }
  [[nodiscard]] int next() const { return (rank_ + 1) % size_; }
  [[nodiscard]] int previous() const { return (rank_ + size_ - 1) % size_; }
  /// The chunk that this rank sends in step s; it receives the one before it.
  [[nodiscard]] base::Bytes piece(std::uint32_t step, std::uint32_t segment, bool received) const {
    const int chunk = (rank_ - 1 - static_cast<int>(step) - (received ? 1 : 0) + 3 * size_) % size_;
    return bytes_.subspan(static_cast<std::size_t>(chunk) * segments_ * segment_bytes_ + segment * segment_bytes_,
                          segment_bytes_);
  }

  void begin(std::span<float> data, std::size_t segment_bytes, const transport::Label& label) {
    bytes_ = std::as_writable_bytes(data);
    segment_bytes_ = segment_bytes;
    segments_ = static_cast<std::uint32_t>(bytes_.size() / static_cast<std::size_t>(size_) / segment_bytes);
    label_ = label;
    landing_.resize(bytes_.size());
    for (std::uint32_t step = 0; step < steps(); ++step)
      for (std::uint32_t j = 0; j < segments_; ++j) {
        const bool reduces = step + 1 < static_cast<std::uint32_t>(size_);
        const base::Bytes landing(landing_.data() + (step * std::size_t{segments_} + j) * segment_bytes_,
                                  segment_bytes_);
        links_.receive(previous(), label_, reduces ? landing : piece(step, j, true), token(step, j));
      }
    for (std::uint32_t j = 0; j < segments_; ++j) send(0, j);
  }

  void send(std::uint32_t step, std::uint32_t segment) {
    links_.send({next(), label_, piece(step, segment, false), token(step, segment)});
  }

  void arrive(const transport::Event& event) {
    const auto step = static_cast<std::uint32_t>(event.token >> 32), segment = static_cast<std::uint32_t>(event.token);
    const base::Bytes into = piece(step, segment, true);
    if (step + 1 < static_cast<std::uint32_t>(size_))
      kernel::reduce({}, into.data(), event.bytes.data(), segment_bytes_ / sizeof(float));
    else if (into.data() != event.bytes.data())
      std::memcpy(into.data(), event.bytes.data(), segment_bytes_);
    links_.release(event.token);
    if (step + 1 < steps()) send(step + 1, segment);
  }

  static std::uint64_t token(std::uint32_t step, std::uint32_t segment) { return std::uint64_t{step} << 32 | segment; }

  transport::Transport& links_;
  int rank_, size_;
  base::Bytes bytes_;
  std::size_t segment_bytes_ = 0;
  std::uint32_t segments_ = 0;
  transport::Label label_;
  std::vector<std::byte> landing_;
};

}  // namespace syncopate::bench
