// Dial: reaches a listener, proves the secret to it, demands its proof, and only then reads from it.
#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/resource_quota.h>

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "server/rpc/message.hpp"
#include "server/rpc/proof.hpp"
#include "server/rpc/session.hpp"
#include "server/rpc/setting.hpp"
#include "syncopate/version.hpp"

namespace syncopate::server::rpc {

namespace {

/// How the listener answered a call.
struct Reply {
  bool is_in = false;
  std::string proof;      ///< of the listener, for an accepted caller
  std::string challenge;  ///< for a caller that is not accepted
  grpc::Status status;    ///< for a caller that is not accepted
};

std::string text_in(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : std::string(found->second.data(), found->second.size());
}

/// Keeps the process's first channel alive to its end. gRPC 1.51 shares one queue of reactions among all channels and
/// servers, and may abort when the last of them is destroyed while one of its threads still polls that queue.
void keep_for_good(const std::shared_ptr<grpc::Channel>& channel) {
  static const auto* const kept = new std::shared_ptr<grpc::Channel>(channel);
  static_cast<void>(kept);
}

/// One attempt, and the stream if it succeeds.
class Call final : public Session, public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Call(std::string address, base::Duration silence, std::shared_ptr<grpc::Channel> channel)
      : Session(std::move(address), silence), channel_(std::move(channel)), stub_(channel_) {}
  void say(const char* key, base::ConstBytes value) { context_.AddMetadata(key, base::text_of(value)); }
  static void begin(const std::shared_ptr<Call>& call) {
    call->self_ = call;
    keep_for_good(call->channel_);
    call->stub_.PrepareBidiStreamingCall(&call->context_, kMethod, {}, call.get());
    call->AddHold();  // writes begin outside of reactions, until `finish`
    call->StartCall();
  }
  [[nodiscard]] std::optional<Reply> await(base::Time deadline) {
    std::optional<Reply> reply;
    reply_.wait_until(
        deadline, [](const auto& known) { return known.has_value(); }, [&](const auto& known) { reply = known; });
    return reply;
  }
  /// Ends the attempt; returns when gRPC has released it.
  void drop() {
    seal();
    leave();
  }
  /// The listener has proved the secret too.
  void trust(const Hello& listener, StreamEvents events) {
    meet(listener.identity, listener.silence);
    open(std::move(events));
  }

  void OnReadInitialMetadataDone(bool is_right) override {
    if (!is_right) return seal();
    tell({.is_in = true,
          .proof = text_in(context_.GetServerInitialMetadata(), kProofKey),
          .challenge = {},
          .status = {}});
  }
  void OnReadDone(bool is_right) override { on_read(is_right); }
  void OnWriteDone(bool is_right) override { on_write(is_right); }
  void OnDone(const grpc::Status& status) override {
    tell({.is_in = false,
          .proof = {},
          .challenge = text_in(context_.GetServerTrailingMetadata(), kChallengeKey),
          .status = status});
    on_over(status.ok(),
            {ErrorKind::peer_lost, fmt::format("{} is lost: {}", other_end(),
                                               status.ok() ? "it left without a farewell" : status.error_message())});
  }

 private:
  void tell(Reply reply) {
    reply_.change([&](auto& known) {
      if (!known) known = std::move(reply);
    });
  }
  void begin_read(grpc::ByteBuffer* into) override { StartRead(into); }
  void begin_write(const grpc::ByteBuffer* from) override { StartWrite(from); }
  void finish() override { RemoveHold(); }
  void cancel() noexcept override { context_.TryCancel(); }
  void release() noexcept override { self_.reset(); }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  base::Guarded<std::optional<Reply>> reply_;
  std::shared_ptr<Call> self_;
};

/// One dial: attempts until the listener accepts this end, refuses it, or the time is over.
class Dialing final {
 public:
  Dialing(const std::string& address, const EndOptions& options)
      : options_(options),
        address_(parse_address(address)),
        deadline_(std::chrono::steady_clock::now() + options.patience),
        hello_(
            say_hello({.version = {}, .silence = options.silence, .identity = options.identity, .job = options.job})) {
    require_allowed(options, address_);
    quieten_grpc();
    grpc::ChannelArguments arguments;
    for (const auto& [name, value] : caller_settings(options)) arguments.SetInt(name, value);
    arguments.SetResourceQuota(grpc::ResourceQuota().Resize(kDialedBytes));
    channel_ = grpc::CreateCustomChannel(address_.target, caller_credentials(options, address_), arguments);
  }

  std::shared_ptr<Session> run(StreamEvents events) {
    while (std::chrono::steady_clock::now() < deadline_) {
      const auto call = std::make_shared<Call>(address_.text, options_.silence, channel_);
      say_all(*call);
      Call::begin(call);
      const auto reply = call->await(deadline_);
      const bool is_trusted = reply && reply->is_in && is_proof(reply->proof);
      if (is_trusted) {
        call->trust(theirs(), std::move(events));
        return call;
      }
      call->drop();
      if (reply) consider(*reply);
    }
    throw PeerLost(
        fmt::format("no parameter server answers at {} within {} ms{}; it must run there, be reachable "
                    "from this host, and have certificates by the same authority as this end, or none like it",
                    address_.text, options_.patience / std::chrono::milliseconds(1), last_));
  }

 private:
  void say_all(Call& call) {
    call.say(kHelloKey, hello_);
    if (!challenge_) return;
    call.say(kChallengeKey, *challenge_);
    call.say(kProofKey, prove(options_.secret, Role::caller, hello_, *challenge_));
  }
  [[nodiscard]] Hello theirs() const { return *read_hello(*challenge_); }
  [[nodiscard]] bool is_proof(const std::string& proof) const {
    return challenge_ && base::crypto::is_same(prove(options_.secret, Role::answerer, hello_, *challenge_),
                                               std::as_bytes(std::span(proof)));
  }

  /// Handles a reply to a caller that is not accepted: prepares the next attempt, or throws if none can succeed.
  void consider(const Reply& reply) {
    const std::string said = reply.status.error_message();
    const std::string why = readable(std::as_bytes(std::span(said)));
    if (reply.is_in || reply.status.error_code() == grpc::StatusCode::PERMISSION_DENIED) refuse_unproved(reply.is_in);
    switch (reply.status.error_code()) {
      case grpc::StatusCode::UNAUTHENTICATED:
        return take(reply.challenge);
      case grpc::StatusCode::FAILED_PRECONDITION:
        throw Mismatch(fmt::format("{}: {}; give both ends one version and one job", address_.text, why));
      case grpc::StatusCode::UNAVAILABLE:
        last_ = fmt::format(" (last: {})", why);
        challenge_.reset();
        channel_->WaitForStateChange(GRPC_CHANNEL_TRANSIENT_FAILURE, until_deadline());
        return;
      default:
        throw Mismatch(
            fmt::format("the program at {} is not a parameter server of this version: {}", address_.text, why));
    }
  }

  void take(const std::string& challenge) {
    const auto hello = read_hello(std::as_bytes(std::span(challenge)));
    if (!hello || ++challenges_ > kMostChallenges)
      throw Mismatch(fmt::format("the program at {} is not a parameter server: it sent no challenge", address_.text));
    if (hello->protocol != kProtocol || hello->version != version())
      throw Mismatch(
          fmt::format("{} runs Syncopate {} (protocol {}), this is Syncopate {} (protocol {}); use one "
                      "version everywhere",
                      address_.text, hello->version, hello->protocol, version(), kProtocol));
    challenge_.emplace();
    std::memcpy(challenge_->data(), challenge.data(), kHelloBytes);
  }

  [[noreturn]] void refuse_unproved(bool is_theirs) const {
    throw Unauthorized(is_theirs ? fmt::format("the program at {} does not know this job's secret", address_.text)
                                 : fmt::format("the parameter server at {} does not accept this process's secret; give "
                                               "both ends the same SYNCOPATE_SECRET_FILE",
                                               address_.text));
  }
  [[nodiscard]] std::chrono::system_clock::time_point until_deadline() const {
    const auto left = deadline_ - std::chrono::steady_clock::now();
    return std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
  }

  /// A listener whose challenges expire may be asked for this number; one that goes on is not a parameter server.
  static constexpr int kMostChallenges = 8;

  const EndOptions& options_;
  const Address address_;
  const base::Time deadline_;
  const HelloBytes hello_;
  std::shared_ptr<grpc::Channel> channel_;
  std::optional<HelloBytes> challenge_;
  int challenges_ = 0;
  std::string last_;
};

}  // namespace

std::unique_ptr<Stream> dial(const std::string& address, const EndOptions& options, StreamEvents events) {
  return stream_of(Dialing(address, options).run(std::move(events)));
}

}  // namespace syncopate::server::rpc
