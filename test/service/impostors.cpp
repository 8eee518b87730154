// Impostors: a listener without the secret, or one that is not a server, is named and never trusted.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>

#include "service/stranger.hpp"
#include "syncopate/version.hpp"

namespace syncopate::server::rpc {
namespace {

using namespace test;

/// An impostor's behaviour in one call.
struct Lines {
  std::optional<std::string> challenge;  ///< refuses the call with it
  std::optional<std::string> proof;      ///< accepts the caller with it
  std::optional<grpc::Status> status;    ///< ends the call with it
  std::string message;                   ///< sends it
};

class Impostor final : public grpc::CallbackGenericService {
 public:
  using Script = std::function<Lines(const Metadata&)>;

  explicit Impostor(Script script) : script_(std::move(script)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~Impostor() override { server_->Shutdown(std::chrono::system_clock::now()); }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor(grpc::GenericCallbackServerContext* context, const Lines& lines) {
      if (lines.challenge) context->AddTrailingMetadata(kChallengeKey, *lines.challenge);
      if (lines.challenge) {
        end({grpc::StatusCode::UNAUTHENTICATED, ""});
      } else if (lines.status) {
        end(*lines.status);
      } else if (lines.proof) {
        context->AddInitialMetadata(kProofKey, *lines.proof);
        StartSendInitialMetadata();
        message_ = buffer_of(lines.message);
        if (!lines.message.empty()) StartWrite(&message_);
      }
    }
    void OnCancel() override { end(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

   private:
    void end(const grpc::Status& status) {
      if (!has_ended_.exchange(true)) Finish(status);
    }
    std::atomic<bool> has_ended_{false};
    grpc::ByteBuffer message_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    Metadata metadata;
    for (const auto& [key, value] : context->client_metadata())
      metadata.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
    return new Reactor(context, script_(metadata));
  }

  const Script script_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

const std::string kSecret = end_named("").secret;

std::string challenge_of(const Hello& hello) { return text_of(say_hello(hello)); }
Hello own() { return {.version = {}, .silence = 20s, .identity = "server 0", .job = {}}; }

/// Challenges, and accepts a caller that answers, with a proof by that secret and role.
Impostor::Script letting_in(const std::string& secret, Role role, const std::string& message = {}) {
  return [=](const Metadata& metadata) -> Lines {
    if (metadata.count(kProofKey) == 0)
      return {.challenge = challenge_of(own()), .proof = {}, .status = {}, .message = {}};
    const HelloBytes caller = hello_in(metadata.find(kHelloKey)->second);
    const HelloBytes challenge = hello_in(metadata.find(kChallengeKey)->second);
    return {
        .challenge = {}, .proof = text_of(prove(secret, role, caller, challenge)), .status = {}, .message = message};
  };
}

std::string refusal_by(Impostor::Script script, base::Duration patience = 20s) {
  const Impostor impostor(std::move(script));
  EndOptions options = end_named("worker 0");
  options.patience = patience;
  return refusal_of(impostor.address(), options);
}

TEST(Impostors, WithoutTheSecretAreNotBelieved) {
  EXPECT_EQ(refusal_by(letting_in("another secret, long enough", Role::answerer)), "Unauthorized");
  EXPECT_EQ(refusal_by(letting_in(kSecret, Role::caller)), "Unauthorized") << "the caller's own proof, sent back";
  EXPECT_EQ(refusal_by([](const Metadata&) -> Lines {
              return {{}, std::string(32, '\0'), {}, {}};
            }),
            "Unauthorized")
      << "lets in without a challenge";
  EXPECT_EQ(refusal_by([](const Metadata& metadata) -> Lines {
              if (metadata.count(kProofKey) == 0) return {challenge_of(own()), {}, {}, {}};
              return {{}, "", {}, {}};
            }),
            "Unauthorized");
}

TEST(Impostors, GetNoProofBeforeTheyChallenge) {
  base::Guarded<std::vector<Metadata>> calls;
  EXPECT_EQ(refusal_by([&](const Metadata& metadata) -> Lines {
              calls.with([&](auto& all) { all.push_back(metadata); });
              return {{}, std::string(32, 'x'), {}, {}};
            }),
            "Unauthorized");
  calls.with([](const auto& all) {
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].count(kProofKey), 0U);
    EXPECT_EQ(all[0].count(kHelloKey), 1U);
  });
}

TEST(Impostors, ThatAreNoServersAreNamed) {
  EXPECT_EQ(refusal_by([](const Metadata&) -> Lines {
              return {challenge_of(own()), {}, {}, {}};
            }),
            "Mismatch")
      << "challenges for ever";
  EXPECT_EQ(refusal_by([](const Metadata&) -> Lines { return {"a challenge", {}, {}, {}}; }), "Mismatch");
  EXPECT_EQ(refusal_by([](const Metadata&) -> Lines {
              return {{}, {}, grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "what?"), {}};
            }),
            "Mismatch");
  EXPECT_EQ(refusal_by([](const Metadata&) -> Lines { return {{}, {}, grpc::Status::OK, {}}; }), "Mismatch");
}

TEST(Impostors, OfAnotherVersionAreNamed) {
  Hello other = own();
  other.version = "9.9";
  EXPECT_EQ(refusal_by([&](const Metadata&) -> Lines { return {challenge_of(other), {}, {}, {}}; }), "Mismatch");
  other = own();
  other.protocol = 9;
  EXPECT_EQ(refusal_by([&](const Metadata&) -> Lines { return {challenge_of(other), {}, {}, {}}; }), "Mismatch");
}

TEST(Impostors, ThatSayNothingAreGivenUpInTime) {
  EXPECT_EQ(refusal_by([](const Metadata&) -> Lines { return {}; }, 500ms), "PeerLost");
}

TEST(Servers, ThatSendWhatIsNoMessageAreCutOffByName) {
  for (const std::string& message :
       {std::string(1, '\0'), std::string("\7text"), std::string(std::size_t{3} << 20, '\1')}) {
    const Impostor impostor(letting_in(kSecret, Role::answerer, message));
    Record record;
    EndOptions options = end_named("worker 0");
    options.silence = 500ms;  // the impostor does not answer a farewell
    const auto stream = dial(impostor.address(), options, record.events());
    EXPECT_EQ(stream->peer(), "server 0");
    EXPECT_EQ(record.await_failure(), "Corrupt");
    EXPECT_EQ(record.messages(), 0U);
  }
}

}  // namespace
}  // namespace syncopate::server::rpc
