// Payload: bytes, with the owner that keeps them alive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

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

[[nodiscard]] inline Payload payload_of(std::uint64_t number) {
  const auto owner = std::make_shared<const std::uint64_t>(number);
  return {owner, std::as_bytes(std::span(owner.get(), 1))};
}

}  // namespace syncopate::server
