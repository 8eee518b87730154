// Ports: messages between hosts in virtual time, through one full-duplex port of each host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "syncopate/cluster.hpp"

namespace syncopate::simulate::server {

/// A queue of events by time; events at the same time run in the order in which they were added.
class Events final {
 public:
  [[nodiscard]] double now_s() const noexcept { return now_s_; }
  void at(double when_s, std::function<void()> happens);
  void run();  ///< until the queue is empty

 private:
  struct Event {
    double when_s = 0;
    std::uint64_t number = 0;
    std::function<void()> happens;
    bool operator<(const Event& other) const {  // the queue's top is its greatest
      return when_s != other.when_s ? when_s > other.when_s : number > other.number;
    }
  };
  std::priority_queue<Event> queue_;
  double now_s_ = 0;
  std::uint64_t numbered_ = 0;
};

/// The time of events, for production code.
class EventClock final : public base::Clock {
 public:
  explicit EventClock(const Events& events) : events_(events) {}
  [[nodiscard]] base::Time now() const override { return base::Time(base::from_seconds(events_.now_s())); }

 private:
  const Events& events_;
};

struct Parcel {
  std::size_t from = 0, to = 0;  ///< hosts
  std::size_t stream = 0;        ///< one for each pair of sender and receiver processes on these hosts
  std::uint64_t priority = 0;    ///< within a stream lower priorities leave first, equal ones in order
  double bytes = 0;
  std::function<void()> arrives;
};

/// Streams share the sender's port by bytes, as TCP's do (start-time fair queuing; Goyal, Vin & Cheng, SIGCOMM 1996),
/// whole parcels at a time. The switch between the ports never blocks: a parcel occupies the sender's port for alpha +
/// n beta, and from alpha after its beginning, as soon as it is free, the receiver's for n beta. Within a host no port
/// is needed.
class Ports final {
 public:
  struct Links {
    LinkCost inter;
    std::optional<LinkCost> intra;  ///< nullopt: takes no time
    std::vector<double> slowness;   ///< by host
  };
  Ports(Events& events, Links links);
  void send(Parcel parcel);

 private:
  struct Stream {
    std::multimap<std::uint64_t, Parcel> waiting;  ///< by priority
    double tag = 0;                                ///< virtual start time (in bytes) of the stream's next parcel
  };
  struct Port {
    std::map<std::size_t, Stream> streams;
    std::map<std::pair<double, std::uint64_t>, std::size_t> turns;  ///< (tag, order) -> stream with waiting parcels
    double tag = 0;                                                 ///< tag of the stream that was served last
    std::uint64_t ordered = 0;
    bool is_sending = false;
    double receives_until_s = 0;
  };
  static void line_up(Port& port, std::size_t stream);
  void send_next(std::size_t host);
  void receive(Parcel parcel);

  Events& events_;
  const Links links_;
  std::vector<Port> ports_;
};

}  // namespace syncopate::simulate::server
