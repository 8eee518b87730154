// Setup: what all workers and servers of a job have to agree on, as a value and as bytes.
#pragma once

#include <string>
#include <vector>

#include "compress/codec.hpp"
#include "optim/rule.hpp"
#include "server/consistency.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::server {

/// Of a job, and of its servers.
inline constexpr std::size_t kMostWorkers = 4096;
inline constexpr std::size_t kMostTableElements = std::size_t{1} << 40;

struct TableShape {
  std::string name;
  std::size_t elements = 0;  ///< f32
  bool spared = false;       ///< WeightTensor::spared
  friend bool operator==(const TableShape&, const TableShape&) = default;
};

struct Setup {
  std::vector<TableShape> tables;
  std::size_t workers = 1, servers = 1;
  std::string placement = "uniform";
  std::string consistency = "bsp";
  std::string codec = "none";  ///< of updates
  std::string feedback = "auto";
  std::string answers = "none";        ///< codec of what servers answer
  std::size_t dense_below = 4096;      ///< updates of tables with fewer elements travel as they are
  std::string optimizer = "momentum";  ///< its hyperparameters are all given
  std::vector<std::pair<std::string, double>> hyperparameters{};
  std::uint64_t seed = 0;  ///< of codecs that use random numbers
  Clock first_step = 0;    ///< so many steps were made before, by another run of the job

  /// At most kMostBodyBytes; throws Misuse where names take more.
  [[nodiscard]] std::string bytes() const;
  /// Throws Corrupt for bytes that `bytes` does not write. Names may stand for nothing.
  [[nodiscard]] static Setup of(std::string_view bytes);
};

/// What differs first between two setups, named with both values; empty: nothing.
[[nodiscard]] std::string difference(const Setup& one, const Setup& other);

/// At most one body's length of one table, on one server: what is pushed, kept and fetched as a whole.
struct Block {
  std::size_t table = 0;
  Range elements{};
  std::size_t server = 0;
  bool is_coded = false;           ///< its updates travel by the job's codec
  bool answers_are_coded = false;  ///< and answers by theirs
  std::uint64_t key = 0;           ///< for random numbers, different for all blocks
  std::uint32_t index = 0;         ///< among the server's blocks, in the order of tables and elements
  friend bool operator==(const Block&, const Block&) = default;
};

/// All blocks in the order of tables and elements. Pure: equal on every process. Throws Misuse.
[[nodiscard]] std::vector<Block> blocks_of(const Setup& setup);

/// How the blocks of a job are handled: what the names of a setup stand for.
struct Terms {
  std::size_t workers = 1;
  Rule consistency{};
  const optim::Rule& optimizer;
  optim::Hyperparameters with{};
  compress::Settings codec;    ///< of updates
  compress::Settings answers;  ///< without feedback: what is left out shows in the next difference
  std::uint64_t seed = 0;
  Clock first_step = 0;

  explicit Terms(const Setup& setup);  ///< throws Misuse
  /// Everybody computes each step with the same weights. Then updates are gradients, and a server applies their average
  /// by the optimizer's rule, once a step. Otherwise each worker applies the rule to its own copy, updates are what
  /// that changed, and a server adds them, divided by the number of workers, as they come.
  [[nodiscard]] bool in_lockstep() const noexcept { return consistency.staleness == 0; }
  /// Whether updates of a table with so many elements are coded, or answers about it.
  [[nodiscard]] bool codes(std::size_t elements) const { return codes(codec, elements); }
  [[nodiscard]] bool codes_answers(std::size_t elements) const { return codes(answers, elements); }

 private:
  [[nodiscard]] static bool codes(const compress::Settings& settings, std::size_t elements);
};

}  // namespace syncopate::server
