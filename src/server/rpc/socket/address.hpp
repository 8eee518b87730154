// Address: where a listener can be reached, as text and as gRPC's target.
#pragma once

#include <string>

namespace syncopate::server::rpc {

struct Address {
  std::string text;          ///< "127.0.0.1:7000", "[::1]:7000", "host:7000", "@name"
  std::string target;        ///< the same for gRPC
  bool is_named = false;     ///< an abstract unix socket: valid within this network namespace, without a file
  bool is_numeric = false;   ///< it contains no host name
  bool is_loopback = false;  ///< reachable only from this host
};

/// Throws Misuse.
[[nodiscard]] Address parse_address(const std::string& text);

}  // namespace syncopate::server::rpc
