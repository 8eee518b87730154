// Both ends of streams in one process, with a record of all events on each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "server/streams/streams.hpp"

namespace syncopate::server::streams::test {

using namespace std::chrono_literals;

/// A limit that only a hang reaches.
inline base::Time at_last() { return std::chrono::steady_clock::now() + 60s; }

inline Payload body_of(std::string text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, std::as_bytes(std::span(*owner))};
}
inline base::ConstBytes head_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(base::ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Records the events on one end of a stream.
class Record final {
 public:
  using Reaction = std::function<void(const std::string&)>;

  /// `reaction` is called with each message before it is recorded.
  [[nodiscard]] StreamEvents events(Reaction reaction = {}) {
    return {
        .received =
            [this, reaction = std::move(reaction)](const Payload& message) {
              std::string text = text_of(message.bytes);
              if (reaction) reaction(text);
              const bool is_aligned = reinterpret_cast<std::uintptr_t>(message.bytes.data()) % kMessageAlignment == 0;
              seen_.change([&](Seen& seen) {
                seen.are_aligned = seen.are_aligned && is_aligned;
                seen.came_late = seen.came_late || !seen.endings.empty();
                seen.messages.push_back(std::move(text));
              });
            },
        .ended = [this](const Ending& ending) { seen_.change([&](Seen& seen) { seen.endings.push_back(ending); }); }};
  }
  /// The first `count` messages; fewer if the stream ended before.
  [[nodiscard]] std::vector<std::string> await_messages(std::size_t count) {
    std::vector<std::string> messages;
    const bool in_time = seen_.wait_until(
        at_last(), [&](const Seen& seen) { return seen.messages.size() >= count || !seen.endings.empty(); },
        [&](const Seen& seen) { messages = seen.messages; });
    EXPECT_TRUE(in_time) << "hangs";
    return messages;
  }
  [[nodiscard]] Ending await_ending() {
    Ending ending;
    const bool in_time = seen_.wait_until(
        at_last(), [](const Seen& seen) { return !seen.endings.empty(); },
        [&](const Seen& seen) { ending = seen.endings.front(); });
    EXPECT_TRUE(in_time) << "hangs";
    return ending;
  }
  /// The kind of its error; "" for an end in order.
  [[nodiscard]] std::string await_failure() {
    const Ending ending = await_ending();
    return ending.failure ? std::string(name_of(*ending.failure)) : "";
  }
  [[nodiscard]] std::size_t endings() const {
    return seen_.with([](const Seen& seen) { return seen.endings.size(); });
  }
  [[nodiscard]] std::size_t messages() const {
    return seen_.with([](const Seen& seen) { return seen.messages.size(); });
  }
  [[nodiscard]] bool are_aligned() const {
    return seen_.with([](const Seen& seen) { return seen.are_aligned; });
  }
  [[nodiscard]] bool came_late() const {
    return seen_.with([](const Seen& seen) { return seen.came_late; });
  }

 private:
  struct Seen {
    std::vector<std::string> messages;
    std::vector<Ending> endings;
    bool are_aligned = true;
    bool came_late = false;
  };
  base::Guarded<Seen> seen_;
};

/// "worker 3", "server 0", "observer".
inline Identity identity_named(const std::string& text) {
  using Role = Identity::Role;
  if (text == "observer") return {.role = Role::observer};
  return {.role = text.starts_with("worker ") ? Role::worker : Role::server, .index = std::stoul(text.substr(7))};
}

inline EndOptions end_named(const std::string& identity) {
  return {.self = identity_named(identity),
          .job = "a job",
          .secret = "a secret of sufficient length",
          .silence = 20s,
          .patience = 20s,
          .log = {.level = LogLevel::off, .sink = {}}};
}

/// A stream with streams of its own.
class Caller final : public Stream {
 public:
  Caller(const std::string& address, const EndOptions& options, StreamEvents events)
      : streams_(options),
        stream_(streams_.dial({.address = address, .patience = options.patience}, std::move(events))) {}
  void end() override { stream_->end(); }
  void send(std::uint64_t priority, base::ConstBytes head, Payload body) override {
    stream_->send(priority, head, std::move(body));
  }
  void close(std::string_view error) override { stream_->close(error); }
  [[nodiscard]] const Identity& peer() const noexcept override { return stream_->peer(); }

 private:
  Streams streams_;
  const std::unique_ptr<Stream> stream_;  ///< ends first
};

inline std::unique_ptr<Stream> dial(const std::string& address, const EndOptions& options, StreamEvents events) {
  return std::make_unique<Caller>(address, options, std::move(events));
}

/// Streams that a listener accepted, with a record of each.
class Server final {
 public:
  /// `reaction` is called with each message and its stream.
  using Reaction = std::function<void(Stream& stream, const std::string& message)>;

  explicit Server(const std::vector<std::string>& addresses = {"127.0.0.1:0"},
                  EndOptions options = end_named("server 0"), Reaction reaction = {})
      : streams_(std::make_unique<Streams>(options, addresses,
                                           [this, reaction = std::move(reaction)](std::unique_ptr<Stream> stream) {
                                             Record* const record = new Record;
                                             Stream* const raw = stream.get();
                                             accepted_.change([&](auto& accepted) {
                                               accepted.push_back({std::unique_ptr<Record>(record), std::move(stream)});
                                             });
                                             return record->events([raw, reaction](const std::string& message) {
                                               if (reaction) reaction(*raw, message);
                                             });
                                           })) {}
  ~Server() {
    std::vector<Accepted> gone = accepted_.with([](auto& accepted) { return std::exchange(accepted, {}); });
    for (Accepted& accepted : gone) accepted.stream.reset();
    streams_.reset();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const std::string& address(std::size_t index = 0) const { return streams_->addresses()[index]; }
  /// The `index`-th accepted stream; waits for it.
  [[nodiscard]] Stream& stream(std::size_t index = 0) { return *await(index).stream; }
  [[nodiscard]] Record& record(std::size_t index = 0) { return *await(index).record; }
  [[nodiscard]] std::size_t accepted() {
    return accepted_.with([](const auto& accepted) { return accepted.size(); });
  }
  void drop(std::size_t index) {
    auto stream = accepted_.with([&](auto& accepted) { return std::move(accepted[index].stream); });
    stream.reset();
  }
  void stop() { streams_.reset(); }

 private:
  struct Accepted {
    std::unique_ptr<Record> record;
    std::unique_ptr<Stream> stream;
  };
  struct Found {
    Record* record;
    Stream* stream;
  };
  [[nodiscard]] Found await(std::size_t index) {
    Found found{};
    const bool in_time = accepted_.wait_until(
        at_last(), [&](const auto& accepted) { return accepted.size() > index; },
        [&](const auto& accepted) {
          found = {accepted[index].record.get(), accepted[index].stream.get()};
        });
    if (!in_time) throw Timeout("no stream was accepted");
    return found;
  }

  base::Guarded<std::vector<Accepted>> accepted_;
  std::unique_ptr<Streams> streams_;
};

/// The kind of the error that `dial` throws; "" if it reaches the address.
inline std::string refusal_of(const std::string& address, const EndOptions& options) {
  try {
    static_cast<void>(dial(address, options, {}));
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(address.substr(0, address.rfind(':'))), std::string::npos) << error.what();
    return std::string(name_of(error.kind()));
  }
  return "";
}

}  // namespace syncopate::server::streams::test
