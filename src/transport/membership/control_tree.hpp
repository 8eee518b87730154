// ControlTree: this rank's edges of the control tree: parent (r-1)/2 and children 2r+1, 2r+2.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "transport/socket/framed_channel.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate::transport::membership {

[[nodiscard]] constexpr int parent_of(int rank) noexcept { return (rank - 1) / 2; }
/// Ranks that share an edge with `rank` in a tree of `size` ranks.
[[nodiscard]] std::vector<int> neighbours_of(int rank, int size);

/// Used by the control thread alone. Keys in its poller are ranks.
class ControlTree final {
 public:
  explicit ControlTree(socket::Poller& poller) : poller_(poller) {}

  struct Lost {
    int rank = -1;
    std::string reason;
  };
  struct Heard {
    int rank = -1;
    std::string message;
  };

  /// False if that edge exists already.
  bool attach(int rank, socket::Channel channel);
  /// Ends an edge; nothing more is said or heard over it.
  void detach(int rank);
  [[nodiscard]] bool has(int rank) const { return edges_.contains(rank); }
  /// Queues a message for one neighbour, or for all but `except`.
  void send(int rank, const std::string& message);
  void flood(const std::string& message, int except = -1);
  /// Queues `message` unless an earlier message still waits: that neighbour does not read, and would not miss it.
  void send_if_idle(int rank, const std::string& message);
  void on_ready(const socket::Ready& ready);
  /// Sends what waits, as far as the kernel takes it.
  void flush();
  [[nodiscard]] bool idle() const noexcept;

  /// Adds time during which this thread ran and heard nothing; the ranks silent for `limit` are lost.
  void age(base::Duration ran, base::Duration limit);

  [[nodiscard]] std::vector<Heard> heard() { return std::exchange(heard_, {}); }
  [[nodiscard]] std::vector<Lost> lost() { return std::exchange(lost_, {}); }
  [[nodiscard]] std::vector<int> ranks() const;

 private:
  struct Edge {
    socket::FramedChannel channel;
    base::Duration silent{0};
    bool watching_out = false;
  };
  using Edges = std::map<int, Edge>;

  Edges::iterator drop(Edges::iterator edge, std::string reason);

  socket::Poller& poller_;
  Edges edges_;
  std::vector<Heard> heard_;
  std::vector<Lost> lost_;
};

}  // namespace syncopate::transport::membership
