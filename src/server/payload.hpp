// Payload: bytes together with what keeps them alive.
#pragma once

#include <memory>

#include "base/bytes.hpp"

namespace syncopate::server {

struct Payload {
  std::shared_ptr<const void> owner{};
  base::ConstBytes bytes{};
};

}  // namespace syncopate::server
