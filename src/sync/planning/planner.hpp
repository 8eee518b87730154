// Planner: the partition of each step: first partitions that measure, then the policy's, until times drift.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"
#include "syncopate/catalogue.hpp"
#include "syncopate/group.hpp"

namespace syncopate::sync::planning {

/// One step. Seconds since the previous step ended.
struct StepRecord {
  std::vector<double> ready_s;                    ///< by gradient
  std::vector<schedule::BucketTiming> exchanges;  ///< in order; their `ready_s` is not set
  double end_s = 0;                               ///< the caller's wait returned
};

/// Several steps under one partition: medians, and every exchange.
struct Measurement {
  std::vector<double> ready_s;
  std::vector<schedule::Point> exchanges;
  double tail_s = 0;             ///< from the end of the last exchange to the end of the step
  double backward_s = 0;         ///< from the first ready gradient to the last
  double bytes_overlapping = 0;  ///< bytes of exchanges that began before the last gradient was ready
};

[[nodiscard]] Measurement measurement_of(std::span<const StepRecord> steps);
/// Combines the measurements of all ranks: a gradient is ready when it is ready on the last rank; an exchange takes the
/// time of the rank that entered it last, because the other ranks also waited for that one. A collective; the result is
/// the same on all ranks.
void combine(Group& group, Measurement& mine);

/// Options that rank 0 decides for all ranks before the first step.
struct PlannerOptions {
  std::string policy;
  bool cost_is_given = false;
  int check_every = 0;    ///< steps; 0: never
  Catalogue catalogue{};  ///< of this rank: where `policy` is looked up
};

/// A predicted step. Seconds since the previous step ended.
struct Forecast {
  schedule::Evaluation exchanges;
  double step_s = 0;
};

/// A pure state machine that is fed with records of steps. Every rank has one and feeds it at the same steps, so all
/// are in the same stage. Their measurements differ until `combine`; rank 0 plans, and all ranks adopt its plan.
///
///   policy          stages, with partition and number of steps
///   weighs times    settling: single, 1    alone: single, 4    overlapping: wfbp, 4    running: its own
///   any other       settling: its own, 1   alone: its own, 4                           running: its own
///
/// For policies that weigh times: in `alone` nothing is exchanged during the backward pass, which gives the undisturbed
/// times of layers and the cost of all bytes at once. In `overlapping` every gradient travels by itself, which gives
/// the costs of all sizes and how much exchanges slow the backward pass.
class Planner final {
 public:
  /// `options.cost`, if given, is the cost of exchanges; otherwise it is measured.
  Planner(schedule::Timeline sizes, const PlannerOptions& planner, schedule::PolicyOptions options);

  void begin_with(const schedule::Partition& first) { partition_ = first; }  ///< adopts rank 0's
  /// The coming step's; empty: the step decides.
  [[nodiscard]] const schedule::Partition& partition() const noexcept { return partition_; }
  [[nodiscard]] const schedule::Timeline& sizes() const noexcept { return sizes_; }
  /// Whether the coming step runs under a partition that only measures.
  [[nodiscard]] bool is_measuring() const noexcept { return weighs_times_ && stage_ != Stage::running; }
  /// The coming step's; empty until enough has been measured.
  [[nodiscard]] const std::optional<Forecast>& forecast() const noexcept { return forecast_; }

  /// The collective work that must precede the next step.
  enum class Review : std::uint8_t {
    none,
    partition,  ///< nothing more: `partition` has changed to one that all ranks know
    plan,       ///< `combine` `measurements`, `plan`, and `adopt` rank 0's partition
    check,      ///< if rank 0 `has_drifted`, all ranks `measure_again`
  };
  [[nodiscard]] Review note(StepRecord step);

  [[nodiscard]] std::vector<Measurement>& measurements() noexcept { return measurements_; }
  /// The policy's partition by the measurements, or the present one if that is not clearly worse.
  [[nodiscard]] schedule::Partition plan();
  void adopt(schedule::Partition partition);
  /// Whether the ready times or the sum of the exchanges have changed by more than a fifth since the first check after
  /// the last plan.
  [[nodiscard]] bool has_drifted();
  void measure_again();

 private:
  enum class Stage : std::uint8_t { settling, alone, overlapping, running };
  /// Medians of the last steps.
  struct StepTimes {
    std::vector<double> ready_s;  ///< since the first gradient was ready
    double exchange_s = 0;        ///< sum of a step's exchanges
    double step_s = 0;
  };

  void enter(Stage stage);
  [[nodiscard]] schedule::Partition by(std::string_view policy) const;
  [[nodiscard]] Review end_of_stage();
  [[nodiscard]] schedule::Cost observed_cost() const;
  [[nodiscard]] StepTimes step_times() const;
  [[nodiscard]] double predicted_s(const schedule::Evaluation& exchanges) const;

  schedule::Timeline sizes_;
  const schedule::Policy& policy_;
  const PlannerOptions planner_options_;
  schedule::PolicyOptions options_;
  const bool weighs_times_;
  Stage stage_ = Stage::settling;
  std::uint64_t steps_ = 0;                ///< in this stage
  std::uint64_t interval_ = 0;             ///< steps between checks
  std::deque<StepRecord> records_;         ///< the last ones of this stage
  std::vector<Measurement> measurements_;  ///< of the stages before `running`
  schedule::Timeline timeline_;            ///< sizes with measured times
  schedule::Partition partition_, planned_;
  std::optional<Forecast> forecast_;
  std::optional<StepTimes> at_first_;
};

}  // namespace syncopate::sync::planning
