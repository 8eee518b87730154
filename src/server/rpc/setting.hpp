// Setting: how both ends set up gRPC: limits, silence, and which peers may connect.
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
// Metadata of a call. The caller sends its hello, and its proof after it was challenged; the answerer sends its proof
// to an accepted caller, and a challenge to another. gRPC limits metadata to 8 KiB.
inline constexpr char kHelloKey[] = "hello-bin", kChallengeKey[] = "challenge-bin", kProofKey[] = "proof-bin";

/// Stops gRPC from writing to stderr about each failed stranger, unless GRPC_VERBOSITY is set.
void quieten_grpc();

/// gRPC checks a message's length only after it has received all of it, so its own limit bounds nothing. Its quota
/// does: it cuts off a sender whose message does not fit with the other messages of a listener, or of a dialed
/// connection.
inline constexpr std::size_t kListenerBytes = std::size_t{512} << 20, kDialedBytes = std::size_t{64} << 20;

using Settings = std::vector<std::pair<const char*, int>>;
[[nodiscard]] Settings caller_settings(const EndOptions& options);
[[nodiscard]] Settings answerer_settings(const EndOptions& options);

/// Throws Misuse naming an option that is not allowed, or if `address` needs certificates or a secret that are missing.
void require_allowed(const EndOptions& options, const Address& address);
/// TLS if there are certificates, except on unix sockets. Throws Misuse for unusable files.
[[nodiscard]] std::shared_ptr<grpc::ChannelCredentials> caller_credentials(const EndOptions& options,
                                                                           const Address& address);
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> answerer_credentials(const EndOptions& options,
                                                                            const Address& address);

}  // namespace syncopate::server::rpc
