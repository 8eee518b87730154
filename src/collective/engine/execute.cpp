// The engine: segments, windows, and the order in which a program's steps are posted and finished.
#include "collective/engine/execute.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace syncopate::collective::engine {

namespace {

// Limit of posted, unfinished segments per peer and direction: enough to keep the link busy while one is reduced.
constexpr std::uint32_t kWindow = 32;
// Limit of segments of one step between its first unfinished one and its last posted one: Step::overtakers has a bit
// for each.
constexpr std::uint32_t kWidestSpan = 64;
// Limit of one peer's arrivals that are kept for a reply. It is below kWindow, so that the peer can always post more.
constexpr std::ptrdiff_t kMostKept = kWindow / 2;
// A sum is copied in blocks that still lie in the first-level cache.
constexpr std::size_t kBlock = 8 << 10;

}  // namespace

std::size_t segment_bytes(std::size_t range_bytes, const transport::FrameLengths& lengths) {
  const std::size_t quarter = (range_bytes / 4 + 63) / 64 * 64;
  return std::clamp(quarter, lengths.shortest, lengths.longest);
}

std::size_t Execution::Step::prefix_end() const noexcept {
  return finished == segments ? end : begin + std::size_t{finished} * segment;
}

Range Execution::Step::range_of(std::uint32_t segment_index) const noexcept {
  const std::size_t first = std::size_t{segment_index} * segment;
  return {first, std::min(first + segment, end - begin)};
}

base::ConstBytes Execution::Step::sent(std::uint32_t segment_index) const noexcept {
  const Range range = range_of(segment_index);
  return {from + range.begin, range.size()};
}

base::Bytes Execution::Step::received(std::uint32_t segment_index) const noexcept {
  const Range range = range_of(segment_index);
  return {into + range.begin, range.size()};
}

void Execution::begin(const plan::Program& program, const Parameters& parameters) {
  program_ = &program;
  parameters_ = parameters;
  if (parameters_.arrivals.operation == 0) parameters_.arrivals = parameters_.label;
  steps_.assign(program.plan.steps.size(), {});
  outgoing_.clear();
  incoming_.clear();
  for (const Landing& landing : landings_) scratch_.give_back(landing.beside);
  landings_.clear();
  lent_.clear();
  waiting_ = unfinished_ = 0;
  const plan::ChunkLayout layout{parameters_.source.count + parameters_.data.count, program.plan.chunks,
                                 parameters_.cuts};
  for (std::uint32_t index = 0; index < steps_.size(); ++index) place(index, layout);
  for (const plan::Route& route : program.outgoing) outgoing_.push_back({&route});
  for (const plan::Route& route : program.incoming) incoming_.push_back({&route});
}

void Execution::place(std::uint32_t index, const plan::ChunkLayout& layout) {
  const Range range = layout.run(program_->plan.steps[index]);
  const std::size_t width = size_of(parameters_.data.dtype), first = parameters_.source.bytes().size();
  Step& step = steps_[index];
  step.begin = range.begin * width;
  step.end = range.end * width;
  std::byte* const memory = step.begin < first ? nullptr : parameters_.data.bytes().data() + (step.begin - first);
  if (program_->plan.steps[index].act != Act::send)
    step.into = memory;
  else
    step.from = step.begin < first ? parameters_.source.bytes().data() + step.begin : memory;
  const auto peer = static_cast<int>(program_->plan.steps[index].peer);
  step.segment = segment_bytes(step.end - step.begin, links_.frame_lengths(peer));
  // Empty ranges are not sent if all ranks know all counts, because then both ends skip them.
  step.segments = static_cast<std::uint32_t>((step.end - step.begin + step.segment - 1) / step.segment);
  if (step.segments == 0 && label_of(index).pairwise) step.segments = 1;
  if (step.segments > 0) ++unfinished_;
}

void Execution::advance() {
  if (waiting_ > 0) absorb_waiting();
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
    if (queue.outstanding == kWindow || step.posted - step.finished == kWidestSpan ||
        (!lands_beside && !may_touch(index, step.posted)))
      return;
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

/// A pairwise frame's label also has the length of the whole range, because different ranges may begin with equal
/// segments.
transport::Label Execution::label_of(std::uint32_t index) const noexcept {
  const bool leaves = program_->plan.steps[index].act == Act::send;
  transport::Label label = leaves ? parameters_.label : parameters_.arrivals;
  if (label.pairwise) label.signature += (steps_[index].end - steps_[index].begin) * 0x9e3779b97f4a7c15;
  return label;
}

void Execution::post(std::uint32_t index, std::uint32_t segment) {
  const PlanStep& planned = program_->plan.steps[index];
  const int peer = static_cast<int>(planned.peer);
  const std::uint64_t token = parameters_.first_token + token_of(index, segment);
  if (planned.act == Act::send) return send(index, {peer, label_of(index), steps_[index].sent(segment), token});
  const base::Bytes bytes = steps_[index].received(segment);
  if (planned.act == Act::receive) return links_.receive(peer, label_of(index), bytes, token);
  // Constructed in place. Copying a struct that was just stored in parts would wait for all stores before it, also for
  // those to the frame that was just sent, whose cache lines the peer now holds.
  landings_.emplace_back(index, segment, scratch_.take(bytes.size()));
  links_.receive(peer, label_of(index), landings_.back().beside.first(bytes.size()), token);
}

void Execution::send(std::uint32_t index, const transport::Frame& frame) {
  if (lending_ == nullptr || (lent_.empty() && !program_->lends[index])) return links_.send(frame);
  const auto lent = std::ranges::find_if(
      lent_, [&](const Lent& entry) { return token_of(entry.step, entry.segment) == frame.token; });
  if (lent == lent_.end()) return program_->lends[index] ? lending_->lend(frame) : links_.send(frame);
  const Lent back = *lent;
  lent_.erase(lent);
  if (!back.has_sum) std::memcpy(back.memory.bytes.data(), frame.bytes.data(), frame.bytes.size());
  lending_->reply(back.arrival, frame);
}

void Execution::take(std::span<const transport::Event> events) {
  for (const transport::Event& event : events) {
    account_for(event);
    advance();
    release_brief();
  }
  if (waiting_ > 0) copy_borrowed();
}

void Execution::account_for(const transport::Event& event) {
  const auto index = static_cast<std::uint32_t>((event.token - parameters_.first_token) >> 32);
  const auto segment = static_cast<std::uint32_t>(event.token);
  if (!event.arrival) return finish(index, segment);
  if (program_->plan.steps[index].act == Act::receive_reduce) {
    const auto landing =
        std::ranges::find_if(landings_, [&](const Landing& entry) { return entry.token() == event.token; });
    assert(landing != landings_.end());
    landing->arrived = event.bytes;
    landing->borrowed = true;
    if (lending_ != nullptr && program_->returns[index].step != plan::Return::kNone)
      landing->memory = lending_->reply_memory(event.token, static_cast<int>(program_->plan.steps[index].peer));
    ++waiting_;
    return;
  }
  const base::Bytes into = steps_[index].received(segment);
  if (!into.empty() && event.bytes.data() != into.data()) std::memcpy(into.data(), event.bytes.data(), into.size());
  links_.release(event.token);
  finish(index, segment);
}

void Execution::absorb_waiting() {
  for (std::size_t i = 0; i < landings_.size();) {
    if (landings_[i].arrived.empty() || !may_touch(landings_[i].step, landings_[i].segment)) {
      ++i;
      continue;
    }
    absorb(i);
    i = 0;  // the step that has just finished may be the one that an earlier landing waits for
  }
}

void Execution::absorb(std::size_t which) {
  const Landing landing = landings_[which];
  landings_[which] = landings_.back();
  landings_.pop_back();
  --waiting_;
  const plan::Return& back = program_->returns[landing.step];
  const std::uint64_t token = landing.token();
  const bool lends = landing.borrowed && !landing.memory.bytes.empty() && (back.at_once || landing.memory.keeps);
  if (lends && back.at_once)
    reduce_over(landing.step, landing.segment, landing.memory.bytes);
  else if (parameters_.has_payload)
    reduce(landing.step, landing.segment, landing.arrived);
  if (lends)
    lend(landing);
  else if (landing.borrowed)
    links_.release(token);
  scratch_.give_back(landing.beside);
  finish(landing.step, landing.segment);
}

void Execution::lend(const Landing& landing) {
  const plan::Return& back = program_->returns[landing.step];
  lent_.push_back({back.step, landing.segment, token_of(landing.step, landing.segment), landing.memory, back.at_once});
  keep_no_more_of(program_->plan.steps[landing.step].peer);
}

/// Gives up the oldest loans first, so that the segments that the sender has in flight stay (nearly) consecutive.
void Execution::keep_no_more_of(std::uint32_t peer) {
  const auto of_peer = [&](const auto& entry) { return program_->plan.steps[entry.step].peer == peer; };
  const auto is_kept = [&](const Landing& entry) { return entry.borrowed && of_peer(entry); };
  while (std::ranges::count_if(lent_, of_peer) + std::ranges::count_if(landings_, is_kept) > kMostKept) {
    auto lent = lent_.end();
    for (auto entry = lent_.begin(); entry != lent_.end(); ++entry)
      if (of_peer(*entry) && (lent == lent_.end() || entry->arrival < lent->arrival)) lent = entry;
    auto landing = landings_.end();
    for (auto entry = landings_.begin(); entry != landings_.end(); ++entry)
      if (is_kept(*entry) && (landing == landings_.end() || entry->token() < landing->token())) landing = entry;
    if (lent == lent_.end() || (landing != landings_.end() && landing->token() < lent->arrival)) {
      copy_aside(*landing);
    } else {
      links_.release(lent->arrival);
      lent_.erase(lent);
    }
  }
}

/// Gives up loans whose owner also needs the memory for other purposes, if the send has to wait for other steps.
void Execution::release_brief() {
  std::erase_if(lent_, [&](const Lent& entry) {
    if (!entry.memory.keeps) links_.release(entry.arrival);
    return !entry.memory.keeps;
  });
}

/// Copies arrivals that cannot be reduced yet and releases their memory, because the sender may need it to go on.
/// Memory that the sender needs only for the reply is kept.
void Execution::copy_borrowed() {
  for (Landing& landing : landings_) {
    if (!landing.borrowed) continue;
    if (landing.memory.keeps)
      keep_no_more_of(program_->plan.steps[landing.step].peer);
    else
      copy_aside(landing);
  }
}

void Execution::copy_aside(Landing& landing) {
  if (landing.arrived.data() != landing.beside.data())
    std::memcpy(landing.beside.data(), landing.arrived.data(), landing.arrived.size());
  landing.arrived = landing.beside.first(landing.arrived.size());
  landing.borrowed = false;
  links_.release(landing.token());
}

kernel::Reduction Execution::reduction_of(std::uint32_t index) const {
  kernel::Reduction reduction = parameters_.reduction;
  if (!program_->plan.steps[index].completes) reduction.divisor = 1;  // an average divides once, at the full sum
  return reduction;
}

void Execution::reduce(std::uint32_t index, std::uint32_t segment, base::ConstBytes arrived) const {
  const base::Bytes into = steps_[index].received(segment);
  const kernel::Reduction reduction = reduction_of(index);
  kernel::reduce(reduction, into.data(), arrived.data(), into.size() / size_of(reduction.dtype));
}

// Writes the sum into the peer's memory first: the transfer of those cache lines then overlaps with the additions.
void Execution::reduce_over(std::uint32_t index, std::uint32_t segment, base::Bytes back) const {
  const base::Bytes into = steps_[index].received(segment);
  const kernel::Reduction reduction = reduction_of(index);
  for (std::size_t at = 0; at < into.size(); at += kBlock) {
    const base::Bytes block = into.subspan(at, std::min(kBlock, into.size() - at));
    kernel::combine(reduction, back.data() + at, {block.data(), back.data() + at},
                    block.size() / size_of(reduction.dtype));
    std::memcpy(block.data(), back.data() + at, block.size());
  }
}

void Execution::finish(std::uint32_t index, std::uint32_t segment) {
  Step& step = steps_[index];
  assert(segment >= step.finished && segment - step.finished < kWidestSpan);
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

}  // namespace syncopate::collective::engine
