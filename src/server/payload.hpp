// Payload: bytes, with the owner that keeps them alive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::server {

struct Payload {
  std::shared_ptr<const void> owner{};
  base::ConstBytes bytes{};
};

[[nodiscard]] inline Payload payload_of(std::string text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, std::as_bytes(std::span(*owner))};
}

[[nodiscard]] inline Payload copy_of(std::span<const float> values) {
  const auto owner = std::make_shared<const std::vector<float>>(values.begin(), values.end());
  return {owner, std::as_bytes(std::span(*owner))};
}

[[nodiscard]] inline std::string_view text_of(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload.bytes.data()), payload.bytes.size()};
}

}  // namespace syncopate::server
