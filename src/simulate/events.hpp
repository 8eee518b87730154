// Events: what simulations of one collective by events share: a queue in virtual time, ports, and the ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/require.hpp"
#include "simulate/network.hpp"

namespace syncopate::simulate {

/// Events by time; of equal times the one that was pushed first comes first.
template <class Event>
class EventQueue final {
 public:
  void push(double time_s, const Event& event) { queue_.push({time_s, number_++, event}); }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  /// The next event; its time is now.
  [[nodiscard]] Event pop() {
    const Entry entry = queue_.top();
    queue_.pop();
    now_s_ = entry.time_s;
    return entry.event;
  }
  [[nodiscard]] double now_s() const { return now_s_; }

 private:
  struct Entry {
    double time_s = 0;
    std::uint64_t number = 0;
    Event event;
    bool operator>(const Entry& other) const {
      return time_s != other.time_s ? time_s > other.time_s : number > other.number;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::uint64_t number_ = 0;
  double now_s_ = 0;
};

/// Every host's port out and port in. A message between hosts holds one of each.
class Ports final {
 public:
  explicit Ports(const Network& network) : out_s_(network.hosts()), in_s_(network.hosts()) {}

  /// When a message that may begin at `begin_s` and takes `taken_s` is through; it takes its turn at both ports.
  [[nodiscard]] double pass(std::uint32_t out, std::uint32_t in, double begin_s, double taken_s) {
    return out_s_[out] = in_s_[in] = std::max({begin_s, out_s_[out], in_s_[in]}) + taken_s;
  }

 private:
  std::vector<double> out_s_, in_s_;  ///< by host: when it falls free
};

/// When each rank was through with all its steps.
template <class Rank>
[[nodiscard]] std::vector<double> ends_of(const std::vector<Rank>& ranks) {
  std::vector<double> left_s;
  for (const Rank& rank : ranks) {
    base::require(rank.unfinished == 0, "a plan of {} ranks does not end", ranks.size());
    left_s.push_back(rank.left_s);
  }
  return left_s;
}

}  // namespace syncopate::simulate
