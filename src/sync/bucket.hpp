// Bucket: gradients that travel together, as one span of the arena, and the coder that makes packets of them.
#pragma once

#include <memory>
#include <string>

#include "compress/codec.hpp"

namespace syncopate::sync {

struct Bucket {
  std::string name;  ///< first and last gradient
  Buffer gradient;
  std::unique_ptr<compress::Coder> coder;
};

}  // namespace syncopate::sync
