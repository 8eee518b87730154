// The page's style sheet and script, as text that stands inside it.
#pragma once

#include <string_view>

namespace syncopate::tools::report::page {

[[nodiscard]] std::string_view style_sheet() noexcept;
/// Faster tooltips, a reading line in charts, one bucket lit on all ranks. The page is complete without it.
[[nodiscard]] std::string_view script() noexcept;

}  // namespace syncopate::tools::report::page
