// Settings: the options of a struct as a table of texts.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "syncopate/coding.hpp"
#include "syncopate/tooling/allowed_values.hpp"

namespace syncopate {

struct SynchronizerOptions;
struct WorkerOptions;

/// A setting's name, default, allowed values and meaning stand once, in its table: command lines, comparisons between
/// processes, run.json and docs/settings.md follow from it.
template <class Options>
struct Setting {
  std::string_view name;  ///< in Python, JSON and comparisons
  std::string_view flag;  ///< the option of `syncopate train`; empty: it has none
  AllowedValues allowed;
  std::string_view values;   ///< allowed values, for people
  std::string_view meaning;  ///< with the unit
  std::string (*text)(const Options& options);
  void (*read)(Options& options, std::string_view value);  ///< of an allowed text

  [[nodiscard]] constexpr bool is_switch() const { return values == "true, false"; }

  /// Throws Misuse, naming the setting and `values`, if `value` is not allowed.
  void set(Options& options, std::string_view value) const {
    require_allowed(name, value, allowed, values);
    read(options, value);
  }
};

/// Every member of CodingOptions, in a fixed order.
[[nodiscard]] std::span<const Setting<CodingOptions>> coding_settings();

/// The members of SynchronizerOptions other than `coding` that every rank gives alike, in a fixed order.
[[nodiscard]] std::span<const Setting<SynchronizerOptions>> exchange_settings();

/// The members of SynchronizerOptions that determine its plan; those of rank 0 apply.
[[nodiscard]] std::span<const Setting<SynchronizerOptions>> planning_settings();

/// The members of WorkerOptions other than `coding` that every worker gives alike, in a fixed order.
[[nodiscard]] std::span<const Setting<WorkerOptions>> worker_settings();

}  // namespace syncopate
