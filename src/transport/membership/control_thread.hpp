// ControlThread: a thread per rank that feeds its control, and does the waiting for it.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "transport/membership/control_protocol.hpp"

namespace syncopate::transport::membership {

class ControlThread final : public ControlProtocol {
 public:
  /// Starts the thread (not for a group of one rank).
  ControlThread(ControlOptions options, std::vector<socket::Descriptor> listeners, std::shared_ptr<Mailbox> mailbox);
  /// Leaves the group; `ControlProtocol::leave` bounds the time.
  ~ControlThread() override;

  /// Waits until every edge of the tree that ends here exists; throws Timeout or the failure.
  void wait_joined();

 private:
  void begin();
  void run(const std::stop_token& stop);
  void step();
  void go();

  std::jthread thread_;
};

}  // namespace syncopate::transport::membership
