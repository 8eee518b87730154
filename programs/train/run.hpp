// A run: what a process has from the start of its training to the end, in all parts of a recipe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/data.hpp"
#include "model.hpp"
#include "options.hpp"
#include "ranks/interrupt.hpp"
#include "ranks/notices.hpp"
#include "recipe/part.hpp"
#include "record/output.hpp"
#include "syncopate/group.hpp"
#include "syncopate/trace.hpp"
#include "update/rate.hpp"
#include "update/served.hpp"

namespace syncopate::train {

/// It outlives everything else of a training.
struct Run {
  /// Checks the options against the group, and opens the data. A collective. Throws Misuse, Mismatch, and the errors of
  /// reading. `place`: this rank in the group; with a parameter server this worker, whose group has no other rank.
  Run(Group& group, const Place& place, const Options& options);

  [[nodiscard]] bool done(const input::Progress& at) const;
  [[nodiscard]] std::uint64_t last_step(const input::Progress& at) const;
  [[nodiscard]] double epochs_trained(const input::Progress& at) const;  ///< with a fraction
  [[nodiscard]] std::size_t samples_per_step(const Part& part) const {
    return train::samples_per_step(part, place.ranks);
  }
  [[nodiscard]] bool alone() const { return options.sync.exchange == "none"; }  ///< equal in all parts
  [[nodiscard]] bool is_served() const { return options.is_served(); }

  /// Both follow the rules of Notices, and report this rank's value that was not finite.
  void exchange_notices();
  void exchange_notices_when_due();
  /// Called on the thread of the backward pass. Throws NotFinite with --stop-on-nan. `gradient`: empty for the loss.
  void found_not_finite(std::uint64_t step, const std::string& what, const std::string& gradient);

  Group& group;
  const Place place;
  const Options& options;  ///< those of a part are in `parts`
  const Model& model;
  const RateSchedule schedule;
  const std::vector<Part> parts;
  Output output;
  Trace trace;
  std::unique_ptr<Data> data;
  ModelOptions sizes;  ///< with the number of classes and pixels of the data
  Notices notices;
  std::optional<Interrupt> interrupt;  ///< from the first step on
  double last_step_s = 0;
  std::uint64_t traced_step = 0;  ///< the step whose timeline is recorded, counted from 1; 0: none

 private:
  void require_possible_sides() const;
  void say_notices();
};

}  // namespace syncopate::train
