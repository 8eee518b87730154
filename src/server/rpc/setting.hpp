// Setting: how both ends set up gRPC: limits, silence, and who may connect.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/rpc/socket/address.hpp"
#include "server/rpc/stream.hpp"

namespace syncopate::server::rpc {

inline constexpr char kMethod[] = "/syncopate.server/stream";
// Metadata of a call. The caller gives its hello, and what proves it once it has been challenged; the answerer gives
// its proof to who is in, and a challenge to who is not. gRPC limits them to 8 KiB.
inline constexpr char kHelloKey[] = "hello-bin", kChallengeKey[] = "challenge-bin", kProofKey[] = "proof-bin";

/// gRPC writes to stderr about each stranger that fails: not in this process, unless GRPC_VERBOSITY asks for it.
void quieten_grpc();

/// gRPC judges a message's length when it has all of it, so its own limit bounds nothing. Its quota does: it cuts off
/// who sends a message that does not fit with what the others of a listener, or a dialed connection, have under way.
inline constexpr std::size_t kListenerBytes = std::size_t{512} << 20, kDialedBytes = std::size_t{64} << 20;

using Settings = std::vector<std::pair<const char*, int>>;
[[nodiscard]] Settings caller_settings(const EndOptions& options);
[[nodiscard]] Settings answerer_settings(const EndOptions& options);

/// Throws Misuse naming what is not allowed, and where `address` needs certificates or a secret that are not there.
void require_allowed(const EndOptions& options, const Address& address);
/// TLS where there are certificates, but on unix sockets. Throws Misuse for files that cannot be used.
[[nodiscard]] std::shared_ptr<grpc::ChannelCredentials> caller_credentials(const EndOptions& options,
                                                                           const Address& address);
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> answerer_credentials(const EndOptions& options,
                                                                            const Address& address);

}  // namespace syncopate::server::rpc
