// Random numbers of a pretended accelerator.
#pragma once

#include <ATen/core/Generator.h>

namespace device {

// The generator of operators on this device that are given none.
at::Generator& generator(int device);

}  // namespace device
