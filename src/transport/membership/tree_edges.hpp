// TreeEdges: this rank's edges of the control tree, existing and expected.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "transport/socket/channel.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate::transport::membership {

[[nodiscard]] constexpr int parent_of(int rank) noexcept { return (rank - 1) / 2; }

/// The neighbours of `rank` among `size` ranks of which those in `departed` have left. Law: a rank's parent is its
/// nearest remaining ancestor (parent_of); without one, the lowest remaining rank. The remaining ranks therefore form
/// one tree, and an edge changes only when one of its ends leaves.
[[nodiscard]] std::set<int> neighbours_of(int rank, int size, const std::set<int>& departed = {});

/// Used by the control thread only. Keys in its poller are ranks.
class TreeEdges final {
 public:
  explicit TreeEdges(socket::Poller& poller) : poller_(poller) {}

  struct Lost {
    int rank = -1;
    std::string reason;
  };
  struct Received {
    int rank = -1;
    std::string message;
  };

  /// False if that edge exists already.
  bool attach(int rank, socket::Channel channel);
  /// Ends an edge; no message is sent or received over it after that.
  void detach(int rank);
  /// Sends `last`, the last message on this edge, which the neighbour then closes: the end that closes first may lose
  /// messages in flight.
  void part(int rank, const std::string& last);
  [[nodiscard]] bool has(int rank) const { return edges_.contains(rank); }
  /// Expects a new edge to that rank: if it is not attached in time, the rank is lost. The silence that another rank
  /// has measured counts, up to `most`.
  void expect(int rank, base::Duration most);
  void expect_no_more(int rank);
  /// From now on expected ranks are not lost, however late they are.
  void be_patient() noexcept { is_patient_ = true; }
  /// The silence of `rank` as measured by another rank. The shortest such silence counts.
  void note_silence(int rank, base::Duration silent);
  /// The silences of neighbours and of expected ranks.
  [[nodiscard]] std::map<int, base::Duration> silences() const;
  [[nodiscard]] std::set<int> expected() const;
  /// Queues a message for one neighbour, or for all but `except`.
  void send(int rank, const std::string& message);
  void flood(const std::string& message, int except = -1);
  /// Queues `message` unless an earlier message still waits: such a neighbour does not read, and needs no further
  /// heartbeat.
  void send_if_idle(int rank, const std::string& message);
  void on_ready(const socket::Ready& ready);
  /// Sends queued messages, as far as the kernel takes them. A neighbour with more than 4 MiB left in its queue is
  /// lost: it makes this rank send, and does not read.
  void flush();
  [[nodiscard]] bool idle() const noexcept;

  /// Adds time during which this thread ran and received nothing. Ranks that were silent, or did not connect, for
  /// `limit` are lost.
  void age(base::Duration ran, base::Duration limit);
  /// The longest silence of any neighbour or expected rank.
  [[nodiscard]] base::Duration longest_silence() const noexcept;

  [[nodiscard]] std::vector<Received> received() { return std::exchange(received_, {}); }
  [[nodiscard]] std::vector<Lost> lost() { return std::exchange(lost_, {}); }
  [[nodiscard]] std::set<int> ranks() const;

 private:
  struct Edge {
    socket::FramedChannel channel;
    base::Duration silent{0};
    bool watching_out = false;
    bool is_parting = false;  ///< no more messages are queued
  };
  using Edges = std::map<int, Edge>;

  Edges::iterator drop(Edges::iterator edge, std::string reason);

  socket::Poller& poller_;
  Edges edges_;
  std::map<int, base::Duration> expected_;   ///< for how long
  std::map<int, base::Duration> elsewhere_;  ///< silences of ranks that are neither neighbours nor expected
  bool is_patient_ = false;
  std::vector<Received> received_;
  std::vector<Lost> lost_;
};

}  // namespace syncopate::transport::membership
