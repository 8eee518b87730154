// Planner: which partition each step runs under: first some that measure, then the policy's, until times drift.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "schedule/policy.hpp"
#include "sync/planning/record.hpp"

namespace syncopate::sync::planning {

/// What rank 0 decides for all before the first step.
struct PlannerOptions {
  std::string policy;
  bool cost_is_given = false;
  int check_every = 0;  ///< steps; 0: never
};

/// A step predicted. Seconds since the step before had ended.
struct Forecast {
  schedule::Evaluation exchanges;
  double step_s = 0;
};

/// A pure state machine, fed with records of steps. Every rank has one and feeds it at the same steps, so that all are
/// always in the same stage; what they measured differs until `combine`, and what rank 0 plans is adopted by all.
///
///   policy       stages, with their partition and number of steps
///   weighs times   settling: single, 1   alone: single, 4   overlapping: wfbp, 4   running: its own
///   any other      settling: its own, 1  alone: its own, 4                    running: its own
///
/// In `alone` nothing travels overlapping the backward pass: times of layers undisturbed, and the cost of all bytes at
/// once. In `beside` every gradient travels by itself: costs of all sizes, and how much the backward pass is slowed by
/// it.
class Planner final {
 public:
  /// `options.cost`, if given, is what exchanges cost; otherwise that is measured.
  Planner(schedule::Timeline sizes, const PlannerOptions& planner, schedule::PolicyOptions options);

  void begin_with(const schedule::Partition& first) { partition_ = first; }  ///< rank 0's
  /// Of the coming step; empty: the step decides.
  [[nodiscard]] const schedule::Partition& partition() const noexcept { return partition_; }
  [[nodiscard]] const schedule::Timeline& sizes() const noexcept { return sizes_; }
  /// The coming step runs under a partition that is not the policy's.
  [[nodiscard]] bool is_measuring() const noexcept { return weighs_times_ && stage_ != Stage::running; }
  /// Of the coming step, once enough has been measured.
  [[nodiscard]] const std::optional<Forecast>& forecast() const noexcept { return forecast_; }

  /// What a step's end asks of the ranks before the next step.
  enum class Review : std::uint8_t {
    none,
    partition,  ///< `partition` has changed, to one that all know
    plan,       ///< `combine` `measurements`, `plan`, and `adopt` rank 0's partition
    check,      ///< where rank 0 `has_drifted`, all `measure_again`
  };
  [[nodiscard]] Review note(StepRecord step);

  [[nodiscard]] std::vector<Measurement>& measurements() noexcept { return measurements_; }
  /// The partition that the measurements speak for: the present one if the policy's is not clearly better.
  [[nodiscard]] schedule::Partition plan();
  void adopt(schedule::Partition partition);
  /// Since the first check after the last plan, by more than a fifth: when gradients are ready, or all exchanges.
  [[nodiscard]] bool has_drifted();
  void measure_again();

 private:
  enum class Stage : std::uint8_t { settling, alone, overlapping, running };
  /// Of the last steps.
  struct StepTimes {
    std::vector<double> ready_s;  ///< since the first was
    double exchange_s = 0;        ///< all of a step's
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
  std::uint64_t steps_ = 0;                ///< of this stage
  std::uint64_t interval_ = 0;             ///< between checks
  std::deque<StepRecord> records_;         ///< of this stage, the last ones
  std::vector<Measurement> measurements_;  ///< of the stages before `running`
  schedule::Timeline timeline_;            ///< measured
  schedule::Partition partition_, planned_;
  std::optional<Forecast> forecast_;
  std::optional<StepTimes> at_first_;
};

}  // namespace syncopate::sync::planning
