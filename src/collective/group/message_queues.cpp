// Message queues: every queue runs one message at a time, on an execution of its own over the links they all share.
#include "collective/group/message_queues.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::collective::group {

namespace {

constexpr std::size_t kTag = 0, kCount = 8, kType = 16, kElements = Envelope::kBytes - Envelope::kRoom;

}  // namespace

Envelope::Wire Envelope::encode(std::int64_t tag, const ConstBuffer& data) {
  Wire wire{};
  base::put(wire, kTag, tag);
  base::put(wire, kCount, std::uint64_t{data.count});
  base::put(wire, kType, static_cast<std::uint8_t>(data.dtype));
  if (data.bytes().size() <= kRoom) std::ranges::copy(data.bytes(), wire.begin() + kElements);
  return wire;
}

Envelope Envelope::decode(const Wire& wire) {
  const auto count = base::get<std::uint64_t>(wire, kCount);
  const auto type = base::get<std::uint8_t>(wire, kType);
  if (type >= std::size(kDTypes) || count > SIZE_MAX / sizeof(double))
    throw Corrupt(fmt::format("a message with a tag has {} elements of type {}", count, type));
  return {base::get<std::int64_t>(wire, kTag), count, static_cast<DType>(type)};
}

std::uint64_t Envelope::signature_of(const Wire& wire) noexcept { return XXH3_64bits(wire.data(), wire.size()); }

std::string text_of_length(DType dtype, std::uint64_t count) {
  return fmt::format("{} x {} ({} bytes)", name_of(dtype), count, count * size_of(dtype));
}

namespace {

/// Tokens of an execution have the step in the upper half. Messages have one step, so the upper half holds the queue.
constexpr int kQueueShift = 32;
constexpr std::uint64_t kSignatureOfEnvelopes = 0x6567646c6f766e45;
// Limit of the memory for messages that arrive before their receives: of a group, on one rank.
constexpr std::size_t kMostUnmatchedBytes = std::size_t{1} << 30;

plan::Program program_of(Act act, int peer) {
  return plan::compile({.chunks = 1, .steps = {{act, static_cast<std::uint32_t>(peer), 0, 1, false}}});
}

}  // namespace

MessageQueues::Queue::Queue(int sender, int receiver, std::size_t index, MessageQueues& queues)
    : from(sender),
      to(receiver),
      sends(sender == queues.options_.rank),
      first_token(std::uint64_t{index} << kQueueShift),
      program(sends ? program_of(Act::send, receiver) : program_of(Act::receive, sender)),
      execution(queues.links_, queues.scratch_) {}

void MessageQueues::add(std::uint64_t id, const Request& request) {
  const bool sends = request.to >= 0, receives = request.from >= 0;
  const CollectiveOptions& options = request.options;
  legs_left_[id] = static_cast<int>(sends) + static_cast<int>(receives);
  if (sends) add_leg({options_.rank, request.to}, {id, request.data, {}, options.name, options.tag});
  if (receives) add_leg({request.from, options_.rank}, {id, {}, request.out, options.name, options.tag});
}

void MessageQueues::add_leg(std::pair<int, int> way, Leg leg) {
  Queue*& queue = by_way_[way];
  if (queue == nullptr) queue = &queues_.emplace_back(way.first, way.second, queues_.size(), *this);
  if (take_unmatched(*queue, leg)) return;
  queue->legs.push_back(std::move(leg));
  if (const auto last = std::prev(queue->legs.end()); !queue->sends && last->tag)
    queue->by_tag.emplace(*last->tag, last);
  if (queue->legs.size() > 1) return;
  queue->deadline = deadline_from_now();
  begin(*queue);
  finish(*queue);
}

void MessageQueues::begin(Queue& queue) {
  const Leg& leg = queue.legs.front();
  const std::string text =
      text_of_message(leg.tensor, leg.tag, {queue.from, queue.to}, queue.sends ? leg.sent : ConstBuffer(leg.received));
  queue.record = {transport::membership::message_number(queue.from, queue.to, ++queue.count),
                  XXH3_64bits(text.data(), text.size()), text};
  control_.began(queue.record);
  if (!leg.tag) return post(queue, Phase::whole, leg.sent, leg.received, queue.record.signature);
  if (queue.sends) queue.wire = Envelope::encode(*leg.tag, leg.sent);
  const base::Bytes wire(queue.wire);
  post(queue, Phase::envelope, wire, wire, kSignatureOfEnvelopes);
}

/// Sends `sent`, or receives into `received`, by the queue's direction.
void MessageQueues::post(Queue& queue, Phase phase, const ConstBuffer& sent, const Buffer& received,
                         std::uint64_t signature) {
  queue.phase = phase;
  queue.execution.begin(queue.program, {.data = queue.sends ? Buffer(nullptr, 0, sent.dtype) : received,
                                        .source = queue.sends ? sent : ConstBuffer(),
                                        .label = {queue.record.number, signature, true},
                                        .first_token = queue.first_token});
  queue.execution.advance();
}

/// Starts the next message when one has ended.
void MessageQueues::finish(Queue& queue) {
  while (!queue.legs.empty() && queue.execution.done()) {
    if (queue.phase == Phase::envelope && follow(queue)) continue;
    if (queue.sends || queue.phase == Phase::whole)
      end(queue, queue.legs.begin());
    else
      deliver(queue);
    if (!queue.legs.empty()) begin(queue);
  }
}

/// Begins to move the elements that follow an envelope; false if none follow.
bool MessageQueues::follow(Queue& queue) {
  if (queue.sends && queue.legs.front().sent.bytes().size() <= Envelope::kRoom) return false;
  std::byte* const memory = queue.sends ? nullptr : open(queue);
  const Envelope& envelope = queue.arriving.envelope;
  if (!queue.sends && envelope.is_whole()) {
    std::ranges::copy(Envelope::elements_in(queue.wire).first(envelope.bytes()), memory);
    return false;
  }
  post(queue, Phase::elements, queue.legs.front().sent, Buffer(memory, envelope.count, envelope.dtype),
       Envelope::signature_of(queue.wire));
  return true;
}

/// Memory for the elements of the message that the envelope announces: that of its receive, or else new memory.
std::byte* MessageQueues::open(Queue& queue) {
  const Envelope envelope = Envelope::decode(queue.wire);
  queue.arriving = {envelope, nullptr};
  queue.owner.reset();
  if (const auto leg = receive_of(queue, envelope.tag)) {
    check_length(queue, **leg, envelope);
    queue.owner = leg;
    return (*leg)->received.bytes().data();
  }
  reserve(queue, envelope);
  queue.arriving.elements = std::make_unique_for_overwrite<std::byte[]>(envelope.bytes());
  return queue.arriving.elements.get();
}

/// Ends the receive of a message that has arrived. A message without one is kept, unless its receive was added while it
/// arrived.
void MessageQueues::deliver(Queue& queue) {
  if (queue.owner) return end(queue, *queue.owner);
  const std::int64_t tag = queue.arriving.envelope.tag;
  queue.unmatched.emplace(tag, std::move(queue.arriving));
  const auto leg = receive_of(queue, tag);
  if (!leg || !take_unmatched(queue, **leg)) return;
  remove(queue, *leg);
  queue.deadline = deadline_from_now();
}

/// Ends a receive whose message has arrived before it.
bool MessageQueues::take_unmatched(Queue& queue, const Leg& leg) {
  if (queue.unmatched.empty() || !leg.tag) return false;
  const auto found = queue.unmatched.lower_bound(*leg.tag);
  if (found == queue.unmatched.end() || found->first != *leg.tag) return false;
  const auto& [envelope, elements] = found->second;
  check_length(queue, leg, envelope);
  std::copy_n(elements.get(), envelope.bytes(), leg.received.bytes().data());
  release(envelope);
  queue.unmatched.erase(found);
  end_leg(leg.message);
  return true;
}

void MessageQueues::check_length(const Queue& queue, const Leg& leg, const Envelope& sent) const {
  if (sent.count == leg.received.count && sent.dtype == leg.received.dtype) return;
  const std::string text = text_of_message(leg.tensor, leg.tag, {queue.from, queue.to}, leg.received);
  throw Mismatch(fmt::format("message with tag {}: rank {} sent {}; rank {} receives {}", sent.tag, queue.from,
                             text_of_length(sent.dtype, sent.count), queue.to,
                             text_of_length(leg.received.dtype, leg.received.count)),
                 Where{options_.rank, queue.from, text, leg.tensor});
}

void MessageQueues::reserve(const Queue& queue, const Envelope& envelope) {
  if (envelope.bytes() > kMostUnmatchedBytes - std::min(unmatched_bytes_, kMostUnmatchedBytes))
    throw Mismatch(
        fmt::format("rank {} keeps {} bytes of messages whose receives are not posted, and the next one, from "
                    "rank {} with tag {}, has {}; allowed: {} bytes in total, so post receives earlier",
                    options_.rank, unmatched_bytes_, queue.from, envelope.tag,
                    text_of_length(envelope.dtype, envelope.count), kMostUnmatchedBytes),
        Where{options_.rank, queue.from, queue.record.text, {}});
  unmatched_bytes_ += envelope.bytes() + sizeof(Unmatched);
}

void MessageQueues::release(const Envelope& envelope) noexcept {
  unmatched_bytes_ -= envelope.bytes() + sizeof(Unmatched);
}

/// The earliest with this tag.
std::optional<std::list<MessageQueues::Leg>::iterator> MessageQueues::receive_of(Queue& queue, std::int64_t tag) {
  const auto found = queue.by_tag.lower_bound(tag);
  if (found == queue.by_tag.end() || found->first != tag) return std::nullopt;
  return found->second;
}

/// A receive is the earliest with its tag.
void MessageQueues::remove(Queue& queue, std::list<Leg>::iterator leg) {
  if (!queue.sends && leg->tag) queue.by_tag.erase(queue.by_tag.lower_bound(*leg->tag));
  queue.legs.erase(leg);
}

void MessageQueues::end(Queue& queue, std::list<Leg>::iterator leg) {
  const std::uint64_t message = leg->message;
  remove(queue, leg);
  queue.deadline = deadline_from_now();
  end_leg(message);
}

void MessageQueues::end_leg(std::uint64_t message) {
  const auto left = legs_left_.find(message);
  if (--left->second > 0) return;
  over_.push_back(message);
  legs_left_.erase(left);
}

base::Time MessageQueues::deadline_from_now() const { return options_.clock->now() + options_.timeout->load(); }

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
    throw Timeout(
        fmt::format("{} did not finish within the timeout of {:.1f} s; rank {} waits for rank {}{}", queue.record.text,
                    base::seconds(options_.timeout->load()), options_.rank, peer, text_of_unmatched(queue)),
        Where{options_.rank, peer, queue.record.text, queue.legs.front().tensor});
  }
}

std::string MessageQueues::text_of_unmatched(const Queue& queue) {
  constexpr std::size_t kShown = 8;
  if (queue.unmatched.empty()) return {};
  std::vector<std::int64_t> tags;
  for (const auto& [tag, message] : queue.unmatched)
    if (tags.size() < kShown) tags.push_back(tag);
  return fmt::format(", {} of whose messages no receive has taken (tags {}{})", queue.unmatched.size(),
                     fmt::join(tags, ", "), queue.unmatched.size() > kShown ? " …" : "");
}

void MessageQueues::clear() noexcept {
  for (Queue& queue : queues_) {
    queue.by_tag.clear();
    queue.legs.clear();
    queue.unmatched.clear();
  }
  unmatched_bytes_ = 0;
  legs_left_.clear();
  over_.clear();
}

}  // namespace syncopate::collective::group
