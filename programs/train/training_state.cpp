// The initial state is that of a checkpoint, or drawn from the seed; rank 0 broadcasts it.
#include "training_state.hpp"

#include <array>

#include "syncopate/collective.hpp"

namespace syncopate::train {

/// Seed and position precede the network, because the seed decides its initial values; tensors follow it.
TrainingState initial_state(const Run& run, const std::optional<Checkpoint>& checkpoint) {
  std::uint64_t seed = checkpoint ? checkpoint->state.seed : run.options.seed.value_or(1);
  input::Progress at = checkpoint ? checkpoint->state.progress : input::Progress{};
  std::uint64_t resumed = checkpoint ? 1 : 0;
  std::array<std::int64_t, 5> words{};
  const std::array<std::uint64_t*, 5> fields{&seed, &at.step, &at.epoch, &at.sample, &resumed};
  for (std::size_t i = 0; i < fields.size(); ++i) words[i] = static_cast<std::int64_t>(*fields[i]);
  broadcast(run.group, std::span<std::int64_t>(words), {.name = "run state"});
  for (std::size_t i = 0; i < fields.size(); ++i) *fields[i] = static_cast<std::uint64_t>(words[i]);

  Builder builder(seed);
  Network network = run.model.build(builder, run.sizes);
  const at::Tensor parameters = gather_in_one_memory(network.parameters);
  const at::Tensor buffers = gather_in_one_memory(network.buffers);
  TrainingState state{.seed = seed,
                      .progress = at,
                      .resumed = resumed != 0,
                      .network = std::move(network),
                      .parameters = parameters,
                      .buffers = buffers,
                      .order = {run.data->training_samples(), seed}};
  if (checkpoint) {
    require_fits(*checkpoint, run_state_of(run, state), state.network);
    parameters.copy_(checkpoint->parameters);
    buffers.copy_(checkpoint->buffers);
  }
  std::vector<Buffer> tensors{view_of(parameters)};
  if (buffers.numel() > 0) tensors.push_back(view_of(buffers));
  broadcast_all(run.group, tensors);
  return state;
}

RunState run_state_of(const Run& run, const TrainingState& state) {
  return {.model = run.options.model,
          .sizes = run.sizes,
          .seed = state.seed,
          .training_samples = run.data->training_samples(),
          .progress = state.progress};
}

void average_statistics(const Run& run, const TrainingState& state) {
  if (run.alone() || run.group.size() == 1 || state.buffers.numel() == 0) return;
  allreduce(run.group, view_of(state.buffers), {.op = ReduceOp::average, .name = "batch-norm statistics"});
}

}  // namespace syncopate::train
