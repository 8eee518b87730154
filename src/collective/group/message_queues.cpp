// Message queues: every queue runs one message at a time, on an execution of its own over the links they all share.
#include "collective/group/message_queues.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::collective::group {

namespace {

/// Tokens of an execution have the step in the upper half. Messages have one step, so the upper half holds the queue.
constexpr int kQueueShift = 32;

plan::Program program_of(Act act, int peer) {
  return plan::compile({.chunks = 1, .steps = {{act, static_cast<std::uint32_t>(peer), 0, 1, false}}});
}

}  // namespace

MessageQueues::Queue::Queue(int sender, int receiver, std::size_t index, MessageQueues& queues)
    : from(sender),
      to(receiver),
      first_token(std::uint64_t{index} << kQueueShift),
      program(sender == queues.options_.rank ? program_of(Act::send, receiver) : program_of(Act::receive, sender)),
      execution(queues.links_, queues.scratch_) {}

void MessageQueues::add(std::uint64_t id, const Request& request) {
  const bool sends = request.to >= 0, receives = request.from >= 0;
  legs_left_[id] = static_cast<int>(sends) + static_cast<int>(receives);
  if (sends) add_leg({options_.rank, request.to}, {id, request.data, request.options.name});
  if (receives) add_leg({request.from, options_.rank}, {id, sends ? request.out : request.data, request.options.name});
}

void MessageQueues::add_leg(std::pair<int, int> way, Leg leg) {
  Queue*& queue = by_way_[way];
  if (queue == nullptr) queue = &queues_.emplace_back(way.first, way.second, queues_.size(), *this);
  queue->legs.push_back(std::move(leg));
  if (queue->legs.size() > 1) return;
  begin(*queue);
  finish(*queue);
}

void MessageQueues::begin(Queue& queue) {
  const Leg& leg = queue.legs.front();
  const std::string text = text_of_message(leg.tensor, {queue.from, queue.to}, leg.data);
  queue.record = {transport::membership::message_number(queue.from, queue.to, ++queue.count),
                  XXH3_64bits(text.data(), text.size()), text};
  queue.deadline = options_.clock->now() + options_.timeout->load();
  control_.began(queue.record);
  queue.execution.begin(queue.program, {.data = leg.data,
                                        .label = {queue.record.number, queue.record.signature, true},
                                        .first_token = queue.first_token});
  queue.execution.advance();
}

/// Starts the next message when one has ended.
void MessageQueues::finish(Queue& queue) {
  while (!queue.legs.empty() && queue.execution.done()) {
    const auto message = legs_left_.find(queue.legs.front().message);
    if (--message->second == 0) {
      over_.push_back(message->first);
      legs_left_.erase(message);
    }
    queue.legs.pop_front();
    if (!queue.legs.empty()) begin(queue);
  }
}

std::vector<std::uint64_t> MessageQueues::wait(transport::Patience patience, base::Time until) {
  if (!over_.empty()) return std::exchange(over_, {});  // an empty message needs no wait
  const auto events = links_.poll(std::min(first_deadline(), until), patience);
  for (const transport::Event& event : events) {
    Queue& queue = queues_[event.token >> kQueueShift];
    queue.execution.take({&event, 1});
    finish(queue);
  }
  if (events.empty()) check_deadlines();
  return std::exchange(over_, {});
}

base::Time MessageQueues::first_deadline() const noexcept {
  base::Time first = base::kNever;
  for (const Queue& queue : queues_)
    if (!queue.legs.empty()) first = std::min(first, queue.deadline);
  return first;
}

void MessageQueues::check_deadlines() const {
  const base::Time now = options_.clock->now();
  for (const Queue& queue : queues_) {
    if (queue.legs.empty() || now < queue.deadline) continue;
    const int peer = queue.execution.awaited_peer();
    throw Timeout(fmt::format("{} did not finish within the timeout of {:.1f} s; rank {} waits for rank {}",
                              queue.record.text, base::seconds(options_.timeout->load()), options_.rank, peer),
                  Where{options_.rank, peer, queue.record.text, queue.legs.front().tensor});
  }
}

void MessageQueues::clear() noexcept {
  for (Queue& queue : queues_) queue.legs.clear();
  legs_left_.clear();
  over_.clear();
}

}  // namespace syncopate::collective::group
