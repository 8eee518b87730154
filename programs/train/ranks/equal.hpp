// Settings that must be equal on all ranks. A comparison before training reports differences as an error.
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

/// Every rank calls this at the same time with the same names in the same order. If a rank's value differs from rank
/// 0's, throws Mismatch on all ranks, with the first such setting of the first such rank, both values and `advice`.
void require_equal(Group& group, std::span<const Setting> settings, std::string_view advice);

}  // namespace syncopate::train
