// ControlThread: one loop that waits for control's poller and feeds control; then it leaves the group.
#include "transport/membership/control_thread.hpp"

#include <fmt/format.h>

#include <system_error>

namespace syncopate::transport::membership {

ControlThread::ControlThread(ControlOptions options, std::vector<socket::Descriptor> listeners,
                             std::shared_ptr<Mailbox> mailbox)
    : ControlProtocol(std::move(options), std::move(listeners), std::move(mailbox)) {
  if (size() > 1) begin();
}

void ControlThread::begin() try {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
} catch (const std::system_error& error) {
  throw SystemFailure(fmt::format("rank {} cannot create its control thread: {}; raise the limit of threads",
                                  options().rank, error.what()),
                      {.rank = options().rank});
}

ControlThread::~ControlThread() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  poller().wake();
  thread_.join();
}

void ControlThread::wait_joined() {
  await_joined();
  if (const auto first = failure()) raise(*first);
}

void ControlThread::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      step();
    } catch (const std::exception& error) {
      give_up(error);
    }
  }
  try {
    go();
  } catch (const std::exception& error) {
    options().log.write(LogLevel::warning,
                        fmt::format("rank {} left without a goodbye: {}", options().rank, error.what()));
  }
}

void ControlThread::step() { feed(poller().wait(next_deadline())); }

void ControlThread::go() {
  leave();
  while (!is_gone()) step();
  drain(poller().wait({}));
}

}  // namespace syncopate::transport::membership
