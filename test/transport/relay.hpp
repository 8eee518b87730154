// A relay between two ranks: it forwards their bytes, and may change them.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "transport/ranks.hpp"

namespace syncopate::transport::test {

/// Listens, and forwards each connection to `to`. Calls `touch` with the bytes of data connections and their offset in
/// the caller's stream.
class Relay final {
 public:
  using Touch = std::function<void(std::size_t at, std::span<std::byte> bytes)>;

  Relay(socket::Address to, Touch touch)
      : to_(std::move(to)),
        touch_(std::move(touch)),
        listener_(socket::listen_on(socket::Address::parse("127.0.0.1:0"))) {
    address = socket::local_address(listener_);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  socket::Address address;

 private:
  struct Way {
    socket::Channel caller, called;
    std::size_t sent = 0;  ///< by the caller
    bool is_data = false;
    bool is_over = false;
  };

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> files{{listener_.number(), POLLIN, 0}};
      for (const auto& way : ways_)
        for (const socket::Channel* end : {&way->caller, &way->called}) files.push_back({end->number(), POLLIN, 0});
      ::poll(files.data(), files.size(), 20);
      if (socket::Descriptor caller = socket::accept_from(listener_)) let_in(std::move(caller));
      for (const auto& way : ways_) {
        forward(way->caller, way->called, way.get());
        forward(way->called, way->caller, nullptr);
      }
      std::erase_if(ways_, [](const auto& way) { return way->is_over; });
    }
  }
  void let_in(socket::Descriptor caller) {
    auto way = std::make_unique<Way>();
    way->caller = socket::Channel(std::move(caller));
    way->called = socket::Channel(socket::start_connection(to_, {}));
    pollfd one{way->called.number(), POLLOUT, 0};
    ::poll(&one, 1, 10'000);
    ways_.push_back(std::move(way));
  }
  void forward(socket::Channel& from, socket::Channel& to, Way* sent_by_caller) {
    if (!from || !to) return;
    std::array<std::byte, 4096> bytes;
    const socket::Moved moved = from.read(std::span<std::byte>(bytes));
    std::span<std::byte> rest = std::span(bytes).first(moved.bytes);
    if (sent_by_caller != nullptr) look(*sent_by_caller, rest);
    while (!rest.empty()) {
      const socket::Moved passed = to.write(std::span<const std::byte>(rest));
      if (passed.outcome == socket::Moved::Outcome::closed) break;
      rest = rest.subspan(passed.bytes);
      pollfd one{to.number(), POLLOUT, 0};
      if (!rest.empty()) ::poll(&one, 1, 10'000);
    }
    if (moved.outcome != socket::Moved::Outcome::closed) return;
    from.close();
    to.close();
    for (const auto& way : ways_) way->is_over = way->is_over || !way->caller;
  }
  void look(Way& way, std::span<std::byte> bytes) const {
    constexpr std::size_t kPurposeAt = 10;
    if (way.sent <= kPurposeAt && way.sent + bytes.size() > kPurposeAt)
      way.is_data = bytes[kPurposeAt - way.sent] == static_cast<std::byte>(connect::Purpose::data);
    if (way.is_data) touch_(way.sent, bytes);
    way.sent += bytes.size();
  }

  socket::Address to_;
  Touch touch_;
  socket::Descriptor listener_;
  std::vector<std::unique_ptr<Way>> ways_;
  std::jthread thread_;
};

}  // namespace syncopate::transport::test
