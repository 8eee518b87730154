// Served weights: the servers of a parameter server hold a network's weights and receive its gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/network.hpp"
#include "options.hpp"
#include "record/checkpoint.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::train {

/// The index of this process among the workers, and their number.
struct Place {
  int rank = 0, ranks = 1;
};

/// For the exchange "parameter_server": the place that SYNCOPATE_SERVERS, _RANK and _SIZE define. Throws Misuse.
[[nodiscard]] Place place_among_workers();

/// The state of a server at the end of the run, as worker 0 read it.
struct ServerRecord {
  std::string address;
  std::uint64_t kept_bytes = 0, received_bytes = 0, sent_bytes = 0;  ///< of weights; bodies of messages of all workers
};

/// Traffic of this run to and from servers.
struct Served {
  std::uint64_t pushed_bytes = 0, pulled_bytes = 0;
  std::int64_t stalest = 0;
  double mean_staleness = 0;
  std::uint64_t reconnections = 0;      ///< of this worker, after broken connections and replaced servers
  std::vector<ServerRecord> servers{};  ///< worker 0 only; without servers that did not answer
};

class ServedWeights {
 public:
  virtual ~ServedWeights() = default;
  /// Sends the parameter's gradient of this step, and sets it to zero.
  virtual void update(std::size_t parameter, std::span<float> gradient, double rate) = 0;
  virtual void end_step(double rate) = 0;
  /// Waits until the parameter's weights are as fresh as the consistency model requires.
  virtual void wait(std::size_t parameter) = 0;
  /// Called between steps: sends pending updates, and waits until the servers have as many steps of every worker.
  virtual void flush() = 0;
  /// Calls `flush`, then reads the servers' weights into `parameters`. Returns the optimizer's state.
  [[nodiscard]] virtual Kept gather(const at::Tensor& parameters) = 0;
  /// The values that this worker's codec has left out of its updates; called after `flush`.
  [[nodiscard]] virtual SavedCodecState codec_state() const = 0;
  virtual void restore(const SavedCodecState& state) = 0;
  /// Number of completed steps; at the beginning, the step from which the servers resume.
  [[nodiscard]] virtual std::uint64_t steps() const = 0;
  /// Calls `flush`, then this worker disconnects.
  virtual void finish() = 0;
  [[nodiscard]] virtual Served served() const = 0;
};

/// The state that a run resumes from: its seed, its step, and the optimizer's state.
struct Earlier {
  std::uint64_t seed = 1;
  std::uint64_t step = 0;
  std::optional<Kept> kept{};
};

/// Serves the network; the weights begin as worker 0's. Every worker has its own `earlier`. `network` must outlive the
/// result. Throws Misuse, and what syncopate::TableWorker throws.
/// `feedback`: that of the options, with the usual local clipping.
[[nodiscard]] std::unique_ptr<ServedWeights> serve(const Network& network, const Options& options,
                                                   const CodingOptions& coding, const Earlier& earlier);

}  // namespace syncopate::train
