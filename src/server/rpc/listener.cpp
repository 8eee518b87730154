// Listener: serves at addresses of this host, and hands over a stream for each caller that has proved the job's secret.
#include "server/rpc/listener.hpp"

#include <fmt/format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "base/fork.hpp"
#include "base/require.hpp"
#include "server/rpc/proof.hpp"
#include "server/rpc/session.hpp"
#include "server/rpc/setting.hpp"
#include "server/rpc/socket/acceptor.hpp"
#include "syncopate/version.hpp"

namespace syncopate::server::rpc {

namespace {

using Context = grpc::GenericCallbackServerContext;

base::Time now() { return std::chrono::steady_clock::now(); }

/// Refuses a caller; nothing is read from it.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  Refusal(grpc::StatusCode code, const std::string& why) { Finish({code, why}); }
  void OnDone() override { delete this; }
};

/// The call of a caller that has proved the secret.
class Answer final : public Session, public grpc::ServerGenericBidiReactor {
 public:
  Answer(Context* context, const Hello& caller, const EndOptions& options)
      : Session(context->peer() == "unix:" ? "this host" : context->peer(), options.silence), context_(context) {
    meet(caller.identity, caller.silence);
  }
  /// The reactor of the call. gRPC holds it until `OnDone`; the program holds it as the stream.
  static grpc::ServerGenericBidiReactor* begin(const std::shared_ptr<Answer>& answer, const Accepted& accepted) {
    answer->self_ = answer;
    answer->StartSendInitialMetadata();
    answer->offer([&] { return answer->taken(accepted); });
    return answer.get();
  }

  void OnReadDone(bool is_right) override { on_read(is_right); }
  void OnWriteDone(bool is_right) override { on_write(is_right); }
  void OnDone() override {
    on_over(true, {ErrorKind::peer_lost, fmt::format("the connection to {} broke", other_end())});
  }

 private:
  StreamEvents taken(const Accepted& accepted) {
    try {
      return accepted(stream_of(self_));
    } catch (const std::exception& error) {
      close(error.what());
      return {};
    }
  }

  void begin_read(grpc::ByteBuffer* into) override { StartRead(into); }
  void begin_write(const grpc::ByteBuffer* from) override { StartWrite(from); }
  void finish() override { Finish(grpc::Status::OK); }
  void cancel() noexcept override { context_->TryCancel(); }
  void release() noexcept override { self_.reset(); }

  Context* const context_;  ///< gRPC's, until `OnDone` returns
  std::shared_ptr<Answer> self_;
};

std::optional<HelloBytes> find(const Context& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end() || found->second.size() != kHelloBytes) return std::nullopt;
  HelloBytes bytes;
  std::memcpy(bytes.data(), found->second.data(), bytes.size());
  return bytes;
}

base::ConstBytes proof_in(const Context& context) {
  const auto found = context.client_metadata().find(kProofKey);
  if (found == context.client_metadata().end()) return {};
  return std::as_bytes(std::span(found->second.data(), found->second.size()));
}

class GrpcListener final : public Listener, private grpc::CallbackGenericService {
 public:
  GrpcListener(const std::vector<std::string>& addresses, const EndOptions& options, Accepted accepted);
  ~GrpcListener() override;
  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept override { return acceptor_->addresses(); }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(Context* context) override;
  grpc::ServerGenericBidiReactor* refuse(const Context& context, grpc::StatusCode code, const std::string& why) const;
  grpc::ServerGenericBidiReactor* admit(Context* context, const HelloBytes& caller, const HelloBytes& challenge);

  const EndOptions options_;
  const Accepted accepted_;
  base::Guarded<Challenger> challenger_;
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> entries_;  ///< one for each address
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  base::OwnProcess process_;
};

GrpcListener::GrpcListener(const std::vector<std::string>& addresses, const EndOptions& options, Accepted accepted)
    : options_(options),
      accepted_(std::move(accepted)),
      challenger_(Challenger({.version = {}, .silence = options.silence, .identity = options.identity, .job = {}},
                             options.secret, options.patience)) {
  quieten_grpc();
  grpc::ServerBuilder builder;
  for (const auto& [name, value] : answerer_settings(options_)) builder.AddChannelArgument(name, value);
  using Entry = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  std::vector<Address> parsed;
  for (const std::string& text : addresses) {
    const Address& address = parsed.emplace_back(parse_address(text));
    base::require(address.is_numeric, "a parameter server listens at '{}'; allowed: a numeric address or @name",
                  address.text);
    require_allowed(options_, address);
    entries_.push_back(
        builder.experimental().AddExternalConnectionAcceptor(Entry::FROM_FD, answerer_credentials(options_, address)));
  }
  acceptor_ = std::make_unique<Acceptor>(parsed, options_.identity, options_.patience, options_.log);
  builder.SetResourceQuota(grpc::ResourceQuota().Resize(kListenerBytes));
  builder.RegisterCallbackGenericService(this);
  server_ = builder.BuildAndStart();
  if (!server_) throw SystemFailure(fmt::format("gRPC cannot serve at {}", fmt::join(addresses, ", ")));
  acceptor_->open([this](std::size_t address, int socket) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    entries_[address]->HandleNewConnection(&connection);
  });
}

GrpcListener::~GrpcListener() {
  if (process_.is_inherited()) {
    static_cast<void>(server_.release());  // its threads are the parent's
    static_cast<void>(acceptor_.release());
  } else {
    acceptor_.reset();
    server_->Shutdown(std::chrono::system_clock::now());  // cancels all calls; returns when the last one is over
    static_cast<void>(server_.release());  // gRPC 1.51 may abort when its last object is destroyed: see dial.cpp
  }
}

grpc::ServerGenericBidiReactor* GrpcListener::CreateReactor(Context* context) {
  if (context->method() != kMethod) return refuse(*context, grpc::StatusCode::UNIMPLEMENTED, "no such method");
  const auto caller = find(*context, kHelloKey);
  if (!caller || !read_hello(*caller))
    return refuse(*context, grpc::StatusCode::INVALID_ARGUMENT, "it does not speak this protocol");
  const auto challenge = find(*context, kChallengeKey);
  const auto verdict = !challenge ? Challenger::Verdict::stale : challenger_.with([&](Challenger& challenger) {
    return challenger.check(*caller, *challenge, proof_in(*context), now());
  });
  if (verdict == Challenger::Verdict::right) return admit(context, *caller, *challenge);
  if (verdict == Challenger::Verdict::wrong)
    return refuse(*context, grpc::StatusCode::PERMISSION_DENIED, "it does not know this job's secret");
  const auto fresh =
      challenger_.with([&](const Challenger& challenger) { return challenger.challenge(*caller, now()); });
  context->AddTrailingMetadata(kChallengeKey, base::text_of(fresh));
  return new Refusal(grpc::StatusCode::UNAUTHENTICATED, "prove the secret");
}

grpc::ServerGenericBidiReactor* GrpcListener::refuse(const Context& context, grpc::StatusCode code,
                                                     const std::string& why) const {
  options_.log.write(LogLevel::info, fmt::format("no stream from {}: {}", context.peer(), why));
  return new Refusal(code, why);
}

grpc::ServerGenericBidiReactor* GrpcListener::admit(Context* context, const HelloBytes& caller,
                                                    const HelloBytes& challenge) {
  const Hello theirs = *read_hello(caller), mine = *read_hello(challenge);
  if (theirs.protocol != mine.protocol || theirs.version != mine.version || theirs.job != options_.job)
    return refuse(*context, grpc::StatusCode::FAILED_PRECONDITION,
                  fmt::format("{} runs job '{}' with Syncopate {} (protocol {}), {} runs '{}' with {} ({})",
                              mine.identity, options_.job, mine.version, mine.protocol, theirs.identity, theirs.job,
                              theirs.version, theirs.protocol));
  acceptor_->admit(context->peer());
  context->AddInitialMetadata(kProofKey, base::text_of(prove(options_.secret, Role::answerer, caller, challenge)));
  return Answer::begin(std::make_shared<Answer>(context, theirs, options_), accepted_);
}

}  // namespace

std::unique_ptr<Listener> listen(const std::vector<std::string>& addresses, const EndOptions& options,
                                 Accepted accepted) {
  base::require(!addresses.empty(), "a parameter server needs an address; allowed: 1 or more");
  return std::make_unique<GrpcListener>(addresses, options, std::move(accepted));
}

}  // namespace syncopate::server::rpc
