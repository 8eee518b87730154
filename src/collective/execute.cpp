// The engine: segments, windows, and the order in which a program's steps are posted and finished.
#include "collective/execute.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace syncopate::collective {

namespace {

// Segments per peer and direction that may be under way. Enough to keep a link busy while one is reduced.
constexpr std::uint32_t kWindow = 32;
// A step is cut into about four segments, so that the next rank starts after a quarter of the chunk; below this bound
// the cost per message outweighs that.
constexpr std::size_t kSmallestSegment = 16 << 10;
// What was reduced is copied block by block, from the first-level cache.
constexpr std::size_t kBlock = 8 << 10;

std::uint64_t token_of(std::uint32_t step, std::uint32_t segment) { return std::uint64_t{step} << 32 | segment; }

}  // namespace

std::size_t segment_bytes(std::size_t range_bytes, std::size_t longest) {
  const std::size_t quarter = (range_bytes / 4 + 63) / 64 * 64;
  return std::clamp(quarter, kSmallestSegment, longest);
}

base::Bytes Scratch::take(std::size_t bytes) {
  const auto fits = std::ranges::find_if(free_, [&](base::Bytes free) { return free.size() >= bytes; });
  if (fits != free_.end()) {
    const base::Bytes found = *fits;
    *fits = free_.back();
    free_.pop_back();
    return found;
  }
  const std::size_t rounded = std::max(bytes, transport::kWireFrame);
  owned_.push_back(std::make_unique_for_overwrite<std::byte[]>(rounded));
  return {owned_.back().get(), rounded};
}

std::size_t Execution::Step::prefix_end() const noexcept {
  return finished == segments ? end : begin + std::size_t{finished} * segment;
}

base::Bytes Execution::Step::bytes_of(std::uint32_t segment_index) const noexcept {
  const std::size_t from = std::size_t{segment_index} * segment;
  return {memory + from, std::min(segment, end - begin - from)};
}

void Execution::begin(const Program& program, const Parameters& parameters) {
  program_ = &program;
  parameters_ = parameters;
  if (parameters_.arrivals.operation == 0) parameters_.arrivals = parameters_.label;
  steps_.assign(program.plan.steps.size(), {});
  outgoing_.clear();
  incoming_.clear();
  for (const Landing& landing : landings_) scratch_.give_back(landing.bytes);
  landings_.clear();
  lent_.reset();
  held_ = unfinished_ = 0;
  const Layout layout{parameters_.data.count + parameters_.second.count, program.plan.chunks, parameters_.cuts};
  for (std::uint32_t index = 0; index < steps_.size(); ++index) place(index, layout);
  for (const Route& route : program.outgoing) outgoing_.push_back({&route});
  for (const Route& route : program.incoming) incoming_.push_back({&route});
}

void Execution::place(std::uint32_t index, const Layout& layout) {
  const Range range = layout.run(program_->plan.steps[index]);
  const std::size_t width = size_of(parameters_.data.dtype), first = parameters_.data.bytes().size();
  Step& step = steps_[index];
  step.begin = range.begin * width;
  step.end = range.end * width;
  step.memory = step.begin < first ? parameters_.data.bytes().data() + step.begin
                                   : parameters_.second.bytes().data() + (step.begin - first);
  step.segment =
      segment_bytes(step.end - step.begin, links_.best_frame(static_cast<int>(program_->plan.steps[index].peer)));
  // A range without elements is not sent: both ends know the count and skip it alike.
  step.segments = static_cast<std::uint32_t>((step.end - step.begin + step.segment - 1) / step.segment);
  if (step.segments > 0) ++unfinished_;
}

void Execution::advance() {
  if (held_ > 0) reduce_held();
  for (Queue& queue : outgoing_) advance(queue);
  for (Queue& queue : incoming_) advance(queue);
}

void Execution::advance(Queue& queue) {
  while (queue.head < queue.route->steps.size()) {
    const std::uint32_t index = queue.route->steps[queue.head];
    Step& step = steps_[index];
    if (step.posted == step.segments) {
      ++queue.head;
      continue;
    }
    const bool lands_beside = program_->plan.steps[index].act == Act::receive_reduce;
    if (queue.outstanding == kWindow || (!lands_beside && !may_touch(index, step.posted))) return;
    ++queue.outstanding;
    post(index, step.posted++);
  }
}

bool Execution::may_touch(std::uint32_t index, std::uint32_t segment) const {
  const Step& step = steps_[index];
  const std::size_t from = step.begin + std::size_t{segment} * step.segment;
  const std::size_t to = std::min(from + step.segment, step.end);
  return std::ranges::all_of(program_->waits[index], [&](std::uint32_t earlier) {
    const Step& other = steps_[earlier];
    return other.begin >= to || other.prefix_end() >= std::min(to, other.end);
  });
}

void Execution::post(std::uint32_t index, std::uint32_t segment) {
  const PlanStep& planned = program_->plan.steps[index];
  const base::Bytes bytes = steps_[index].bytes_of(segment);
  const int peer = static_cast<int>(planned.peer);
  if (planned.act == Act::send) {
    if (!lent_ || lent_->step != index || lent_->segment != segment)
      return links_.send(peer, parameters_.label, bytes, token_of(index, segment));
    const std::uint64_t arrival = lent_->arrival;
    lent_.reset();
    return links_.reply(arrival, {peer, parameters_.label, bytes, token_of(index, segment)});
  }
  if (planned.act == Act::receive) return links_.receive(peer, parameters_.arrivals, bytes, token_of(index, segment));
  landings_.emplace_back(index, segment, scratch_.take(bytes.size()));
  links_.receive(peer, parameters_.arrivals, landings_.back().bytes.first(bytes.size()), token_of(index, segment));
}

void Execution::take(const transport::Event& event) {
  settle(event);
  advance();
  if (lent_) links_.release(lent_->arrival);  // the send has to wait for others
  lent_.reset();
}

void Execution::settle(const transport::Event& event) {
  const auto index = static_cast<std::uint32_t>(event.token >> 32);
  const auto segment = static_cast<std::uint32_t>(event.token);
  if (!event.arrival) return finish(index, segment);
  if (program_->plan.steps[index].act == Act::receive_reduce) return land(index, segment, event);
  const base::Bytes into = steps_[index].bytes_of(segment);
  if (event.bytes.data() != into.data()) std::memcpy(into.data(), event.bytes.data(), into.size());
  links_.release(event.token);
  finish(index, segment);
}

// Borrowed bytes that cannot be reduced yet are copied and given back: their owner may wait for just that.
void Execution::land(std::uint32_t index, std::uint32_t segment, const transport::Event& event) {
  const auto landing = std::ranges::find_if(
      landings_, [&](const Landing& entry) { return entry.step == index && entry.segment == segment; });
  assert(landing != landings_.end());
  if (!may_touch(index, segment)) {
    if (event.bytes.data() != landing->bytes.data())
      std::memcpy(landing->bytes.data(), event.bytes.data(), event.bytes.size());
    links_.release(event.token);
    landing->held = true;
    ++held_;
    return;
  }
  const std::uint32_t reply = program_->replies[index];
  const base::Bytes back = reply == Program::kNoReply
                               ? base::Bytes{}
                               : links_.reply_memory(event.token, static_cast<int>(program_->plan.steps[index].peer));
  if (back.empty()) {
    reduce(index, segment, event.bytes);
    links_.release(event.token);
  } else {
    reduce_over(index, segment, back);
    lent_ = {reply, segment, event.token};
  }
  scratch_.give_back(landing->bytes);
  *landing = landings_.back();
  landings_.pop_back();
  finish(index, segment);
}

kernel::Reduction Execution::reduction_of(std::uint32_t index) const {
  kernel::Reduction reduction = parameters_.reduction;
  if (!program_->plan.steps[index].completes) reduction.divisor = 1;  // an average divides once, at the full sum
  return reduction;
}

void Execution::reduce(std::uint32_t index, std::uint32_t segment, base::ConstBytes arrived) const {
  const base::Bytes into = steps_[index].bytes_of(segment);
  const kernel::Reduction reduction = reduction_of(index);
  kernel::reduce(reduction, into.data(), arrived.data(), into.size() / size_of(reduction.dtype));
}

// First where the peer will read: taking those lines over from it passes while they are added to.
void Execution::reduce_over(std::uint32_t index, std::uint32_t segment, base::Bytes back) const {
  const base::Bytes into = steps_[index].bytes_of(segment);
  const kernel::Reduction reduction = reduction_of(index);
  for (std::size_t at = 0; at < into.size(); at += kBlock) {
    const base::Bytes block = into.subspan(at, std::min(kBlock, into.size() - at));
    kernel::combine(reduction, back.data() + at, {block.data(), back.data() + at},
                    block.size() / size_of(reduction.dtype));
    std::memcpy(block.data(), back.data() + at, block.size());
  }
}

void Execution::reduce_held() {
  for (std::size_t i = 0; i < landings_.size();) {
    const Landing landing = landings_[i];
    if (!landing.held || !may_touch(landing.step, landing.segment)) {
      ++i;
      continue;
    }
    reduce(landing.step, landing.segment, landing.bytes);
    scratch_.give_back(landing.bytes);
    landings_[i] = landings_.back();
    landings_.pop_back();
    --held_;
    finish(landing.step, landing.segment);
    i = 0;  // what just finished may be what another landing waits for
  }
}

void Execution::finish(std::uint32_t index, std::uint32_t segment) {
  Step& step = steps_[index];
  assert(segment >= step.finished && segment - step.finished < 64);
  step.overtakers |= std::uint64_t{1} << (segment - step.finished);
  while ((step.overtakers & 1) != 0) {
    step.overtakers >>= 1;
    ++step.finished;
  }
  if (step.finished == step.segments) --unfinished_;
  const PlanStep& planned = program_->plan.steps[index];
  auto& queues = planned.act == Act::send ? outgoing_ : incoming_;
  for (Queue& queue : queues)
    if (queue.route->peer == planned.peer) --queue.outstanding;
}

int Execution::awaited_peer() const noexcept {
  for (const Queue& queue : incoming_)
    if (queue.outstanding > 0) return static_cast<int>(queue.route->peer);
  for (const Queue& queue : outgoing_)
    if (queue.outstanding > 0) return static_cast<int>(queue.route->peer);
  return -1;
}

}  // namespace syncopate::collective
