// What every rank must have alike: compared, so that ranks that differ learn it from an error and not from the result.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "syncopate/group.hpp"

namespace syncopate::train {

struct Setting {
  std::string name, value;
  friend bool operator==(const Setting&, const Setting&) = default;
};

/// Every rank calls this at the same time with the same names in the same order. Throws Mismatch, on all ranks alike,
/// where a rank's value differs from rank 0's: the first such setting of the first such rank, with both values and
/// `advice`.
void require_equal(Group& group, std::span<const Setting> settings, std::string_view advice);

}  // namespace syncopate::train
