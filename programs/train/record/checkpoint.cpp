// The checkpoint file: a sealed file with a JSON header and f32 tensors.
#include "record/checkpoint.hpp"

#include <cstring>
#include <span>

#include "require.hpp"
#include "syncopate/tooling/sealed_file.hpp"

namespace syncopate::train {
namespace {

constexpr std::string_view kMagic = "SYNCCKP2";

CheckpointHeader header_of(const Checkpoint& checkpoint) {
  CheckpointHeader header{.state = checkpoint.state,
                          .parameters = static_cast<std::uint64_t>(checkpoint.parameters.numel()),
                          .buffers = static_cast<std::uint64_t>(checkpoint.buffers.numel()),
                          .optimizer = checkpoint.kept.optimizer,
                          .layout = checkpoint.layout};
  for (const auto& [name, values] : checkpoint.kept.state) header.kept.push_back(name);
  return header;
}

/// A checkpoint whose tensors are `numbers`: parameters, optimizer state, buffers.
Checkpoint checkpoint_of(CheckpointHeader header, std::span<const std::uint8_t> numbers) {
  const auto take = [&](std::uint64_t count) {
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(count)}, at::kFloat);
    std::memcpy(tensor.data_ptr<float>(), numbers.data(), 4 * count);
    numbers = numbers.subspan(4 * count);
    return tensor;
  };
  Checkpoint result;
  result.state = std::move(header.state);
  result.layout = std::move(header.layout);
  result.parameters = take(header.parameters);
  result.kept.optimizer = std::move(header.optimizer);
  for (const std::string& name : header.kept) result.kept.state.emplace_back(name, take(header.parameters));
  result.buffers = take(header.buffers);
  return result;
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return std::as_bytes(std::span(tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())));
}

}  // namespace

Kept kept_by(Optimizer& optimizer) {
  Kept kept{std::string(optimizer.rule()), {}};
  for (const auto& [name, values] : optimizer.state())
    kept.state.emplace_back(name, at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat));
  return kept;
}

void restore(Optimizer& optimizer, const Kept& kept) {
  std::vector<OptimizerState> saved;
  for (const auto& [name, values] : kept.state)
    saved.push_back({name, {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())}});
  optimizer.restore(kept.optimizer, saved);
}

std::vector<std::string> layout_of(const Network& network) {
  std::vector<std::string> layout;
  for (const auto* tensors : {&network.parameters, &network.buffers})
    for (const auto& [name, value] : *tensors) layout.push_back(fmt::format("{}:{}", name, value.numel()));
  return layout;
}

void save_checkpoint(const std::string& file, const Checkpoint& checkpoint) {
  std::vector<std::span<const std::byte>> payload{bytes_of(checkpoint.parameters)};
  for (const auto& [name, values] : checkpoint.kept.state) payload.push_back(bytes_of(values));
  payload.push_back(bytes_of(checkpoint.buffers));
  write_sealed(file, kMagic, text_of(header_of(checkpoint)), payload);
}

Checkpoint load_checkpoint(const std::string& file) {
  const Sealed sealed = read_sealed(file, kMagic, "checkpoint");
  try {
    return checkpoint_of(parse_checkpoint_header(sealed.header, sealed.payload.size()), sealed.payload);
  } catch (const Corrupt& error) {
    throw Corrupt(fmt::format("{} is damaged: {}", file, error.what()));
  }
}

void require_fits(const Checkpoint& checkpoint, const RunState& run, const Network& network) {
  require(checkpoint.state.model == run.model, "the checkpoint is of model {}, the run trains {}",
          checkpoint.state.model, run.model);
  const std::vector<std::string> layout = layout_of(network);
  for (std::size_t i = 0; i < std::max(layout.size(), checkpoint.layout.size()); ++i) {
    const std::string ours = i < layout.size() ? layout[i] : "nothing";
    const std::string theirs = i < checkpoint.layout.size() ? checkpoint.layout[i] : "nothing";
    require(ours == theirs,
            "the checkpoint's tensor {} is {}, the run's is {}: give the sizes that the checkpoint was trained with", i,
            theirs, ours);
  }
  require(checkpoint.state.training_samples == run.training_samples,
          "the checkpoint was trained on {} samples, --data holds {}", checkpoint.state.training_samples,
          run.training_samples);
}

}  // namespace syncopate::train
