// The command line of syncopate-train as a value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model.hpp"
#include "ranks/equal.hpp"
#include "syncopate/server.hpp"
#include "syncopate/synchronizer.hpp"
#include "syncopate/tooling/recipe.hpp"

namespace syncopate::train {

/// Slows a rank down: it sleeps in a share of its steps, and logs it.
struct Slowness {
  int rank = 0;
  double factor = 1;  ///< slowdown of forward and backward pass
  double share = 1;   ///< of the steps, drawn by the seed
};

struct Options {
  std::string model, data;
  ModelOptions sizes;
  int resolution = 0;                                   ///< pixels that images are scaled to; 0: as the data has them
  int input_threads = 1;                                ///< threads that decode images
  bool stop_on_corrupt = false;                         ///< an image that cannot be decoded ends the run
  std::uint64_t cache_bytes = 0, cache_disk_bytes = 0;  ///< this rank's, for encoded samples
  std::uint64_t cache_decoded_bytes = 0;                ///< this rank's, for decoded samples
  std::string cache_folder;                             ///< empty: no cache on disk
  std::uint64_t origin_rate = 0;  ///< limit of bytes per second that a rank reads of --data; 0: none

  std::string recipe_file;
  std::shared_ptr<const Recipe> recipe;  ///< null: one part with these options

  SynchronizerOptions sync;  ///< its settings; feedback's momentum is the optimizer's, and the codec may be "auto:A+B"
  WorkerOptions worker;      ///< its settings but the coding, for the exchange parameter_server
  std::string cluster;       ///< file with the costs of exchanges, for policies that use them; empty: measured
  bool force = false;        ///< use the codec even if it is predicted to be slower
  bool serial = false;       ///< communicate after computing, without overlap
  bool code_inline = false;

  std::optional<std::uint64_t> steps, epochs;  ///< the first one reached ends the run; with neither, one epoch
  std::uint64_t batch = 32;                    ///< per rank and micro-batch
  std::uint64_t global_batch = 0;              ///< samples of a step over all ranks; 0: batch x accumulate x ranks
  std::uint64_t accumulate = 1;
  std::optional<std::uint64_t> seed;  ///< unset: 1, or the checkpoint's
  bool augment = false;
  int threads = 1;

  std::optional<double> learning_rate, clip;  ///< unset: the model's defaults
  bool is_clip_given = false;  ///< else, with feedback momentum, local gradients have the model's clip times √ranks
  std::string optimizer = "sgd";
  bool nesterov = false;
  std::optional<double> momentum, weight_decay, beta1, beta2, epsilon, trust;  ///< unset: the optimizer's defaults
  std::optional<std::uint64_t> warmup;    ///< steps over which the rate grows linearly; unset: the model's default
  std::vector<std::uint64_t> milestones;  ///< steps at which the rate is multiplied by `decay`
  double decay = 0.1;

  std::optional<std::uint64_t> evaluate_every;  ///< steps; unset: after every epoch and at the end; 0: never
  std::optional<std::uint64_t> evaluate_samples;
  std::string checkpoint, resume;
  std::uint64_t checkpoint_every = 0;  ///< steps; 0: at the end only
  bool stop_on_nan = false;

  std::string profile;  ///< file for layer times; a run with it only measures
  std::string out, log_level;
  bool json = false;
  std::optional<std::uint64_t> report_every, trace_step;
  bool share_norms = false;      ///< ranks share the computation of norms
  std::optional<Slowness> slow;  ///< one rank that is slowed down by sleeping
  std::string command;           ///< the command line, for the run's record
  std::vector<Setting> shared;   ///< settings that must be equal on all ranks

  /// Whether servers hold the weights. Workers are not the ranks of a group: this is not an exchange of the library.
  [[nodiscard]] bool is_served() const { return sync.exchange == "parameter_server"; }
};

/// Parses the options and checks them as far as possible without the group and the data. Returns nullopt after it has
/// printed --help or --version. Throws Misuse.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

}  // namespace syncopate::train
