// Shown: what a server has shown its workers of a block, and the packets from which they follow it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "server/message.hpp"
#include "server/table/setup.hpp"

namespace syncopate::base {
class WireReader;
class WireWriter;
}  // namespace syncopate::base

namespace syncopate::server {

/// A worker that is further behind gets all weights.
inline constexpr std::size_t kMostPackets = 64;

/// Without a codec of answers the weights themselves are shown. With one, all workers follow the same sequence of
/// packets, each of which says about the difference between the weights and what is shown: what a packet leaves out
/// stays in that difference, so that the server's residual is weights - shown, one for all workers. (One for each
/// worker would keep and encode as many copies as there are workers.) Used by one thread at a time.
class Shown final {
 public:
  Shown(const Terms& terms, const Block& block);

  /// The weights are others than when they were last shown.
  void changed() noexcept { is_current_ = false; }
  /// Fills an answer to a worker that holds `version`.
  void answer(std::span<const float> weights, std::uint64_t version, Message& message);
  /// With a coder: makes the next version, unless the weights are those of the last one.
  void advance(std::span<const float> weights);
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  void write_to(base::WireWriter& writer) const;
  void read_from(base::WireReader& reader);  ///< throws Corrupt

 private:
  void show(std::span<const float> weights);
  void encode(std::span<const float> weights);
  [[nodiscard]] bool follows(std::uint64_t version) const noexcept;

  const std::size_t elements_;
  const Terms& terms_;
  const std::uint64_t key_;
  std::unique_ptr<compress::Coder> coder_;  ///< null: answers have the weights themselves
  bool is_current_ = false;
  std::shared_ptr<std::vector<float>> copy_;    ///< of what is shown; answers share it
  std::vector<float> shown_, difference_;       ///< with a coder
  std::uint64_t version_ = 0;                   ///< of what is shown
  std::deque<std::vector<std::byte>> packets_;  ///< the newest last: to version_
};

/// The packets of an answer, one after the other. Throws Corrupt.
[[nodiscard]] std::vector<base::ConstBytes> packets_of(base::ConstBytes body);

}  // namespace syncopate::server
