// The worker's half of a block: adds updates up, sends requests when the consistency model requires it, takes answers.
#include "server/dense/worker_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "compress/sparse/packet.hpp"
#include "kernel/norm.hpp"
#include "kernel/reduce.hpp"
#include "server/dense/answer_stream.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

double norm(std::span<const float> values) {
  return std::sqrt(kernel::squared_norm(DType::f32, std::as_bytes(values).data(), values.size()));
}

AnswerTerms terms_of(const BlockRequest& request) {
  return std::visit([](const auto& of) { return of.answer; }, request);
}

void add_to(std::span<float> values, std::span<const float> more) {
  kernel::reduce({}, std::as_writable_bytes(values).data(), std::as_bytes(more).data(), values.size());
}

}  // namespace

WorkerBlock::WorkerBlock(const JobRules& rules, const Block& block, std::span<float> weights, std::size_t worker)
    : rules_(rules), block_(block), weights_(weights), worker_(worker) {
  for (auto* memory : {&update_, &travelling_}) *memory = std::make_shared<std::vector<float>>(weights.size());
  if (block.answers_are_coded) follower_ = compress::coder_of(rules.answers, true);
  if ((follower_ && !rules.in_lockstep()) || rules.storages.adopt) followed_.resize(weights.size());
  if (!block.is_coded) return;
  coder_ = compress::packet_coder_of(rules.codec);
  const compress::Tensor tensor = tensor_of(block, Buffer(std::span(*update_)));
  for (auto* state : {&kept_, &next_}) state->resize(compress::state_bytes(rules.codec, tensor, true, 1));
}

BlockRequest WorkerBlock::first_request(Clock from) {
  own_ = sent_ = whole_ = from;
  const Clock staleness = rules_.consistency.staleness.value_or(from);
  return make_request({.least = std::max<Clock>(0, from - staleness), .step = step_to_ask(), .version = version_});
}

void WorkerBlock::add(std::span<const float> update) {
  if (rules_.storages.accumulate) {
    if (!has_update_) std::ranges::fill(*update_, 0.0F);
    rules_.storages.accumulate({block_.table, block_.elements}, update, *update_);
  } else if (has_update_)
    add_to(*update_, update);
  else
    std::ranges::copy(update, update_->begin());
  has_update_ = true;
}

void WorkerBlock::end_step(double rate) noexcept {
  ended_ = ++own_;
  rate_ = rate;
}

double WorkerBlock::significance() const {
  if (rules_.no_values) return static_cast<double>(own_ - sent_) * rules_.no_values->significance;
  return has_update_ ? norm(*update_) / norm(weights_) : 0;
}

ClockView WorkerBlock::clock_view() const noexcept {
  return {.own = own_, .fetched = fetched_, .allowed = allowed_, .wanted = wanted_, .sent = whole_, .clocks = clocks_};
}

std::optional<BlockRequest> WorkerBlock::request() {
  if (request_) return std::nullopt;
  ClockView now = clock_view();
  const bool must = must_fetch(rules_.consistency, now);
  const bool is_required = must || whole_ < std::min(wanted_, own_);  // of steps that it has made
  if (!is_required && sent_ == own_) return std::nullopt;
  if (rules_.consistency.travels_early) now.significance = significance();
  if (!travels(rules_.consistency, now)) return std::nullopt;
  return make_request(
      {.least = must ? own_ - *rules_.consistency.staleness : 0, .step = step_to_ask(), .version = version_},
      !is_required && has_update_ && rules_.consistency.part);
}

std::optional<BlockRequest> WorkerBlock::last_request() {
  is_ending_ = true;
  if (request_ || is_finished()) return std::nullopt;
  return make_request({.least = own_, .version = kExact});
}

Clock WorkerBlock::step_to_ask() const noexcept { return rules_.consistency.last_step ? own_ : 0; }

BlockRequest WorkerBlock::make_request(const AnswerTerms& terms, bool in_part) {
  if (is_all_sent()) return request_.emplace(Fetch{.block = block_.index, .answer = terms});
  piece_ = sent_ == own_ ? piece_ + 1 : 0;
  Push push{.block = block_.index,
            .first = sent_,
            .last = own_,
            .piece = piece_,
            .rate = has_update_ || ended_ == own_ ? rate_ : kMissed,
            .answer = terms};
  if (in_part ? divide_update() : has_update_) {
    if (!in_part) std::swap(update_, travelling_);
    if (in_part && !coder_) push.update = packed_update();
    push.is_packed = !push.update.bytes.empty();
    if (!push.is_packed) push.update = take_update();
  }
  has_update_ = in_part;
  sent_ = own_;
  if (!in_part) whole_ = own_;
  push.left = own_ - whole_;
  return request_.emplace(std::move(push));
}

/// Each element stays or travels as a whole, so that nothing is rounded. Returns whether one travels.
bool WorkerBlock::divide_update() {
  std::ranges::fill(*travelling_, 0.0F);
  rules_.consistency.part(clock_view(), weights_, *update_, *travelling_);
  bool is_any = false;
  for (std::size_t i = 0; i < update_->size(); ++i) {
    if ((*travelling_)[i] == 0) continue;
    (*travelling_)[i] = std::exchange((*update_)[i], 0.0F);
    is_any = true;
  }
  return is_any;
}

/// Empty if the elements themselves take fewer bytes.
Payload WorkerBlock::packed_update() const {
  compress::sparse::Selection selection;
  const std::vector<float>& values = *travelling_;
  selection.add_where(values.data(), {0, values.size()}, [&](std::size_t i) { return values[i] != 0; });
  auto wire = std::make_shared<std::vector<std::byte>>(
      compress::sparse::most_packet_bytes({}, selection.size(), values.size()));
  const std::size_t bytes = compress::sparse::write_packet({}, selection, values.size(), *wire);
  if (bytes >= values.size() * sizeof(float)) return {};
  const base::ConstBytes packet = base::ConstBytes(*wire).first(bytes);
  return {std::move(wire), packet};
}

/// Values that a packet omits stay here, for the next one. An update that is not finite is sent and leaves no residual:
/// the residual would never be finite again.
Payload WorkerBlock::take_update() {
  if (!coder_) return {travelling_, std::as_bytes(std::span(*travelling_))};
  compress::Tensor tensor = tensor_of(block_, Buffer(std::span(*travelling_)));
  if (rules_.codec.codec->wants_weights) tensor.weights = Buffer(weights_);
  tensor.kept = kept_;
  tensor.next = next_;
  const std::size_t head = rules_.numbers_packets() ? kNumberBytes : 0;
  const std::size_t most = compress::wire_bytes_of(rules_.codec, {&tensor, 1}, true);
  auto wire = std::make_shared<std::vector<std::byte>>(head + most);
  if (head > 0) base::put(*wire, 0, packets_);
  const compress::StepInfo info{.step = head > 0 ? packets_ : static_cast<std::uint64_t>(own_ - 1),
                                .rank = static_cast<int>(worker_),
                                .ranks = 1,
                                .packet = rules_.in_lockstep() ? std::nullopt : std::optional(packets_)};
  const compress::Round round = coder_->begin({&tensor, 1}, info, std::span(*wire).subspan(head));
  ++packets_;
  if (compress::is_finite(rules_.codec, tensor, true)) {
    if (!velocity_.empty()) mask_sent();
    kept_.swap(next_);
  }
  const base::ConstBytes payload = round.payload.bytes();
  const base::ConstBytes packet = head > 0 ? base::ConstBytes(*wire).first(head + payload.size()) : payload;
  return {std::move(wire), packet};
}

/// An element was sent if its residual is not the whole sum of its earlier residual and the update.
void WorkerBlock::mask_sent() const {
  const auto residual = [&](const std::vector<std::byte>& state) {
    return reinterpret_cast<const float*>(state.data() + state.size()) - weights_.size();
  };
  const float *const before = residual(kept_), *const after = residual(next_);
  for (std::size_t i = 0; i < velocity_.size(); ++i)
    if (after[i] != (*travelling_)[i] + before[i]) velocity_[i] = 0;
}

void WorkerBlock::receive(Weights answer) {
  const bool is_coded = answer.is_coded;
  const bool is_packets = is_coded && follower_ && !kept_part(answer.version);
  if (!is_packets && (is_coded || answer.values.bytes.size() != weights_.size_bytes()))
    throw Corrupt(fmt::format("{} bytes for a block of {} elements", answer.values.bytes.size(), weights_.size()));
  if (answer.is_unasked ? request_ || is_ending_ : !answers_request(answer)) return;
  const AnswerTerms terms = request_ ? terms_of(*request_) : AnswerTerms{};
  request_.reset();
  if (kept_part(answer.version)) return take_part_of(answer);
  fetched_ = std::max(fetched_, answer.least);
  allowed_ = std::max(allowed_, answer.step);
  if (arrived_ && is_coded) follow(*arrived_);  // packets lead from one version to the next
  version_ = answer.version;
  arrived_ = std::move(answer);
  has_weights_ = true;
  is_exact_ = terms.version == kExact || (!follower_ && !rules_.storages.answer && !rules_.storages.adopt);
  if (rules_.in_lockstep()) adopt_arrived();
}

/// Not one to an earlier request, which was sent twice.
bool WorkerBlock::answers_request(const Weights& answer) const {
  return request_ && answer.last >= sent_ && (answer.last > sent_ || answer.piece >= piece_) &&
         kept_part(answer.version) == kept_part(terms_of(*request_).version);
}

/// A part that an earlier call has requested may be of an earlier step.
void WorkerBlock::gather(std::vector<std::span<float>> parts) {
  ignores_part_ = request_ && kept_part(terms_of(*request_).version);
  parts_ = std::move(parts);
  gathered_ = 0;
  gathered_at_ = 0;
}

/// Sends the remaining update first. A part is fetched when no other request is pending, so that it changes nothing
/// here.
std::optional<BlockRequest> WorkerBlock::gathering_request() {
  if (request_ || has_gathered()) return std::nullopt;
  const bool is_due = !is_all_sent() || fetched_ < own_;
  return make_request({.least = own_, .version = is_due ? version_ : kKept - gathered_});
}

void WorkerBlock::take_part_of(const Weights& answer) {
  if (std::exchange(ignores_part_, false) || gathered_ == parts_.size()) return;
  std::memcpy(parts_[gathered_++].data(), answer.values.bytes.data(), answer.values.bytes.size());
  gathered_at_ = std::max(gathered_at_, answer.least);
}

std::size_t WorkerBlock::own_state_bytes() const noexcept {
  if (!coder_) return 0;
  return kept_.size() - compress::feedback_bytes(rules_.codec.feedback, {.values = Buffer(weights_)});
}

void WorkerBlock::restore(base::ConstBytes left_out, std::uint64_t packets) {
  std::ranges::copy(left_out, kept_.begin());
  packets_ = packets;
}

/// Updates this block's copy of the server's weights from the answer.
void WorkerBlock::follow(const Weights& answer) {
  const std::span<float> known = followed_.empty() ? weights_ : std::span(followed_);
  if (!answer.is_coded)
    std::ranges::copy(answer.values.bytes, std::as_writable_bytes(known).begin());
  else
    follow_packets(answer, known);
}

/// The answer's last packet leads to its version, those before it to the versions before that.
void WorkerBlock::follow_packets(const Weights& answer, std::span<float> known) const {
  const std::vector<base::ConstBytes> packets = packets_of(answer.values.bytes);
  std::uint64_t version = answer.version - packets.size();
  for (const base::ConstBytes packet : packets)
    compress::add_packet(rules_.answers, *follower_, packet, {block_.key, ++version}, known);
}

/// A worker reads its own writes: the answer holds every update that it had sent by then. Later updates are added
/// again, except in lockstep, where they are gradients.
void WorkerBlock::adopt_arrived() {
  if (!arrived_) return;
  has_changed_ = true;
  follow(*arrived_);
  arrived_.reset();
  if (rules_.storages.adopt) return adopt_by_storage();
  if (!followed_.empty()) std::ranges::copy(followed_, weights_.begin());
  if (!rules_.in_lockstep()) add_own_to(weights_);
}

/// The first weights and the last ones are taken as they are.
void WorkerBlock::adopt_by_storage() {
  std::vector<float> arrived = followed_;
  if (!rules_.in_lockstep()) add_own_to(arrived);
  if (is_exact_ || !std::exchange(has_adopted_, true))
    std::ranges::copy(arrived, weights_.begin());
  else
    rules_.storages.adopt({block_.table, block_.elements}, arrived, weights_);
}

/// The updates that the server had not received when it answered.
void WorkerBlock::add_own_to(std::span<float> weights) const {
  const auto* const push = request_ ? std::get_if<Push>(&*request_) : nullptr;
  if (push != nullptr && !push->update.bytes.empty()) add_to(weights, *travelling_);
  if (has_update_) add_to(weights, *update_);
}

bool WorkerBlock::settle() {
  adopt_arrived();
  return std::exchange(has_changed_, false);
}

}  // namespace syncopate::server
