// The other operators of the pretended accelerator: shapes by "meta", values by the processor's kernel in the stream.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include "generator.hpp"
#include "operators.hpp"

namespace device {
namespace {

using torch::jit::Stack;
using OnTensor = std::function<at::Tensor(const at::Tensor&)>;

// The argument with each tensor in it changed, and each device.
c10::IValue changed(const c10::IValue& value, const OnTensor& change, c10::Device device) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList())
      list.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == kType) return device;
  return value;
}

at::Tensor shape_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const auto options = tensor.options().device(at::kMeta).requires_grad(false);
  return at::empty_strided(tensor.sizes(), tensor.strides(), options);
}

at::Tensor contents_if_here(const at::Tensor& tensor) { return is_here(tensor) ? contents(tensor) : tensor; }

Stack all_changed(const Stack& arguments, const OnTensor& change, c10::Device device) {
  Stack made;
  for (const auto& argument : arguments) made.push_back(changed(argument, change, device));
  return made;
}

int device_of(const Stack& arguments) {
  int found = current_device;
  for (const auto& argument : arguments) {
    if (argument.isDevice() && argument.toDevice().has_index()) found = argument.toDevice().index();
    if (argument.isTensorList())
      for (const at::Tensor& tensor : argument.toTensorVector())
        if (is_here(tensor)) found = tensor.device().index();
    if (argument.isTensor() && is_here(argument.toTensor())) found = argument.toTensor().device().index();
  }
  return found;
}

bool is_all_in_place(const c10::FunctionSchema& schema) {
  return std::all_of(schema.returns().begin(), schema.returns().end(),
                     [](const auto& one) { return one.alias_info() != nullptr; }) &&
         std::none_of(schema.arguments().begin(), schema.arguments().end(),
                      [](const auto& one) { return one.is_out(); });
}

// The argument that the operator writes to and returns as this result.
const c10::IValue& written(const c10::FunctionSchema& schema, const c10::AliasInfo& result, const Stack& arguments) {
  TORCH_CHECK(result.isWrite(), "emu has no view ", schema.operator_name());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* own = schema.arguments()[i].alias_info();
    if (own != nullptr && own->isWrite() && own->beforeSets() == result.beforeSets()) return arguments[i];
  }
  TORCH_CHECK(false, "emu does not find what ", schema.operator_name(), " writes to");
}

// Memory for the results of an operator on a device: arguments that it writes to, and new tensors in the shapes of
// `meta`.
Stack results(const c10::FunctionSchema& schema, const Stack& arguments, const Stack& meta, int device) {
  const OnTensor fresh = [device](const at::Tensor& shape) {
    return shape.defined() ? empty_on(device, shape.sizes(), shape.strides(), shape.scalar_type()) : shape;
  };
  Stack made;
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    if (const auto* alias = schema.returns()[i].alias_info()) {
      made.push_back(written(schema, *alias, arguments));
      if (!meta.empty() && made.back().isTensor() && made.back().toTensor().sizes() != meta[i].toTensor().sizes())
        resize_to(made.back().toTensor(), meta[i].toTensor().sizes());
    } else {
      TORCH_CHECK(meta[i].isTensor() || meta[i].isTensorList(), "emu cannot run ", schema.operator_name(),
                  " in a stream: a result is not a tensor");
      made.push_back(changed(meta[i], fresh, c10::Device(at::kMeta)));
    }
  }
  return made;
}

// A kernel may leave a result empty that nothing reads, such as the saved mean of a batch norm that does not train.
void put_into(const c10::IValue& target, const c10::IValue& result) {
  if (target.isTensor() && target.toTensor().defined() && result.toTensor().numel() > 0)
    target.toTensor().copy_(result.toTensor());
  if (!target.isTensorList()) return;
  const auto targets = target.toTensorVector(), made = result.toTensorVector();
  for (size_t i = 0; i < targets.size(); ++i) targets[i].copy_(made[i]);
}

// Arguments of the processor's kernel. It gets its own memory for `out`: kernels cannot resize memory of a device.
Stack inputs_of(const c10::FunctionSchema& schema, const Stack& arguments, int device) {
  Stack made = all_changed(arguments, contents_if_here, c10::Device(at::kCPU));
  for (size_t i = 0; i < made.size(); ++i) {
    const auto& argument = schema.arguments()[i];
    if (argument.name() == "generator" && made[i].isNone()) made[i] = generator(device);
    if (argument.is_out() && made[i].isTensor()) made[i] = at::empty({0}, made[i].toTensor().options());
  }
  return made;
}

// Whether the processor's kernel leaves this result in memory of the device.
bool is_in_place(const c10::FunctionSchema& schema, size_t result) {
  const auto* alias = schema.returns()[result].alias_info();
  return alias != nullptr && std::none_of(schema.arguments().begin(), schema.arguments().end(), [&](const auto& one) {
           return one.is_out() && one.alias_info()->beforeSets() == alias->beforeSets();
         });
}

// Lets the kernel of `kernel` compute the results of `schema` in the current stream; both have the same arguments and
// results.
Stack run(const c10::FunctionSchema& schema, const c10::OperatorHandle& kernel, Stack arguments) {
  Stack meta;
  if (!is_all_in_place(schema)) {
    meta = all_changed(arguments, shape_of, c10::Device(at::kMeta));
    kernel.callBoxed(&meta);
  }
  const int device = device_of(arguments);
  const Stack made = results(schema, arguments, meta, device);
  Stack inputs = inputs_of(schema, arguments, device);
  Stack targets;
  for (size_t i = 0; i < made.size(); ++i)
    targets.push_back(is_in_place(schema, i) ? c10::IValue()
                                             : changed(made[i], contents_if_here, c10::Device(at::kCPU)));
  Queue& on = current_queue(device);
  on.put([kernel, inputs = std::move(inputs), targets = std::move(targets), &on]() mutable {
    const at::AutoDispatchBelowADInplaceOrView below;
    on.delay(settings.operator_us);
    try {
      kernel.callBoxed(&inputs);
    } catch (const c10::Error& error) {
      TORCH_CHECK(false, toString(kernel.operator_name()), " in a stream of emu: ", error.what_without_backtrace());
    }
    for (size_t i = 0; i < targets.size(); ++i) put_into(targets[i], inputs[i]);
    ++settings.operators;
  });
  return made;
}

void fallback(const c10::OperatorHandle& kernel, Stack* stack) {
  const size_t count = kernel.schema().arguments().size();
  Stack arguments(stack->end() - static_cast<long>(count), stack->end());
  torch::jit::drop(*stack, count);
  for (auto& result : run(kernel.schema(), kernel, std::move(arguments))) stack->push_back(std::move(result));
}

c10::OperatorHandle named(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

// torch gives convolutions of foreign devices to an operator of their own.
void convolution(const c10::OperatorHandle& /*overrideable*/, Stack* stack) {
  fallback(named("aten::convolution"), stack);
}

void convolution_backward(const c10::OperatorHandle& overrideable, Stack* stack) {
  const auto kernel = named("aten::convolution_backward");
  const auto first = stack->end() - static_cast<long>(overrideable.schema().arguments().size());
  const at::Tensor output = first->toTensor();
  stack->insert(first + 3, c10::IValue(std::vector<int64_t>{output.size(1)}));  // bias_sizes
  fallback(kernel, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // torch composes it of other operators on foreign devices, with other roundings than the processor's kernel.
  library.impl("native_layer_norm", torch::CppFunction::makeFromBoxedFunction<&fallback>());
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  library.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace
}  // namespace device
