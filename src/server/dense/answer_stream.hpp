// AnswerStream: the state of a block that a server has sent its workers, and the packets from which they follow it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "server/job/setup.hpp"
#include "server/message.hpp"

namespace syncopate::base {
class WireReader;
class WireWriter;
}  // namespace syncopate::base

namespace syncopate::server {

/// Limit of packets in an answer; a worker that is further behind gets all weights.
inline constexpr std::size_t kMostPackets = 64;

/// Without a codec of answers a server sends the weights themselves. With one, all workers follow the same sequence of
/// packets. Each packet codes the difference between the weights and the shown state; values that it omits stay in that
/// difference, so that the server's residual is weights - shown, one for all workers. (One per worker would keep and
/// encode a copy for each.) Used by one thread at a time.
class AnswerStream final {
 public:
  AnswerStream(const JobRules& rules, const Block& block);

  /// The weights have changed since they were last shown.
  void changed() noexcept { is_current_ = false; }
  /// Fills an answer to a worker that holds `version`: its version and values.
  void answer(std::span<const float> weights, std::uint64_t version, Weights& message);
  /// With a coder: makes the next version, unless the weights equal the last one.
  void advance(std::span<const float> weights);
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  void write_to(base::WireWriter& writer) const;
  void read_from(base::WireReader& reader);  ///< throws Corrupt

 private:
  void show(std::span<const float> weights);
  void encode(std::span<const float> weights);
  [[nodiscard]] compress::Tensor difference() noexcept;
  [[nodiscard]] bool follows(std::uint64_t version) const noexcept;

  const Block block_;
  const std::size_t elements_;
  const JobRules& rules_;
  std::unique_ptr<compress::Coder> coder_;  ///< null: answers hold the weights themselves
  bool is_current_ = false;
  std::shared_ptr<std::vector<float>> copy_;    ///< of the shown state; answers share it
  std::vector<float> shown_, difference_;       ///< with a coder
  std::vector<std::byte> wire_;                 ///< with a coder: memory in which a packet is made
  std::uint64_t version_ = 0;                   ///< of the shown state
  std::deque<std::vector<std::byte>> packets_;  ///< the newest last: to version_
};

/// The packets of an answer, one after the other. Throws Corrupt.
[[nodiscard]] std::vector<base::ConstBytes> packets_of(base::ConstBytes body);

}  // namespace syncopate::server
