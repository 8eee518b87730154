// The page of a run, and whether its elements are closed.
#pragma once

#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "report/page/page.hpp"
#include "sample.hpp"

namespace syncopate::tools::report::page {

[[nodiscard]] inline std::string page_of(const record::Run& run) {
  return render(run, record::summary_of(run), "trace.json");
}

[[nodiscard]] inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// The first tag that is not closed in order; empty when all are.
[[nodiscard]] inline std::string unbalanced(const std::string& html) {
  static const std::set<std::string> kVoid{"meta", "col"};
  static const std::regex kTag("<(/?)([a-z][a-z0-9]*)([^<>]*)>");
  const std::string text = std::regex_replace(html, std::regex("<(script|style)>[^]*?</\\1>"), "");
  std::vector<std::string> open;
  for (std::sregex_iterator tag(text.begin(), text.end(), kTag), end; tag != end; ++tag) {
    const std::string name = (*tag)[2], rest = (*tag)[3];
    if ((*tag)[1].length() == 0) {
      if (!kVoid.contains(name) && !rest.ends_with('/')) open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

}  // namespace syncopate::tools::report::page
