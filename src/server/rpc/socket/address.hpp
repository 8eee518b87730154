// Address: where a listener can be reached, as text and as gRPC names it.
#pragma once

#include <string>

namespace syncopate::server::rpc {

struct Address {
  std::string text;          ///< "127.0.0.1:7000", "[::1]:7000", "host:7000", "@name"
  std::string target;        ///< the same for gRPC
  bool is_named = false;     ///< an abstract unix socket: only this network namespace knows it, and it leaves no file
  bool is_numeric = false;   ///< no name of a host stands in it
  bool is_loopback = false;  ///< only this host reaches it
};

/// Throws Misuse.
[[nodiscard]] Address parse_address(const std::string& text);

}  // namespace syncopate::server::rpc
