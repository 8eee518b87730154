// Setup: the settings that all workers and servers of a job must share, as a value and as bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compress/coding.hpp"
#include "optim/rule.hpp"
#include "server/consistency.hpp"
#include "server/job/flow.hpp"
#include "server/job/row_rules.hpp"
#include "server/storage.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::server {

/// Limits of a job, and of its servers.
inline constexpr std::size_t kMostWorkers = 4096;
inline constexpr std::size_t kMostTableElements = std::size_t{1} << 40;

struct TableShape {
  std::string name;
  std::size_t elements = 0;  ///< f32
  bool spared = false;       ///< WeightTensor::spared
  std::size_t rows = 0;      ///< of the table as a matrix; 0: a vector
  friend bool operator==(const TableShape&, const TableShape&) = default;
};

struct Setup {
  std::vector<TableShape> tables;
  std::size_t workers = 1, servers = 1;
  std::string placement = "uniform";
  std::string consistency = "bsp";
  std::string storage = "plain";
  CodingOptions coding{};        ///< of updates; feedback momentum is the optimizer's
  std::string answers = "none";  ///< codec of the servers' answers
  std::string flow = "front_first";
  std::string optimizer = "momentum";  ///< all its hyperparameters are given
  std::vector<std::pair<std::string, double>> hyperparameters{};
  Clock first_step = 0;  ///< number of steps that an earlier run of the job made
  std::vector<RowOptions> rows{};
  Catalogue catalogue{};  ///< of this process: where the names above are looked up; not part of the bytes

  /// At most kMostBodyBytes; throws Misuse if the names take more.
  [[nodiscard]] std::string bytes() const;
  /// Throws Corrupt if `bytes` cannot have written them. Does not check names.
  [[nodiscard]] static Setup of(std::string_view bytes, const Catalogue& catalogue = {});
};

/// The first name in a setup that its catalogue lacks, with its kind: "codec 'mine'"; empty: none.
[[nodiscard]] std::string missing_name(const Setup& setup);

/// The first difference between two setups, with both values; empty: none.
[[nodiscard]] std::string difference(const Setup& one, const Setup& other);

/// A part of one table on one server, at most one body long: the unit of push, storage and fetch.
struct Block {
  std::size_t table = 0;
  Range elements{};
  std::size_t columns = 1;  ///< of its table, if that is coded as a matrix and the block has whole rows
  std::size_t server = 0;
  bool is_coded = false;           ///< its updates are coded by the job's codec
  bool answers_are_coded = false;  ///< its answers are coded
  bool is_joint = false;           ///< a step of its table needs the norms of all the table's blocks
  std::uint64_t key = 0;           ///< seed of random numbers, different for all blocks
  std::uint32_t index = 0;         ///< among the server's blocks, in the order of tables and elements
  friend bool operator==(const Block&, const Block&) = default;
};

/// All blocks in the order of tables and elements. Pure: equal on every process. Throws Misuse, also for a placement
/// that divides a joint table among servers.
[[nodiscard]] std::vector<Block> blocks_of(const Setup& setup);

/// Tables without values, for simulations: blocks keep and compute nothing, and messages have no bodies. Clocks,
/// requests and answers are those of tables with values.
struct NoValues {
  double significance = 0;  ///< size of one step's update relative to the weights; steps add up
};

inline constexpr std::size_t kNumberBytes = 8;  ///< of JobRules::numbers_packets

/// How the blocks of a job are handled: the objects that a setup names.
struct JobRules {
  std::size_t workers = 1;
  Rule consistency{};
  Storages storages{};
  Flow flow = Flow::front_first;
  const optim::Rule& optimizer;
  optim::Hyperparameters with{};
  compress::Settings codec;    ///< of updates, without the local clipping, which is of whole tables
  compress::Settings answers;  ///< without feedback: omitted values remain in the next difference
  double local_clip = 0;
  /// Without lockstep, momentum correction: the worker's optimizer has accumulated momentum before the selection; the
  /// velocity of what a packet contains becomes zero (factor masking).
  bool masks_velocity = false;
  std::uint64_t seed = 0;
  Clock first_step = 0;
  std::optional<NoValues> no_values{};

  explicit JobRules(const Setup& setup, std::optional<NoValues> no_values = {});  ///< throws Misuse
  /// Whether all workers compute each step with the same weights. Then updates are gradients, and a server applies
  /// their average by the optimizer's rule, once a step. Otherwise each worker applies the rule to its own copy, an
  /// update is the resulting change, and a server adds it, divided by the number of workers, on arrival.
  [[nodiscard]] bool in_lockstep() const noexcept { return consistency.staleness == 0 && !consistency.last_step; }
  /// The priority of the table's updates and weights in a stream: lower ones leave first.
  [[nodiscard]] std::uint64_t priority_of(std::size_t table) const noexcept {
    return flow == Flow::front_first ? 1 + table : 1;
  }
  /// Whether a packet of updates begins with its number (kNumberBytes), which determines its selection. In lockstep the
  /// step does, equally for all workers. Otherwise a worker that sends every fourth step would never select some
  /// elements.
  [[nodiscard]] bool numbers_packets() const noexcept { return codec.codec->selects_alike && !in_lockstep(); }
  /// In lockstep: whether coded gradients contain momentum, so that the servers' rule adds none.
  [[nodiscard]] bool corrects() const noexcept { return codec.feedback.kind == compress::Feedback::Kind::momentum; }
  /// Whether updates on a server go through functions of the storage, which get whole blocks.
  [[nodiscard]] bool updates_by_storage() const noexcept { return storages.combine || storages.apply; }
  /// Whether servers apply a step of the table by a trust ratio of its norms, so that its blocks step together.
  [[nodiscard]] bool steps_jointly(const TableShape& table) const noexcept {
    return in_lockstep() && optimizer.trust != nullptr && !table.spared && !storages.apply;
  }
  /// Whether updates of a table, of which each packet has one block, or answers about it, are coded.
  [[nodiscard]] bool codes(const TableShape& table, const Block& block) const { return codes(codec, table, block); }
  [[nodiscard]] bool codes_answers(const TableShape& table, const Block& block) const {
    return codes(answers, table, block);
  }
  /// Expected bytes of a block's update, and of the answer to it.
  [[nodiscard]] double expected_update(const Block& block) const;
  [[nodiscard]] double expected_answer(const Block& block) const;
  /// Whether blocks have whole rows of matrices: the codec of updates may code only those.
  [[nodiscard]] bool keeps_rows_whole() const noexcept { return codec.codec->codes != nullptr; }

 private:
  [[nodiscard]] static bool codes(const compress::Settings& settings, const TableShape& table, const Block& block);
};

/// These values of a block, as its coder takes them.
[[nodiscard]] compress::Tensor tensor_of(const Block& block, Buffer values) noexcept;

/// blocks_of(setup); without values each block has no elements.
[[nodiscard]] std::vector<Block> kept_blocks_of(const Setup& setup, const JobRules& rules);

}  // namespace syncopate::server
