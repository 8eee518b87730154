// Storage: what the two ends of a parameter server keep of a table, and how updates and weights enter it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "syncopate/dtype.hpp"
#include "syncopate/hook.hpp"
#include "syncopate/parameter.hpp"

namespace syncopate::server {

/// A part of one table on one server, whose values a function of a storage gets.
struct BlockView {
  std::size_t table = 0;  ///< in the order of their creation
  Range elements{};       ///< of the table
};

/// The five storages of the thesis (section 4.1), with the functions by which values enter and leave them. An empty
/// function leaves what the library does. Packets are made and read by codecs: `Catalogue::with(const Codec&)`.
///
///   worker: load (gradient) -> accumulate -> codec -> ... -> server: combine -> apply -> answer -> codec -> ...
///     -> worker: adopt -> store
///
/// All values are f32. A function writes all of its result, the last argument, and no other memory. It is called by one
/// thread at a time for a block, on servers under the block's lock. Laws: equal arguments give equal bits, on every
/// process, and nothing is remembered between calls except `kept`: a replica repeats the calls of its server, and a
/// restarted server continues from a snapshot. An exception ends the job.
struct Storages {
  /// Transmit buffer: adds one step's update to the updates that this worker has not sent, which are 0 after they were
  /// sent. In lockstep an update is a gradient; otherwise it is a change of the weights, which the worker already has,
  /// divided by the number of workers. Empty: they add up.
  std::function<void(const BlockView&, std::span<const float> update, std::span<float> accumulated)> accumulate{};
  /// Server storage: combines the decoded updates of one step, in the order of the workers that sent one. Without
  /// lockstep: of one update, when it comes. Empty: their average, in lockstep; otherwise the update itself.
  std::function<void(const BlockView&, std::span<const std::span<const float>> updates, std::span<float> combined)>
      combine{};
  /// Server storage: changes the weights by a combined update. `rate`: the learning rate; 0 without lockstep, where
  /// workers have applied it. Empty: the optimizer's rule, in lockstep; otherwise the update is added. With it tables
  /// have no trust ratios, and the optimizer's state on servers stays as it is.
  std::function<void(const BlockView&, std::span<const float> combined, double rate, std::span<float> kept,
                     std::span<float> weights)>
      apply{};
  /// Floats per element that a server keeps for `apply`; 0 at first. Element i's are at i, i + elements, ... Replicas
  /// and snapshots have them, checkpoints do not.
  std::size_t kept = 0;
  /// Server storage: what workers get instead of the weights. `TableWorker::finish` and `gather` return the weights
  /// themselves. Empty: the weights.
  std::function<void(const BlockView&, std::span<const float> weights, std::span<float> shown)> answer{};
  /// Apply buffer: changes the weights that a worker computes with by those that have arrived, to which its own updates
  /// that the server lacked are added. Not called for the first weights, and for those of `finish`. Empty: a copy.
  std::function<void(const BlockView&, std::span<const float> arrived, std::span<float> weights)> adopt{};
  /// Gradient and worker storage: reads elements of the program's memory, which `create_table` got: its weights, and
  /// the gradients of `update`. Called on the program's thread. Empty: memory of the processor, of f32, f16 or bf16.
  std::function<void(const Buffer& memory, std::span<float> values)> load{};
  /// Worker storage: writes weights, and zeros to gradients. Given together with `load`.
  std::function<void(std::span<const float> values, const Buffer& memory)> store{};
};

/// An entry of a catalogue. `storages` gets the numbers of `name:PARAMETER`, within the limits of `parameters`.
struct Storage {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::string_view parameter{};             ///< default of PARAMETER in `name:PARAMETER`; empty: it takes no parameter
  std::span<const Parameter> parameters{};  ///< numbers in it, separated by commas
  Hook<Storages(std::span<const double> numbers)> storages;
};

}  // namespace syncopate::server
