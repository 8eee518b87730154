// Flow: the order in which a step's updates and weights travel, and the time at which they start.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/named.hpp"

namespace syncopate::server {

enum class Flow : std::uint8_t {
  traditional,  ///< all updates leave after the backward pass; the forward pass waits for all weights
  wait_free,    ///< a table's update leaves when its gradient is ready; its layer's forward pass waits only for it
  front_first,  ///< as wait_free, but what waits to be sent leaves in the order of tables, front layers first
};
inline constexpr std::string_view kFlows[] = {"traditional", "wait_free", "front_first"};

[[nodiscard]] inline Flow flow_named(std::string_view name) {  ///< throws Misuse, naming the allowed names
  return base::value_named<Flow>("flow of a parameter server", name, kFlows);
}

}  // namespace syncopate::server
