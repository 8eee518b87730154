// Served: a network's weights on the servers of a parameter server, which take its gradients.
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

/// Which worker of how many this process is.
struct Place {
  int rank = 0, ranks = 1;
};

/// Where the exchange is "parameter_server": of the job that SYNCOPATE_SERVERS, _RANK and _SIZE tell. Throws Misuse,
/// also where this program was built without gRPC.
[[nodiscard]] Place place_among_workers();

/// The state of a server at the end of the run, when worker 0 asked it.
struct ServerRecord {
  std::string address;
  std::uint64_t kept_bytes = 0, received_bytes = 0, sent_bytes = 0;  ///< of weights; bodies of messages of all workers
};

/// What went to and came from servers, in this run.
struct Served {
  std::uint64_t pushed_bytes = 0, pulled_bytes = 0;
  std::int64_t stalest = 0;
  double mean_staleness = 0;
  std::uint64_t reconnections = 0;      ///< of this worker: broken connections and replaced servers
  std::vector<ServerRecord> servers{};  ///< worker 0 only; without those that did not answer
};

class ServedWeights {
 public:
  virtual ~ServedWeights() = default;
  /// The parameter's gradient of this step is here; it is zero afterwards.
  virtual void update(std::size_t parameter, std::span<float> gradient, double rate) = 0;
  virtual void end_step(double rate) = 0;
  /// Waits until the parameter's weights are as fresh as the consistency model asks for.
  virtual void wait(std::size_t parameter) = 0;
  /// Between steps: sends what is left, and waits until everybody's updates of as many steps are on the servers.
  virtual void flush() = 0;
  /// `flush`, and then the servers' weights, into `parameters`, and what the optimizer keeps.
  [[nodiscard]] virtual Kept gather(const at::Tensor& parameters) = 0;
  /// What this worker's codec has left out of its updates; after `flush`.
  [[nodiscard]] virtual SavedCodecState codec_state() const = 0;
  virtual void restore(const SavedCodecState& state) = 0;
  /// Steps that have ended: at the beginning those that the servers go on from.
  [[nodiscard]] virtual std::uint64_t steps() const = 0;
  /// `flush`, and then this worker leaves.
  virtual void finish() = 0;
  [[nodiscard]] virtual Served served() const = 0;
};

/// What a run goes on with: its seed, the step that it has reached, and what an optimizer kept then.
struct Earlier {
  std::uint64_t seed = 1;
  std::uint64_t step = 0;
  std::optional<Kept> kept{};
};

/// Begins with worker 0's weights; `earlier` is every worker's. `network` must outlive it. Throws Misuse, and what
/// syncopate::TableWorker throws.
[[nodiscard]] std::unique_ptr<ServedWeights> serve(const Network& network, const Options& options,
                                                   const Earlier& earlier);

}  // namespace syncopate::train
