// FramedChannel: length-prefixed messages of bounded size over a channel, never blocking.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/socket/channel.hpp"

namespace syncopate::transport::socket {

/// Each message: u32 length, then that number of bytes.
class FramedChannel final {
 public:
  FramedChannel(Channel channel, std::size_t most_bytes) : channel_(std::move(channel)), most_bytes_(most_bytes) {}

  void queue(std::string_view message);
  /// Sends what the kernel takes. False: the connection is closed.
  [[nodiscard]] bool flush();
  /// Appends the available messages, about 64 KiB at most per call. False: the connection is closed. If an end arrives
  /// together with messages, the next read reports it, and the poller announces that read: the messages may explain the
  /// end. Throws Corrupt for a message longer than the limit.
  [[nodiscard]] bool read(std::vector<std::string>& messages);

  [[nodiscard]] bool idle() const noexcept { return out_.empty(); }  ///< nothing waits to be sent
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return out_.size(); }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] const Descriptor& socket() const noexcept { return channel_.socket(); }

 private:
  void take_messages(std::vector<std::string>& messages);

  Channel channel_;
  std::size_t most_bytes_;
  std::string out_;
  std::string in_;
  std::string reason_;
};

}  // namespace syncopate::transport::socket
