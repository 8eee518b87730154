// Streams that break while a worker sends its first requests: it sends again what was lost.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "service/job.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;
namespace sockets = transport::socket;

/// Forwards connections to a server. The first one breaks after a number of bytes of the caller.
class Cutter final {
 public:
  Cutter(const std::string& to, std::size_t bytes) : to_(to), left_(bytes) {
    static int cutters = 0;
    address_ = "@syncopate-cutter-" + std::to_string(getpid()) + "-" + std::to_string(++cutters);
    listener_ = sockets::listen_on(sockets::Address::named(address_.substr(1)));
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested())
        if (is_due(listener_, POLLIN, 10ms)) forward(stop, sockets::accept_from(listener_));
    });
  }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] bool has_cut() const { return has_cut_; }

 private:
  static bool is_due(const sockets::Descriptor& socket, short events, std::chrono::milliseconds time) {
    pollfd entry{.fd = socket.number(), .events = events, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(time.count())) > 0;
  }
  void forward(const std::stop_token& stop, const sockets::Descriptor& caller) {
    const sockets::Descriptor server = sockets::start_connection(sockets::Address::named(to_.substr(1)), {});
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> entries{pollfd{.fd = caller.number(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = server.number(), .events = POLLIN, .revents = 0}};
      if (::poll(entries.data(), entries.size(), 10) <= 0) continue;
      if (entries[0].revents != 0 && !move(caller, server, has_cut_ ? ~std::size_t{0} : left_)) return;
      if (entries[1].revents != 0 && !move(server, caller, ~std::size_t{0})) return;
      if (!has_cut_ && left_ == 0) {
        has_cut_ = true;
        return;
      }
    }
  }
  /// Returns false at the end.
  bool move(const sockets::Descriptor& from, const sockets::Descriptor& to, std::size_t most) {
    std::array<char, 65536> piece;
    const ssize_t count = ::read(from.number(), piece.data(), std::min(piece.size(), most));
    if (count <= 0) return count < 0 && errno == EAGAIN;
    if (most == left_) left_ -= static_cast<std::size_t>(count);
    for (ssize_t at = 0; at < count;) {
      if (!is_due(to, POLLOUT, 60s)) return false;
      const ssize_t moved = ::write(to.number(), piece.data() + at, static_cast<std::size_t>(count - at));
      if (moved < 0 && errno != EAGAIN) return false;
      at += std::max<ssize_t>(moved, 0);
    }
    return true;
  }

  const std::string to_;
  std::size_t left_;  ///< bytes of the caller until the cut
  std::atomic<bool> has_cut_ = false;
  std::string address_;
  sockets::Descriptor listener_;
  std::jthread thread_;
};

WorkerOptions one_worker() { return {.servers = {}, .workers = 1, .optimizer = "momentum", .timeout = 20s}; }

/// The weights and the optimizer's state of a job of three steps.
KeptTables earlier_run() {
  const Servers servers(1);
  Program program(servers, one_worker());
  program.start();
  for (int step = 0; step < 3; ++step) program.step();
  return program.worker().gather();
}

constexpr std::size_t kTableBytes = kLarge * sizeof(float);

class Cuts : public testing::TestWithParam<std::size_t> {};

TEST_P(Cuts, OfAStreamThatCarriesTheFirstWeightsAndTheirStateAreRepaired) {
  const KeptTables earlier = earlier_run();
  const auto end_of = [&](Program& program) {
    program.start(earlier);
    program.go_on(6);
    return program.weights(1);
  };
  const Servers servers(1);
  Program whole(servers, one_worker());
  const std::vector<float> expected = end_of(whole);
  const Servers others(1);
  const Cutter cutter(others.addresses()[0], GetParam());
  WorkerOptions options = one_worker();
  options.servers = {cutter.address()};
  Program cut(options);
  EXPECT_EQ(end_of(cut), expected);
  EXPECT_TRUE(cutter.has_cut());
}

/// In the handshake, in the setup, in the state, and in the weights.
INSTANTIATE_TEST_SUITE_P(Servers, Cuts,
                         testing::Values(100, 500, 20'000, kTableBytes / 3, kTableBytes * 11 / 10,
                                         kTableBytes * 19 / 10),
                         [](const auto& tested) { return std::to_string(tested.index); });

}  // namespace
}  // namespace syncopate
