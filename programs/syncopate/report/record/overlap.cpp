// How much of one rank's communication hid behind its computing: arithmetic on the spans of a traced step.
#include "report/record/overlap.hpp"

#include <algorithm>

namespace syncopate::tools::report::record {
namespace {

/// The time of the spans that are wanted.
template <typename Wanted>
Intervals covered_if(const std::vector<Span>& spans, const Wanted& is_wanted) {
  std::vector<Interval> parts;
  for (const Span& span : spans)
    if (is_wanted(span)) parts.push_back({span.begin_s, span.end_s});
  return merged(std::move(parts));
}

}  // namespace

Intervals merged(std::vector<Interval> parts) {
  std::erase_if(parts, [](const Interval& part) { return !(part.end > part.begin); });
  std::ranges::sort(parts, {}, &Interval::begin);
  Intervals result;
  for (const Interval& part : parts) {
    if (!result.empty() && part.begin <= result.back().end)
      result.back().end = std::max(result.back().end, part.end);
    else
      result.push_back(part);
  }
  return result;
}

Intervals without(const Intervals& from, const Intervals& taken) {
  Intervals result;
  auto next = taken.begin();
  for (Interval rest : from) {
    while (next != taken.end() && next->end <= rest.begin) ++next;
    for (auto hole = next; hole != taken.end() && hole->begin < rest.end; ++hole) {
      if (hole->begin > rest.begin) result.push_back({rest.begin, hole->begin});
      rest.begin = std::min(rest.end, hole->end);
    }
    if (rest.end > rest.begin) result.push_back(rest);
  }
  return result;
}

double length(const Intervals& parts) {
  double sum = 0;
  for (const Interval& part : parts) sum += part.end - part.begin;
  return sum;
}

Intervals covered(const std::vector<Span>& spans, const std::string& track) {
  return covered_if(spans, [&](const Span& span) { return span.track == track; });
}

bool is_message(const Span& span) { return span.track == "exchange" || span.track == "broadcast"; }

bool is_copy(const Span& span) { return span.track == "copy down" || span.track == "copy up"; }

bool is_beside(const Span& span) {
  return is_message(span) || is_copy(span) || span.track == "update" || span.track == "encode" ||
         span.track == "decode";
}

Intervals computing(const std::vector<Span>& spans) {
  const Intervals busy = covered_if(spans, [](const Span& span) { return !is_beside(span) && span.track != "wait"; });
  return without(busy, covered(spans, "wait"));
}

std::vector<Span> exchanges(const std::vector<Span>& spans) {
  std::vector<Span> result;
  std::ranges::copy_if(spans, std::back_inserter(result), [](const Span& span) { return span.track == "exchange"; });
  std::ranges::stable_sort(result, {}, &Span::begin_s);
  return result;
}

bool starts_with_backward(const Run& run) {
  for (const RankRecord& rank : run.ranks) {
    if (rank.spans.empty() || covered(rank.spans, "broadcast").empty()) continue;
    const Intervals forward = covered(rank.spans, "forward"), backward = covered(rank.spans, "backward");
    return !forward.empty() && !backward.empty() && backward.front().begin < forward.front().begin;
  }
  return false;
}

Budget budget_of(const std::vector<Span>& spans) {
  Budget budget;
  for (const Span& span : spans) budget.step_s = std::max(budget.step_s, span.end_s);
  const Intervals exchange = covered_if(spans, is_message), copies = covered_if(spans, is_copy);
  const Intervals waits = covered(spans, "wait"), busy = computing(spans);
  const Intervals forward = without(covered(spans, "forward"), waits);
  const Intervals backward = without(covered(spans, "backward"), waits);
  budget.input_s = length(covered(spans, "input"));
  budget.forward_s = length(forward);
  budget.backward_s = length(covered(spans, "backward"));
  budget.optimizer_s = length(covered(spans, "optimizer"));
  budget.wait_s = length(covered(spans, "wait"));
  budget.exchange_s = length(exchange);
  budget.exposed_s = length(without(exchange, busy));
  budget.hidden_s = budget.exchange_s - budget.exposed_s;
  budget.behind_backward_s = budget.exchange_s - length(without(exchange, backward));
  budget.behind_forward_s = budget.exchange_s - length(without(exchange, forward));
  budget.copy_s = length(copies);
  budget.hidden_copy_s = budget.copy_s - length(without(copies, busy));
  return budget;
}

std::vector<BucketCost> bucket_costs(const Run& run) {
  std::vector<BucketCost> costs(run.buckets.size());
  int traced = 0;
  for (const RankRecord& rank : run.ranks) {
    const std::vector<Span> spans = exchanges(rank.spans);
    if (spans.empty() || spans.size() != costs.size()) continue;
    const Intervals busy = computing(rank.spans);
    if (++traced == 1) std::ranges::fill(costs, BucketCost{0, 0});
    for (std::size_t k = 0; k < spans.size(); ++k) {
      const Interval span{spans[k].begin_s, spans[k].end_s};
      costs[k].seconds += span.end - span.begin;
      costs[k].exposed_s += length(without({span}, busy));
    }
  }
  for (BucketCost& cost : costs) cost = {cost.seconds / traced, cost.exposed_s / traced};
  return costs;
}

}  // namespace syncopate::tools::report::record
