// ControlTree: this rank's edges of the control tree, those that exist and those that are expected.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "transport/socket/framed_channel.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate::transport::membership {

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
  /// Says `last`, the last word on this edge, which the neighbour then ends: who closes first may lose what is under
  /// way.
  void part(int rank, const std::string& last);
  [[nodiscard]] bool has(int rank) const { return edges_.contains(rank); }
  /// A new edge to that rank is due: if it is not attached in time, the rank is lost. The silence that another rank has
  /// measured counts, `most` of it at most.
  void expect(int rank, base::Duration most);
  void expect_no_more(int rank);
  /// From now on the ranks that are expected are not lost, however late they are.
  void be_patient() noexcept { is_patient_ = true; }
  /// The silence of `rank` as another rank has measured it. The shortest such silence counts.
  void note_silence(int rank, base::Duration silent);
  /// The silences of neighbours and of expected ranks.
  [[nodiscard]] std::map<int, base::Duration> silences() const;
  [[nodiscard]] std::set<int> expected() const;
  /// Queues a message for one neighbour, or for all but `except`.
  void send(int rank, const std::string& message);
  void flood(const std::string& message, int except = -1);
  /// Queues `message` unless an earlier message still waits: that neighbour does not read, and would not miss it.
  void send_if_idle(int rank, const std::string& message);
  void on_ready(const socket::Ready& ready);
  /// Sends what waits, as far as the kernel takes it. A neighbour for whom more than 4 MiB wait then is lost: it keeps
  /// this rank talking, and does not read.
  void flush();
  [[nodiscard]] bool idle() const noexcept;

  /// Adds time during which this thread ran and heard nothing; the ranks that were silent, or did not come, for `limit`
  /// are lost.
  void age(base::Duration ran, base::Duration limit);
  /// The longest that any rank has been silent for, or has been due.
  [[nodiscard]] base::Duration longest_silence() const noexcept;

  [[nodiscard]] std::vector<Heard> heard() { return std::exchange(heard_, {}); }
  [[nodiscard]] std::vector<Lost> lost() { return std::exchange(lost_, {}); }
  [[nodiscard]] std::set<int> ranks() const;

 private:
  struct Edge {
    socket::FramedChannel channel;
    base::Duration silent{0};
    bool watching_out = false;
    bool is_parting = false;  ///< nothing more is queued
  };
  using Edges = std::map<int, Edge>;

  Edges::iterator drop(Edges::iterator edge, std::string reason);

  socket::Poller& poller_;
  Edges edges_;
  std::map<int, base::Duration> expected_;   ///< for how long
  std::map<int, base::Duration> elsewhere_;  ///< silences of ranks that are neither neighbours nor expected
  bool is_patient_ = false;
  std::vector<Heard> heard_;
  std::vector<Lost> lost_;
};

}  // namespace syncopate::transport::membership
