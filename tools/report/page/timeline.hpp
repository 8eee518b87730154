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
/// Which colour and hatch means what, as HTML; without the marks of communication where there was none.
[[nodiscard]] std::string timeline_legend(const record::Run& run);
/// The hatches every drawing of the page refers to; must stand once in the page.
[[nodiscard]] std::string hatches();

}  // namespace syncopate::tools::report::page
