// Step: which calls there are, and how often each is drawn.
#include "random/step.hpp"

#include <algorithm>

#include "collective/algorithm.hpp"
#include "collective/plan/shape.hpp"

namespace syncopate::test {

namespace {

std::size_t draw_count(Draw& draw, std::size_t most) {
  switch (draw.below(5)) {
    case 0:
      return draw.below(3);
    case 1:
      return 1 + 2 * draw.below(50);
    case 2:
      return draw.below(std::min<std::size_t>(most, 3000) + 1);
    default:
      return draw.below(most + 1);
  }
}

std::string draw_algorithm(Draw& draw, Collective collective) {
  std::vector<std::string> names{"auto", "auto"};
  for (const collective::Algorithm* algorithm : collective::algorithms())
    if (algorithm->offers(collective)) names.emplace_back(algorithm->name);
  return names[draw.below(names.size())];
}

void draw_collective(Draw& draw, const World& world, Step& step) {
  step.collective = draw.pick(kCollectives);
  step.options.op = draw.pick(kReduceOps);
  if (step.options.op == ReduceOp::product) step.values = Values::factor;
  const bool is_even = step.collective != Collective::allgather_v && step.collective != Collective::alltoall_v;
  if (world.hosts > 1 && is_even && draw.chance(30)) step.options.scope = draw.chance(50) ? Scope::host : Scope::across;
  const bool is_whole = step.options.scope == Scope::group;
  if (is_whole) step.options.algorithm = draw_algorithm(draw, step.collective);
  if (is_whole && collective::plan::has_root(step.collective))
    step.options.root = static_cast<int>(draw.below(static_cast<std::size_t>(world.ranks)));
  constexpr std::size_t kDivisible = 60;  // by every number of ranks up to 6
  if (step.collective == Collective::alltoall) step.count = step.count / kDivisible * kDivisible;
  if (step.collective == Collective::alltoall_v) step.count /= static_cast<std::size_t>(world.ranks);
  if (step.collective == Collective::barrier) step.count = 0;
}

void draw_message(Draw& draw, const World& world, Step& step) {
  const auto ranks = static_cast<std::size_t>(world.ranks);
  const std::size_t from = draw.below(ranks), away = 1 + draw.below(ranks - 1);
  step.from = static_cast<int>(from);
  step.to = static_cast<int>((from + away) % ranks);
  step.distance = static_cast<int>(away);
}

}  // namespace

Step draw_step(Draw& draw, const World& world) {
  Step step;
  step.key = draw.word();
  step.dtype = draw.pick(kDTypes);
  step.values = world.is_exact || draw.chance(50) ? Values::whole : Values::real;
  step.count = draw_count(draw, world.most);
  step.is_started = draw.chance(35);
  step.options.name = draw.chance(50) ? "tensor" : "";
  const std::size_t choice = draw.below(100);
  if (choice < 5 && world.may_split) {
    step.kind = Kind::split;
    step.colors = 1 + static_cast<int>(draw.below(3));
  } else if (choice < 25 && world.ranks > 1) {
    step.kind = choice < 17 ? Kind::message : Kind::exchange;
    draw_message(draw, world, step);
  } else {
    draw_collective(draw, world, step);
  }
  return step;
}

std::string text_of(const Step& step) {
  const char* how = step.is_started ? "started " : "";
  const auto what = fmt::format("{} x {}", name_of(step.dtype), step.count);
  switch (step.kind) {
    case Kind::message:
      return fmt::format("{}message {} from {} to {}", how, what, step.from, step.to);
    case Kind::exchange:
      return fmt::format("exchange {} over {} ranks", what, step.distance);
    case Kind::split:
      return fmt::format("split into {} colours", step.colors);
    default:
      return fmt::format("{}{} {} {} root {} by {} over {}", how, name_of(step.collective), what,
                         name_of(step.options.op), step.options.root, step.options.algorithm,
                         name_of(step.options.scope));
  }
}

std::vector<std::size_t> parts_of(const Step& step, int ranks) {
  std::vector<std::size_t> parts;
  std::size_t left = step.count;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool is_last = rank == ranks - 1;
    parts.push_back(is_last ? left : mixed(step.key + static_cast<std::uint64_t>(rank)) % (left + 1));
    left -= parts.back();
  }
  return parts;
}

std::size_t part_between(const Step& step, int from, int to) {
  return mixed(step.key + static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to)) % (step.count + 1);
}

}  // namespace syncopate::test
