// Blame: finds the rank that failed first in the ranks' errors, because processes do not end in the order of failures.
#pragma once

#include <optional>
#include <string_view>

namespace syncopate::tools::launch::job {

/// The rank that `line` names: "syncopate error: the first to fail was rank 2", which the library writes to standard
/// error when a group fails and SYNCOPATE_BLAME is 1. Nothing where it is another line.
[[nodiscard]] std::optional<int> blamed_in(std::string_view line);

}  // namespace syncopate::tools::launch::job
