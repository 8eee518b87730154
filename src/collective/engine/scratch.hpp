// Scratch: memory for arrivals that are reduced rather than placed.
#pragma once

#include <memory>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::collective::engine {

/// Kept between operations; committed when first written. Used by one thread.
class Scratch final {
 public:
  [[nodiscard]] base::Bytes take(std::size_t bytes);
  void give_back(base::Bytes bytes) { free_.push_back(bytes); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> owned_;
  std::vector<base::Bytes> free_;
};

}  // namespace syncopate::collective::engine
