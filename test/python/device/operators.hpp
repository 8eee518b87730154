// Helpers of the pretended accelerator's operators.
#pragma once

#include <ATen/core/Tensor.h>

#include "memory.hpp"

namespace device {

inline bool is_here(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

// A tensor of the processor on the contents of a device's tensor. It owns nothing.
at::Tensor contents(const at::Tensor& tensor);

at::Tensor empty_on(int device, c10::IntArrayRef size, c10::IntArrayRef stride, c10::ScalarType dtype);

void resize_to(const at::Tensor& self, c10::IntArrayRef size);

}  // namespace device
