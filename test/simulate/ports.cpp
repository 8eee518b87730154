// Ports of a parameter server in virtual time: streams share a port in turns.
#include "simulate/server/ports.hpp"

#include <gtest/gtest.h>

#include <string>

namespace syncopate::simulate::server {
namespace {

TEST(Ports, OweNothingToAStreamThatWasIdle) {
  Events events;
  Ports ports(events, {.inter = {.alpha_s = 0, .beta_s_per_byte = 1}, .intra = {}, .slowness = {1, 1, 1}});
  std::string order;
  const auto send = [&](std::size_t stream, int count) {
    for (int i = 0; i < count; ++i)
      ports.send(
          {.from = 0, .to = 1 + stream, .stream = stream, .priority = 0, .bytes = 1, .arrives = [&order, stream] {
             order += stream == 0 ? 'a' : 'b';
           }});
  };
  send(0, 12);
  events.at(6.5, [&] { send(1, 5); });
  events.run();
  EXPECT_EQ(order.size(), 17U);
  EXPECT_EQ(order.find("bb"), std::string::npos) << order << ": from its first parcel on, it has every second turn";
}

}  // namespace
}  // namespace syncopate::simulate::server
