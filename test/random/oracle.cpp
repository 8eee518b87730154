// Oracle: collectives by their definitions, sums exactly or in double precision.
#include "random/oracle.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate::test {

namespace {

std::vector<Segment> whole(const Step& step, Segment segment) {
  segment.begin = 0;
  segment.end = step.count;
  return {segment};
}

Segment own_part(const Step& step, const Members& members, Segment segment) {
  const Range range = even_part(step.count, members.ranks.size(), static_cast<std::size_t>(members.me));
  return {range.begin, range.end, segment.is_reduced, segment.from, range.begin};
}

std::vector<Segment> parts_of_all(const std::vector<std::size_t>& parts) {
  std::vector<Segment> segments;
  for (std::size_t member = 0, at = 0; member < parts.size(); at += parts[member++])
    segments.push_back({at, at + parts[member], false, static_cast<int>(member), at});
  return segments;
}

std::vector<std::size_t> even_parts(std::size_t count, std::size_t ranks) {
  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < ranks; ++i) parts.push_back(even_part(count, ranks, i).size());
  return parts;
}

/// Elements before the part that `from` sends to `to`.
std::size_t before(const Step& step, int from, int to) {
  std::size_t sum = 0;
  for (int other = 0; other < to; ++other) sum += part_between(step, from, other);
  return sum;
}

std::vector<Segment> crossed(const Step& step, const Members& members) {
  std::vector<Segment> segments;
  const std::size_t even = step.count / members.ranks.size();
  const bool is_even = step.collective == Collective::alltoall;
  std::size_t at = 0;
  for (int from = 0; from < members.size(); ++from) {
    const std::size_t length = is_even ? even : part_between(step, from, members.me);
    const std::size_t source = is_even ? even * static_cast<std::size_t>(members.me) : before(step, from, members.me);
    segments.push_back({at, at + length, false, from, source});
    at += length;
  }
  return segments;
}

std::vector<Segment> of_collective(const Step& step, const Members& members) {
  const bool is_root = members.me == step.options.root;
  switch (step.collective) {
    case Collective::allreduce:
      return whole(step, {.is_reduced = true});
    case Collective::reduce_scatter:
      return {own_part(step, members, {.is_reduced = true})};
    case Collective::allgather:
      return parts_of_all(even_parts(step.count, members.ranks.size()));
    case Collective::allgather_v:
      return parts_of_all(parts_of(step, members.size()));
    case Collective::broadcast:
      return whole(step, {.from = step.options.root});
    case Collective::reduce:
      return is_root ? whole(step, {.is_reduced = true}) : std::vector<Segment>();
    case Collective::gather:
      if (is_root) return parts_of_all(even_parts(step.count, members.ranks.size()));
      return {own_part(step, members, {.from = members.me})};
    case Collective::scatter:
      if (is_root) return whole(step, {.from = members.me});
      return {own_part(step, members, {.from = step.options.root})};
    case Collective::alltoall:
    case Collective::alltoall_v:
      return crossed(step, members);
    default:
      return {};
  }
}

/// One element, exactly.
std::int64_t whole_expected(const Step& step, const Members& members, const Segment& segment, std::size_t place) {
  const Inputs inputs = inputs_of(step);
  const auto rank_of = [&](int member) { return members.ranks[static_cast<std::size_t>(member)]; };
  if (!segment.is_reduced) return whole_input(inputs, rank_of(segment.from), place);
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  std::uint64_t sum = 0, product = 1;
  for (const int rank : members.ranks) {
    const std::int64_t value = whole_input(inputs, rank, place);
    least = std::min(least, value);
    most = std::max(most, value);
    sum += static_cast<std::uint64_t>(value);
    product *= static_cast<std::uint64_t>(value);
  }
  switch (step.options.op) {
    case ReduceOp::min:
      return least;
    case ReduceOp::max:
      return most;
    case ReduceOp::product:
      return wrapped(step.dtype, product);
    case ReduceOp::average:
      return wrapped(step.dtype, sum) / members.size();
    default:
      return wrapped(step.dtype, sum);
  }
}

struct Expected {
  double value = 0;
  double tolerance = 0;
};

Expected real_expected(const Step& step, const Members& members, const Segment& segment, std::size_t place) {
  const Inputs inputs = inputs_of(step);
  const auto rank_of = [&](int member) { return members.ranks[static_cast<std::size_t>(member)]; };
  if (!segment.is_reduced) return {real_input(inputs, rank_of(segment.from), place)};
  double least = INFINITY, most = -INFINITY, sum = 0, product = 1, magnitude = 0;
  for (const int rank : members.ranks) {
    const double value = real_input(inputs, rank, place);
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
    product *= value;
    magnitude += std::abs(value);
  }
  if (step.options.op == ReduceOp::min) return {least};
  if (step.options.op == ReduceOp::max) return {most};
  if (step.options.op == ReduceOp::product) return {product};
  const double spacing = spacing_of(step.dtype), ranks = members.size();
  const double of_sum = step.values == Values::whole ? 0 : spacing * magnitude * ranks;
  if (step.options.op == ReduceOp::sum) return {sum, of_sum};
  const bool is_exact = step.values == Values::whole && rounded(step.dtype, sum / ranks) == sum / ranks;
  return {sum / ranks, is_exact ? 0 : of_sum / ranks + spacing * std::abs(sum / ranks)};
}

std::string flaw_at(const Buffer& result, const Step& step, const Members& members, const Segment& segment) {
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    const std::size_t place = segment.is_reduced ? i : segment.source + i - segment.begin;
    if (is_integer(step.dtype)) {
      const std::int64_t expected = whole_expected(step, members, segment, place), found = whole_at(result, i);
      if (found != expected) return fmt::format("element {} is {} instead of {}", i, found, expected);
      continue;
    }
    const Expected expected = real_expected(step, members, segment, place);
    const double found = real_at(result, i);
    if (!(std::abs(found - expected.value) <= expected.tolerance))
      return fmt::format("element {} is {} instead of {} +- {}", i, found, expected.value, expected.tolerance);
  }
  return {};
}

}  // namespace

std::vector<Segment> segments_of(const Step& step, const Members& members) {
  const int size = members.size();
  switch (step.kind) {
    case Kind::collective:
      return of_collective(step, members);
    case Kind::message:
      return members.me == step.to ? whole(step, {.from = step.from}) : std::vector<Segment>();
    case Kind::exchange:
      return whole(step, {.from = (members.me + size - step.distance) % size});
    default:
      return {};
  }
}

std::size_t result_count(const Step& step, const Members& members) {
  if (step.kind != Kind::collective || step.collective != Collective::alltoall_v) return step.count;
  const auto segments = crossed(step, members);
  return segments.back().end;
}

std::size_t input_count(const Step& step, const Members& members) {
  if (step.kind != Kind::collective || step.collective != Collective::alltoall_v) return step.count;
  return before(step, members.me, members.size());
}

std::string flaw_in(const Buffer& result, const Step& step, const Members& members) {
  for (const Segment& segment : segments_of(step, members))
    if (std::string flaw = flaw_at(result, step, members, segment); !flaw.empty()) return flaw;
  return {};
}

bool is_same_everywhere(const Step& step) {
  if (step.kind != Kind::collective) return false;
  return step.collective == Collective::allreduce || step.collective == Collective::allgather ||
         step.collective == Collective::allgather_v || step.collective == Collective::broadcast;
}

}  // namespace syncopate::test
