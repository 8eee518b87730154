// A free TCP port on loopback that stays reserved until rank 0 listens on it.
#pragma once

#include <string>

#include "launch/process/descriptor.hpp"

namespace syncopate::tools::launch {

/// Law: while this object lives, the system assigns the port only to a process that requests it by number. It is
/// bound, not listening, and SO_REUSEADDR is set, so that a listener that sets SO_REUSEADDR too (ours does) can bind
/// it.
class ReservedPort final {
 public:
  ReservedPort();
  /// 127.0.0.1, or ::1 on a host whose loopback has no IPv4 address.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  process::Descriptor socket_;
  std::string address_ = "127.0.0.1";
  int number_ = 0;
};

/// Throws SystemFailure, with errno's text, where the port of tcp://ADDRESS:PORT on this host is taken: rank 0 would
/// fail, and the others would wait for an answer of the program that has it. Any other text passes.
void require_free_port(const std::string& rendezvous);

}  // namespace syncopate::tools::launch
