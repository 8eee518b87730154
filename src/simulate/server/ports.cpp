// Ports: the order of sends and receives at each port, and the times of arrival.
#include "simulate/server/ports.hpp"

#include <algorithm>
#include <utility>

namespace syncopate::simulate::server {

void Events::at(double when_s, std::function<void()> happens) {
  queue_.push({std::max(when_s, now_s_), numbered_++, std::move(happens)});
}

void Events::run() {
  while (!queue_.empty()) {
    now_s_ = queue_.top().when_s;
    const auto happens =
        std::move(const_cast<Event&>(queue_.top()).happens);  // the queue's order does not depend on it
    queue_.pop();
    happens();
  }
}

Ports::Ports(Events& events, Links links) : events_(events), links_(std::move(links)), ports_(links_.slowness.size()) {}

void Ports::send(Parcel parcel) {
  if (parcel.from == parcel.to) {
    const double seconds = links_.intra ? links_.intra->alpha_s + parcel.bytes * links_.intra->beta_s_per_byte : 0.0;
    events_.at(events_.now_s() + seconds, std::move(parcel.arrives));
    return;
  }
  const std::size_t host = parcel.from;
  Port& port = ports_[host];
  const std::size_t number = parcel.stream;
  Stream& stream = port.streams[number];
  const bool was_idle = stream.waiting.empty();
  stream.waiting.emplace(parcel.priority, std::move(parcel));
  if (was_idle) {
    stream.tag = std::max(stream.tag, port.tag);
    line_up(port, number);
  }
  // Starts after all events of this time, because a parcel queued first need not leave first.
  if (!std::exchange(port.is_sending, true)) events_.at(events_.now_s(), [this, host] { send_next(host); });
}

void Ports::line_up(Port& port, std::size_t stream) {
  port.turns.emplace(std::pair(port.streams[stream].tag, port.ordered++), stream);
}

void Ports::send_next(std::size_t host) {
  Port& port = ports_[host];
  if (port.turns.empty()) {  // a stream that had more than its share before the pause owes nothing after it
    port.is_sending = false;
    port.tag = 0;
    for (auto& [number, stream] : port.streams) stream.tag = 0;
    return;
  }
  const std::size_t number = port.turns.begin()->second;
  port.turns.erase(port.turns.begin());
  Stream& stream = port.streams[number];
  Parcel parcel = std::move(stream.waiting.begin()->second);
  stream.waiting.erase(stream.waiting.begin());
  port.tag = stream.tag;
  stream.tag += parcel.bytes;
  if (!stream.waiting.empty()) line_up(port, number);
  const double begin_s = events_.now_s(), alpha_s = links_.inter.alpha_s;
  const double taken_s = parcel.bytes * links_.inter.beta_s_per_byte * links_.slowness[host];
  events_.at(begin_s + alpha_s, [this, moved = std::move(parcel)]() mutable { receive(std::move(moved)); });
  events_.at(begin_s + alpha_s + taken_s, [this, host] { send_next(host); });
}

void Ports::receive(Parcel parcel) {
  Port& port = ports_[parcel.to];
  // The last byte arrives no earlier than it has left a slower sender.
  const double own_s = parcel.bytes * links_.inter.beta_s_per_byte * links_.slowness[parcel.to];
  const double sent_s = events_.now_s() + parcel.bytes * links_.inter.beta_s_per_byte * links_.slowness[parcel.from];
  port.receives_until_s = std::max(std::max(port.receives_until_s, events_.now_s()) + own_s, sent_s);
  events_.at(port.receives_until_s, std::move(parcel.arrives));
}

}  // namespace syncopate::simulate::server
