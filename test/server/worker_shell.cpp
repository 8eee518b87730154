// A worker's shell: what it sends on a stream that replaces another, and when.
#include "server/process/worker_shell.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/guarded.hpp"
#include "server/job/setup.hpp"
#include "server/sent_bytes.hpp"
#include "set_clock.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

using namespace std::chrono_literals;

/// The messages that a server has received on a stream.
struct Received {
  base::Guarded<std::vector<WorkerMessage>> messages;
  std::function<void()> at_first_request{};  ///< called once, in the `send` of the first message after the setup

  template <class Kind>
  [[nodiscard]] std::size_t of() const {
    return messages.with([](const auto& all) {
      return static_cast<std::size_t>(
          std::ranges::count_if(all, [](const auto& message) { return std::holds_alternative<Kind>(message); }));
    });
  }
};

class Recorder final : public streams::Stream {
 public:
  explicit Recorder(Received& received) : received_(received) {}
  void end() override {}
  void close(std::string_view) override {}
  [[nodiscard]] const streams::Identity& peer() const noexcept override { return peer_; }
  void send(std::uint64_t, base::ConstBytes head, Payload) override {
    const WorkerMessage message = worker_message_of({{}, head});
    received_.messages.with([&](auto& all) { all.push_back(message); });
    if (std::holds_alternative<Hello>(message)) return;
    if (const auto act = std::exchange(received_.at_first_request, nullptr)) act();
  }

 private:
  Received& received_;
  const streams::Identity peer_{.role = streams::Identity::Role::server};
};

/// A worker and its only server, which the test plays.
class AWorkerShell : public testing::Test {
 protected:
  /// The server answers the dial, by a further stream.
  void answer(Received& received) {
    events_ = std::exchange(dialled_, {}).reached(std::make_unique<Recorder>(received));
  }
  void welcome() const { deliver(Welcome{.origin = 7}); }
  /// Weights that contain this number of steps.
  void send_weights(Clock steps = 0) const {
    const auto values = std::make_shared<std::vector<float>>(4);
    deliver(Weights{.least = steps, .last = steps, .values = {values, std::as_bytes(std::span(*values))}});
  }
  void deliver(const ServerMessage& message) const { events_.received(sent_bytes(message)); }
  void lose() const { events_.ended({ErrorKind::peer_lost, "it broke"}); }
  void admit() {
    shell_.turn();
    answer(first_);
    shell_.introduce(setup_, {Buffer(std::span(weights_))}, {});
    while (!shell_.is_admitted()) welcome();
  }

  const server::Setup setup_{.tables = {{"weights", 4}}, .workers = 1, .servers = 1, .optimizer = "sgd"};
  std::vector<float> weights_ = std::vector<float>(4);
  base::Time now_{100s};
  Received first_, second_;
  streams::DialEvents dialled_;
  streams::StreamEvents events_;
  WorkerShell shell_{{.servers = {"@server"}, .timeout = 10s, .process = 1, .log = {.level = LogLevel::off}},
                     [this](std::size_t, streams::DialEvents events) { dialled_ = std::move(events); },
                     [] {},
                     std::make_unique<test::SetClock>(now_)};
};

TEST_F(AWorkerShell, TellsEachServerTheNumberOfAllBeforeItBegins) {
  admit();
  EXPECT_EQ(first_.of<Hello>(), 2);
}

/// The stream breaks and is replaced while the first requests are sent: they are sent again, and not before all have
/// been sent once.
TEST_F(AWorkerShell, RepeatsItsFirstRequestsOnAStreamThatReplacesTheirs) {
  admit();
  std::future<void> replacing;
  first_.at_first_request = [&] {
    replacing = std::async(std::launch::async, [&] {
      lose();
      shell_.turn();
      answer(second_);
      welcome();
    });
    EXPECT_EQ(replacing.wait_for(100ms), std::future_status::timeout) << "the welcome must not take effect here";
    EXPECT_EQ(second_.of<FirstValues>(), 0);
  };
  shell_.begin();
  replacing.get();
  EXPECT_EQ(second_.of<Hello>(), 1);
  EXPECT_EQ(second_.of<FirstValues>(), 1);
}

TEST_F(AWorkerShell, SendsNothingOnAStreamBeforeItsServerHasAnswered) {
  admit();
  shell_.begin();
  send_weights();
  lose();
  shell_.turn();
  answer(second_);
  std::vector<float> gradient(4);
  shell_.tables().update(0, gradient, {1, 1});
  EXPECT_EQ(second_.of<Push>(), 0);
  welcome();
  EXPECT_EQ(second_.of<Push>(), 1);
}

TEST_F(AWorkerShell, IgnoresWhatComesBeforeTheWelcome) {
  admit();
  shell_.begin();
  send_weights();
  std::vector<float> gradient(4);
  shell_.tables().update(0, gradient, {1, 1});
  shell_.tables().end_step({1, 1});
  lose();
  shell_.turn();
  answer(second_);
  send_weights(1);
  EXPECT_FALSE(shell_.tables().may_read(0)) << "meant for the process before this one";
  welcome();
  EXPECT_EQ(second_.of<Push>(), 1);
  send_weights(1);
  EXPECT_TRUE(shell_.tables().may_read(0));
}

TEST_F(AWorkerShell, ReportsItsEndToAServerThatItWasReaching) {
  admit();
  shell_.begin();
  lose();
  shell_.turn();
  answer(second_);
  shell_.leave();
  EXPECT_EQ(second_.of<Finish>(), 0);
  welcome();
  EXPECT_EQ(second_.of<Finish>(), 1);
}

TEST_F(AWorkerShell, DialsUntilTheTimeoutAndThenNamesTheServerAndTheCause) {
  shell_.turn();
  for (int attempt = 0; attempt < 3; ++attempt) {
    now_ += 4s;
    std::exchange(dialled_, {}).failed(std::make_exception_ptr(PeerLost("no server answers")));
    EXPECT_EQ(shell_.is_whole(), attempt < 2);
    shell_.turn();
    EXPECT_EQ(dialled_.failed != nullptr, attempt < 2);
  }
  try {
    shell_.require_whole();
    FAIL();
  } catch (const PeerLost& error) {
    EXPECT_STREQ(error.what(), "server 0 at @server has been out of reach for 12.0 s: no server answers");
  }
}

}  // namespace
}  // namespace syncopate::server
