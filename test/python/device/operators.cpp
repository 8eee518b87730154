// Operators of the pretended accelerator that make tensors, view them, and copy them; fallback.cpp has the others.
#include "operators.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

namespace device {

at::Tensor contents(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const at::AutoDispatchBelowAutograd below;
  void* address = tensor.numel() == 0 ? nullptr : real_address(tensor.data_ptr());
  const auto options = tensor.options().device(at::kCPU).requires_grad(false);
  return at::from_blob(address, tensor.sizes(), tensor.strides(), options);
}

at::Tensor empty_on(int device, c10::IntArrayRef size, c10::IntArrayRef stride, c10::ScalarType dtype) {
  const c10::DeviceGuard guard(c10::Device(kType, static_cast<c10::DeviceIndex>(device)));
  const c10::DispatchKeySet key(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_strided_generic(size, stride, &device_memory(), key, dtype);
}

void resize_to(const at::Tensor& self, c10::IntArrayRef size) {
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_sizes_contiguous(size);
  const size_t bytes = (tensor->numel() + tensor->storage_offset()) * tensor->itemsize();
  if (bytes > tensor->unsafe_storage().nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(tensor->unsafe_storage(), bytes);
}

namespace {

using Dtype = std::optional<c10::ScalarType>;
using Layout = std::optional<c10::Layout>;
using Device = std::optional<c10::Device>;

at::Tensor empty(c10::IntArrayRef size, Dtype dtype, Layout /*layout*/, Device device, std::optional<bool> /*pinned*/,
                 std::optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(c10::device_or_default(device));
  const c10::DispatchKeySet key(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_generic(size, &device_memory(), key, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, Dtype dtype, Layout /*layout*/, Device device,
                         std::optional<bool> /*pinned*/) {
  const auto on = c10::device_or_default(device);
  return empty_on(on.index() < 0 ? current_device : on.index(), size, stride, c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) { return at::native::view(self, size); }

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size,
                        c10::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, {count}, {1});
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat> /*format*/) {
  resize_to(self, size);
  return self;
}

// The other device's stream goes on behind what this one has been given.
void order(int first, int second) {
  const auto mark = std::make_shared<Mark>();
  mark->record(current_queue(first));
  current_queue(second).put([mark] { mark->wait(1); });
}

// A copy between devices begins when both streams have come to it, and both go on when it has ended.
void copy_between_devices(const at::Tensor& from, const at::Tensor& to) {
  const int source = from.device().index(), target = to.device().index();
  if (source != target) order(target, source);
  current_queue(source).put([from = contents(from), to = contents(to)] {
    const at::NoGradGuard no_grad;
    to.copy_(from);
  });
  if (source != target) order(source, target);
}

void copy_down(const at::Tensor& from, const at::Tensor& to, Queue& on) {
  if (to.is_contiguous()) poison_target(to.data_ptr(), to.nbytes());
  on.put([from = contents(from), to = to.detach(), &on] {
    const at::NoGradGuard no_grad;
    if (to.is_contiguous()) poison_target(to.data_ptr(), to.nbytes());
    on.delay_copy(from.nbytes());
    to.copy_(from);
    ++settings.copies;
  });
}

void copy_up(const at::Tensor& from, const at::Tensor& to, Queue& on) {
  on.put([from = from.detach(), to = contents(to), &on, end = reads_pinned(from.data_ptr())] {
    const at::NoGradGuard no_grad;
    on.delay_copy(from.nbytes());
    to.copy_(from);
    end();
    ++settings.copies;
  });
}

// A copy of pageable memory, and one without non_blocking, ends before the call does.
at::Tensor copy_from(const at::Tensor& values, const at::Tensor& to, bool non_blocking) {
  const at::Tensor from = values.expand_as(to);
  if (is_here(from) && is_here(to)) {
    copy_between_devices(from, to);
    return to;
  }
  Queue& on = current_queue((is_here(from) ? from : to).device().index());
  if (is_here(from))
    copy_down(from, to, on);
  else
    copy_up(from, to, on);
  if (!non_blocking || !is_pinned((is_here(from) ? to : from).data_ptr())) {
    ++settings.host_waits;
    on.drain();
  }
  return to;
}

at::Scalar item(const at::Tensor& self) {
  ++settings.host_waits;
  current_queue(self.device().index()).drain();
  return at::_local_scalar_dense(contents(self));
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "equal: one tensor is on ", self.device(), ", another on ",
              other.device());
  ++settings.host_waits;
  current_queue(self.device().index()).drain();
  return at::equal(contents(self), contents(other));
}

void record_stream(at::Tensor& self, at::Stream stream) { also_used_by(self.storage().data_ptr().get(), stream.id()); }

// The processor's kernel would draw from the processor's generator.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (train == false) return {input.clone(), at::ones_like(input, at::kBool)};
  const auto kept = at::empty_like(input).bernoulli_(1 - p);
  return {input.mul(kept).mul(p < 1 ? 1 / (1 - p) : 0), kept.to(at::kBool)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", as_strided);
  library.impl("view", view);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("resize_", resize);
  library.impl("_copy_from", copy_from);
  library.impl("_local_scalar_dense", item);
  library.impl("equal", equal);
  library.impl("record_stream", record_stream);
  library.impl("native_dropout", native_dropout);
}

}  // namespace
}  // namespace device
