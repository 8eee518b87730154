// Listener: serves at addresses of this host, and hands over a stream for each caller that has proved the job's secret.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/rpc/stream.hpp"

namespace syncopate::server::rpc {

/// Called on gRPC's threads for each new stream, possibly for several at a time; `stream->peer()` names the caller.
/// Returns the stream's callbacks. `stream->close("why")` refuses a caller.
using Accepted = std::function<StreamEvents(std::unique_ptr<Stream> stream)>;

class Listener {
 public:
  /// Cuts off all its streams; returns when no callback runs or will come. The streams themselves may live longer. Must
  /// not be called in a callback. Does nothing in a forked child.
  virtual ~Listener() = default;
  /// The addresses given to `listen`, with the ports that the system chose for port 0.
  [[nodiscard]] virtual const std::vector<std::string>& addresses() const noexcept = 0;
};

/// Addresses are those of `dial`, with numeric hosts. Throws Misuse for an address or options that are not allowed (off
/// loopback without secret or certificates), SystemFailure for an address that cannot be bound.
[[nodiscard]] std::unique_ptr<Listener> listen(const std::vector<std::string>& addresses, const EndOptions& options,
                                               Accepted accepted);

}  // namespace syncopate::server::rpc
