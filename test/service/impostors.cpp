// Impostors: a listener without the secret, or one that is not a server, is named and never trusted.
#include <gtest/gtest.h>

#include <thread>

#include "service/raw_end.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;

const std::string kRight = end_named("server 0").secret;

/// A listener in the place of a server, on a thread that handles one call.
class Impostor final {
 public:
  using Part = std::function<void(const sockets::Descriptor& listener)>;
  explicit Impostor(Part part)
      : listener_(sockets::listen_on(sockets::Address::parse("127.0.0.1:0"))),
        thread_([this, part = std::move(part)] { part(listener_); }) {}
  [[nodiscard]] std::string address() const { return sockets::local_address(listener_).text(); }

 private:
  sockets::Descriptor listener_;
  std::jthread thread_;
};

std::string refusal_by(const Impostor::Part& part, base::Duration patience = 20s) {
  const Impostor impostor(part);
  EndOptions options = end_named("worker 0");
  options.patience = patience;
  return refusal_of(impostor.address(), options);
}

connect::Hello hello(std::string version = {}, const std::string& job = "a job") {
  return {.version = std::move(version), .group = number_of_job(job), .from = 0};
}

Impostor::Part answers(const connect::Hello& hello, const std::string& secret) {
  return [=](const sockets::Descriptor& listener) { std::ignore = RawEnd::answering(listener, hello, secret); };
}

/// Sends these bytes to its caller.
Impostor::Part sends(const std::string& bytes) {
  return [bytes](const sockets::Descriptor& listener) {
    await(listener, POLLIN);
    sockets::Channel channel(sockets::accept_from(listener));
    std::ignore = channel.write(std::as_bytes(std::span(bytes)));
    await(channel.socket(), POLLIN);
  };
}

TEST(Impostors, WithoutTheSecretAreNotTrusted) {
  EXPECT_EQ(refusal_by(answers(hello(), "another secret, long enough")), "Unauthorized");
  EXPECT_EQ(refusal_by(answers(hello(), "")), "Unauthorized");
}

TEST(Impostors, OfAnotherVersionOrJobAreNamed) {
  EXPECT_EQ(refusal_by(answers(hello("9.9"), kRight)), "Mismatch");
  connect::Hello other = hello();
  other.protocol = 9;
  EXPECT_EQ(refusal_by(answers(other, kRight)), "Mismatch");
  EXPECT_EQ(refusal_by(answers(hello({}, "another job"), kRight)), "Mismatch");
}

TEST(Impostors, ThatAreNotServersAreNamed) {
  EXPECT_EQ(refusal_by(sends("HTTP/1.1 400 Bad Request\r\n\r\n" + std::string(200, 'x'))), "Mismatch");
}

TEST(Impostors, ThatSendNothingAreGivenUpInTime) {
  base::Guarded<bool> is_done{false};
  EXPECT_EQ(refusal_by(
                [&](const sockets::Descriptor&) {
                  is_done.wait_until(
                      std::chrono::steady_clock::now() + 600ms, [](bool done) { return done; }, [](bool) {});
                },
                500ms),
            "PeerLost");
}

TEST(Servers, ThatSendMalformedFramesAreCutOffByName) {
  for (const std::string& bytes : {std::string(8, '\0'), frame_of(FrameKind::message, "early"),
                                   settings() + std::string("\xff\xff\xff\xff\2\0\0\0", 8)}) {
    const Impostor impostor([&](const sockets::Descriptor& listener) {
      RawEnd end = RawEnd::answering(listener, hello(), kRight);
      EXPECT_TRUE(end.is_in());
      end.write(bytes);
      EXPECT_NE(end.read_all().size(), 0U);
    });
    Record record;
    EndOptions options = end_named("worker 0");
    options.silence = 500ms;  // the impostor does not answer a close frame
    const auto stream = dial(impostor.address(), options, record.events());
    EXPECT_EQ(text_of(stream->peer()), "server 0");
    EXPECT_EQ(record.await_failure(), "Corrupt");
    EXPECT_EQ(record.messages(), 0U);
  }
}

}  // namespace
}  // namespace syncopate::server::streams
