// Bucket: gradients that travel together, as one span of the arena, and the coder that makes packets of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compress/codec.hpp"

namespace syncopate::sync {

struct Bucket {
  std::string name;  ///< first and last gradient
  Buffer gradient;
  std::unique_ptr<compress::Coder> coder;
  std::vector<Buffer> weights;      ///< of its gradients, in as few pieces as their memory allows; see optimizer
  std::size_t first = 0, last = 0;  ///< gradients
};

}  // namespace syncopate::sync
