// The timeline of one step: per rank a lane of computing and a lane of communication, on one axis of time.
#pragma once

#include <string>

#include "report/record/run.hpp"

namespace syncopate::tools::report::page {

struct TimelineRange {
  std::size_t first_rank = 0, last_rank = 0;  ///< [first, last)
  double end_s = 0;                           ///< where the axis ends
};

[[nodiscard]] std::string timeline(const record::Run& run, const TimelineRange& range);
/// The meaning of each colour and hatch in `picture` (a timeline), as HTML; nothing that is not in it.
[[nodiscard]] std::string timeline_legend(const std::string& picture);
/// The hatches every drawing of the page refers to; must stand once in the page.
[[nodiscard]] std::string hatches();

}  // namespace syncopate::tools::report::page
