// Message lanes: every lane runs one message at a time, on an execution of its own over the links they all share.
#include "collective/group/message_lanes.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::collective::group {

namespace {

/// Tokens of an execution have the step in the upper half; these have one step, and the lane stands there.
constexpr int kLaneShift = 32;

plan::Program program_of(Act act, int peer) {
  return plan::compile({.chunks = 1, .steps = {{act, static_cast<std::uint32_t>(peer), 0, 1, false}}});
}

}  // namespace

MessageLanes::Lane::Lane(int sender, int receiver, std::size_t index, MessageLanes& lanes)
    : from(sender),
      to(receiver),
      first_token(std::uint64_t{index} << kLaneShift),
      program(sender == lanes.options_.rank ? program_of(Act::send, receiver) : program_of(Act::receive, sender)),
      execution(lanes.links_, lanes.scratch_) {}

void MessageLanes::add(std::uint64_t id, const Request& request) {
  const bool sends = request.to >= 0, receives = request.from >= 0;
  legs_left_[id] = static_cast<int>(sends) + static_cast<int>(receives);
  if (sends) add_leg({options_.rank, request.to}, {id, request.data, request.options.name});
  if (receives) add_leg({request.from, options_.rank}, {id, sends ? request.out : request.data, request.options.name});
}

void MessageLanes::add_leg(std::pair<int, int> way, Leg leg) {
  Lane*& lane = by_way_[way];
  if (lane == nullptr) lane = &lanes_.emplace_back(way.first, way.second, lanes_.size(), *this);
  lane->legs.push_back(std::move(leg));
  if (lane->legs.size() > 1) return;
  begin(*lane);
  finish(*lane);
}

void MessageLanes::begin(Lane& lane) {
  const Leg& leg = lane.legs.front();
  const std::string text = text_of_message(leg.tensor, {lane.from, lane.to}, leg.data);
  lane.record = {transport::membership::message_number(lane.from, lane.to, ++lane.count),
                 XXH3_64bits(text.data(), text.size()), text};
  lane.deadline = base::SteadyClock{}.now() + options_.timeout;
  control_.began(lane.record);
  lane.execution.begin(
      lane.program,
      {.data = leg.data, .label = {lane.record.number, lane.record.signature, true}, .first_token = lane.first_token});
  lane.execution.advance();
}

/// Goes on to the next message where one is over.
void MessageLanes::finish(Lane& lane) {
  while (!lane.legs.empty() && lane.execution.done()) {
    const auto message = legs_left_.find(lane.legs.front().message);
    if (--message->second == 0) {
      over_.push_back(message->first);
      legs_left_.erase(message);
    }
    lane.legs.pop_front();
    if (!lane.legs.empty()) begin(lane);
  }
}

std::vector<std::uint64_t> MessageLanes::wait(transport::Patience patience) {
  if (!over_.empty()) return std::exchange(over_, {});  // without an element there is nothing to wait for
  const auto events = links_.poll(first_deadline(), patience);
  for (const transport::Event& event : events) {
    Lane& lane = lanes_[event.token >> kLaneShift];
    lane.execution.take({&event, 1});
    finish(lane);
  }
  if (events.empty()) check_deadlines();
  return std::exchange(over_, {});
}

base::Time MessageLanes::first_deadline() const noexcept {
  base::Time first = base::kNever;
  for (const Lane& lane : lanes_)
    if (!lane.legs.empty()) first = std::min(first, lane.deadline);
  return first;
}

void MessageLanes::check_deadlines() const {
  const base::Time now = base::SteadyClock{}.now();
  for (const Lane& lane : lanes_) {
    if (lane.legs.empty() || now < lane.deadline) continue;
    const int peer = lane.execution.awaited_peer();
    throw Timeout(fmt::format("{} did not finish within {:.1f} s; rank {} waits for rank {}", lane.record.text,
                              base::seconds(options_.timeout), options_.rank, peer),
                  Where{options_.rank, peer, lane.record.text, lane.legs.front().tensor});
  }
}

void MessageLanes::clear() noexcept {
  for (Lane& lane : lanes_) lane.legs.clear();
  legs_left_.clear();
  over_.clear();
}

}  // namespace syncopate::collective::group
