// Rows that programs of a benchmark print.
#include "bench/rows.hpp"
#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

void bench_rows(Input input) {
  may_refuse<Corrupt>([&] {
    tools::bench::Rows rows(1e9);
    for (const std::string& line : lines_of(text_of(input))) rows.add(line);
    if (!rows.empty())
      hold(!rows.table().empty() && !rows.json().empty() && rows.transport().size() < 1e6, "rows are shown");
  });
}

}  // namespace syncopate::fuzz::target
