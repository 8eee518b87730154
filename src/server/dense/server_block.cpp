// The server's half of a block: takes updates once, applies them, and determines which workers can be answered.
#include "server/dense/server_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel/reduce.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

/// Elements that are added up and applied at a time, in the cache.
constexpr std::size_t kTile = 4096;

std::byte* bytes_of(float* values) { return reinterpret_cast<std::byte*>(values); }

}  // namespace

ServerBlock::ServerBlock(const JobRules& rules, const Block& block, bool spared)
    : rules_(rules),
      spared_(spared),
      server_(block.server),
      view_{block.table, block.elements},
      key_(block.key),
      selects_alike_(block.is_coded && rules.codec.codec->selects_alike),
      corrects_(block.is_coded && rules.corrects()),
      is_joint_(block.is_joint),
      weights_(block.elements.size()),
      workers_(rules.workers),
      answers_(rules, block) {
  if (block.is_coded) coder_ = compress::packet_coder_of(rules.codec);
  complete_ = rules.in_lockstep() ? rules.first_step : 0;
  for (WorkerState& worker_state : workers_) worker_state.applied = worker_state.clock = rules.first_step;
  // A packet is decoded as a whole, and a storage gets whole blocks.
  const bool is_whole = coder_ || is_joint_ || rules.updates_by_storage() || rules.consistency.part;
  if (is_whole || rules.in_lockstep()) scratch_.resize(is_whole ? weights_.size() : std::min(kTile, weights_.size()));
  kept_.resize(rules.storages.kept * weights_.size());
  if (rules.storages.answer) shown_.resize(weights_.size());
  if (!rules.in_lockstep()) return;
  senders_.reserve(workers_.size());
  for (std::size_t s = 0; s < rules.optimizer.state.size(); ++s) state_[s].resize(weights_.size());
}

static_assert(kMostKeptParts >= 1 + optim::kMostStates);

void ServerBlock::initialise(base::ConstBytes values, std::uint64_t part) {
  require_length(values);
  require_part(part);
  if (has_weights_) return;
  std::ranges::copy(values, std::as_writable_bytes(std::span(part == 0 ? weights_ : state_[part - 1])).begin());
  has_weights_ = part == 0;
}

void ServerBlock::require_part(std::uint64_t part) const {
  if (part > 0 && (part > optim::kMostStates || state_[part - 1].empty()))
    throw Corrupt(fmt::format("part {} of a block exceeds the states that its optimizer keeps here", part));
}

void ServerBlock::require_length(base::ConstBytes values) const {
  if (values.size() != weights_.size() * sizeof(float))
    throw Corrupt(fmt::format("{} bytes for a block of {} elements", values.size(), weights_.size()));
}

/// The decoded update is added to `scratch_`.
void ServerBlock::begin_decoding() {
  if (rules_.in_lockstep() || rules_.updates_by_storage())
    std::ranges::fill(scratch_, 0.0F);
  else
    std::ranges::copy(weights_, scratch_.begin());
}

/// A held update must not fail later, after the others have come, so it is checked on arrival. A coded one that is not
/// held is decoded once: it is added to a copy of the weights, which replaces them in `add_checked`.
void ServerBlock::require_sound(base::ConstBytes update, Clock step) {
  if (update.empty()) return;
  if (!coder_) return require_length(update);
  begin_decoding();
  auto number = static_cast<std::uint64_t>(step);
  if (rules_.numbers_packets()) {
    if (update.size() < kNumberBytes) throw Corrupt(fmt::format("a numbered packet has {} bytes", update.size()));
    number = base::get<std::uint64_t>(update, 0);
    update = update.subspan(kNumberBytes);
  }
  compress::add_packet(rules_.codec, *coder_, update, {key_, number}, scratch_);
}

void ServerBlock::require_sound(const Push& push) {
  if (!push.is_packed) return require_sound(push.update.bytes, push.last - 1);
  if (!rules_.consistency.part || coder_ || rules_.in_lockstep())
    throw Corrupt("an update is packed, but the job sends whole ones or codes them");
  const base::ConstBytes rest = compress::sparse::read_packet({}, weights_.size(), push.update.bytes, part_);
  if (!rest.empty()) throw Corrupt(fmt::format("{} bytes follow a packed update", rest.size()));
  begin_decoding();
  for (std::size_t i = 0; i < part_.indices.size(); ++i) scratch_[part_.indices[i]] += part_.values[i];
}

void ServerBlock::receive(std::size_t worker, const Push& push, double now_s) {
  WorkerState& worker_state = workers_[worker];
  if (const auto part = kept_part(push.answer.version)) require_part(*part);
  if (push.last > worker_state.applied || (push.last == worker_state.applied && push.piece > worker_state.piece))
    apply(worker_state, worker, push, now_s);
  ask(worker, push.answer);
}

void ServerBlock::apply(WorkerState& worker_state, std::size_t worker, const Push& push, double now_s) {
  require_next(worker, push);
  if (push.last > worker_state.applied) measure(worker_state, push, now_s);
  worker_state.applied = push.last;
  worker_state.piece = push.piece;
  worker_state.clock = std::max(worker_state.clock, push.last - push.left);
  if (rules_.in_lockstep())
    hold(worker_state, push);
  else
    add_checked(push.update.bytes, coder_ || push.is_packed);
}

void ServerBlock::measure(WorkerState& worker_state, const Push& push, double now_s) {
  const auto steps = static_cast<double>(push.last - worker_state.applied);
  if (worker_state.answered_s) worker_state.pace.step_s = (now_s - *worker_state.answered_s) / steps;
  worker_state.pace.pushed_s = now_s;
}

void ServerBlock::require_next(std::size_t worker, const Push& push) {
  if (push.first != workers_[worker].applied)
    throw Mismatch(fmt::format("worker {} sent the update of steps {} to {}, where step {} is next", worker, push.first,
                               push.last, workers_[worker].applied));
  if (push.left > push.last || (rules_.in_lockstep() && (push.left > 0 || push.piece > 0)))
    throw Corrupt(fmt::format("piece {} of an update of step {} leaves {} steps", push.piece, push.last, push.left));
  require_sound(push);
  if (push.rate == kMissed && push.update.bytes.empty()) return;
  if (!std::isfinite(push.rate) || push.rate < 0) throw Corrupt(fmt::format("a learning rate of {}", push.rate));
  for (const WorkerState& other : workers_)
    if (other.held && other.held_for == push.last - 1 && other.rate != push.rate)
      throw Mismatch(fmt::format("worker {} updates step {} with a learning rate of {}, another one with {}", worker,
                                 push.last - 1, push.rate, other.rate));
}

/// The worker missed the steps of a push before its last one. A step that ended without the worker is not repeated.
void ServerBlock::hold(WorkerState& worker_state, const Push& push) {
  if (push.last > complete_ && push.rate != kMissed) {
    worker_state.held = push.update;
    worker_state.held_for = push.last - 1;
    worker_state.rate = push.rate;
  }
  complete_steps();
}

void ServerBlock::ask(std::size_t worker, const AnswerTerms& terms) {
  if (const auto part = kept_part(terms.version)) require_part(*part);
  workers_[worker].asks = terms.least;
  workers_[worker].version = terms.version;
  workers_[worker].step = terms.step;
  workers_[worker].may_be_sent = false;
}

/// A step is complete when every worker that takes part has sent its message of it.
bool ServerBlock::is_complete() const {
  const auto lags = [&](const WorkerState& worker_state) {
    return worker_state.takes_part && worker_state.clock <= complete_;
  };
  return std::ranges::any_of(workers_, &WorkerState::takes_part) && std::ranges::none_of(workers_, lags);
}

void ServerBlock::complete_steps() {
  while (!is_joint_ && is_complete()) {
    skip_to(next_step());
    apply_step();
  }
}

/// A step without an update changes nothing, so that a worker may join, or skip steps, at any distance.
Clock ServerBlock::next_step() const {
  Clock next = kMostClock;
  for (const WorkerState& worker_state : workers_) {
    if (worker_state.takes_part) next = std::min(next, worker_state.clock - 1);
    if (worker_state.held && worker_state.held_for >= complete_) next = std::min(next, worker_state.held_for);
  }
  return next;
}

void ServerBlock::skip_to(Clock step) {
  if (step < complete_)
    throw Corrupt(fmt::format("a block that has ended {} steps returns to step {}", complete_, step));
  complete_ = step;
}

void ServerBlock::find_senders() {
  senders_.clear();
  for (WorkerState& worker_state : workers_)
    if (worker_state.held && worker_state.held_for == complete_) senders_.push_back(&worker_state);
}

void ServerBlock::apply_step() {
  find_senders();
  for (std::size_t begin = 0; begin < weights_.size() && !senders_.empty(); begin += scratch_.size()) {
    const Range tile{begin, std::min(begin + scratch_.size(), weights_.size())};
    const std::span<float> sum = std::span(scratch_).first(tile.size());
    average(tile, sum);
    if (rules_.storages.apply) {
      rules_.storages.apply(view_, sum, senders_.front()->rate, kept_, weights_);
      continue;
    }
    const optim::TensorSlice part = slice(tile, sum);
    if (rules_.optimizer.prepare != nullptr) rules_.optimizer.prepare(step_of(1), part);
    rules_.optimizer.update(step_of(1), part);
  }
  end_step();
}

/// Blocks of one table can have different senders, if a worker was lost between them.
std::vector<optim::Squares> ServerBlock::prepare_step() {
  find_senders();
  average({0, weights_.size()}, scratch_);
  const optim::TensorSlice whole = slice({0, weights_.size()}, scratch_);
  if (rules_.optimizer.prepare != nullptr && !senders_.empty()) rules_.optimizer.prepare(step_of(1), whole);
  std::vector<optim::Squares> squares;
  for (std::size_t at = 0; at < weights_.size(); at += optim::kBlock)
    squares.push_back(optim::squares_of(whole.cut({at, std::min(at + optim::kBlock, weights_.size())})));
  is_prepared_ = true;
  return squares;
}

void ServerBlock::finish_step(Clock step, double trust) {
  skip_to(step);
  if (!is_joint_ || !is_complete()) throw Corrupt("a record applies a step of a block that is not complete");
  if (!is_prepared_) static_cast<void>(prepare_step());
  if (!senders_.empty()) rules_.optimizer.update(step_of(trust), slice({0, weights_.size()}, scratch_));
  is_prepared_ = false;
  end_step();
}

void ServerBlock::end_step() {
  ++complete_;
  if (!senders_.empty()) changed();
  for (WorkerState* worker_state : senders_) worker_state->held.reset();
}

/// The average is over the workers that have sent an update, added up in their order: equal bits from run to run.
void ServerBlock::average(Range tile, std::span<float> sum) {
  std::ranges::fill(sum, 0.0F);
  if (senders_.empty()) return;
  if (rules_.storages.combine) return combine_decoded(sum);
  if (selects_alike_)
    add_selected_alike(sum);
  else
    for (const WorkerState* worker_state : senders_) add(worker_state->held->bytes, tile, sum.data());
  kernel::finish({.divisor = static_cast<int>(senders_.size())}, bytes_of(sum.data()), tile.size());
}

/// The step is not applied yet.
optim::Step ServerBlock::step_of(double trust) const {
  return {.with = rules_.with,
          .at = {.rate = senders_.front()->rate, .step = static_cast<std::uint64_t>(complete_) + 1},
          .corrected = corrects_,
          .spared = spared_,
          .trust = trust};
}

optim::TensorSlice ServerBlock::slice(Range tile, std::span<float> gradient) {
  optim::TensorSlice part{std::span(weights_).subspan(tile.begin, tile.size()), gradient};
  for (std::size_t s = 0; s < state_.size(); ++s)
    part.state[s] = state_[s].empty() ? nullptr : state_[s].data() + tile.begin;
  return part;
}

void ServerBlock::add_checked(base::ConstBytes update, bool is_decoded) {
  if (!update.empty() && rules_.updates_by_storage()) return add_by_storage(update, is_decoded);
  if (!is_decoded || update.empty()) return add(update, {0, weights_.size()}, weights_.data());
  changed();
  weights_.swap(scratch_);
}

void ServerBlock::add_by_storage(base::ConstBytes update, bool is_decoded) {
  if (!is_decoded) std::memcpy(scratch_.data(), update.data(), update.size());
  if (rules_.storages.combine) {
    decoded_.assign(1, scratch_);
    const std::span<const float> alone(decoded_.front());
    rules_.storages.combine(view_, {&alone, 1}, scratch_);
  }
  changed();
  if (rules_.storages.apply)
    rules_.storages.apply(view_, scratch_, 0, kept_, weights_);
  else
    kernel::reduce({}, bytes_of(weights_.data()), std::as_bytes(std::span(scratch_)).data(), weights_.size());
}

/// Decodes each sender's update by itself.
void ServerBlock::combine_decoded(std::span<float> combined) {
  std::vector<std::span<const float>> updates;
  decoded_.resize(std::max(decoded_.size(), senders_.size()));
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    const base::ConstBytes update = senders_[i]->held->bytes;
    decoded_[i].assign(weights_.size(), 0.0F);
    if (selects_alike_ && !update.empty())
      coder_->add_selected(update, {key_, static_cast<std::uint64_t>(senders_[i]->held_for)}, decoded_[i]);
    else
      add(update, {0, weights_.size()}, decoded_[i].data());
    updates.emplace_back(decoded_[i]);
  }
  rules_.storages.combine(view_, updates, combined);
}

void ServerBlock::changed() noexcept {
  ++changes_;
  answers_.changed();
  is_shown_ = false;
}

std::span<const float> ServerBlock::shown() {
  if (!rules_.storages.answer) return weights_;
  if (!is_shown_) rules_.storages.answer(view_, weights_, shown_);
  is_shown_ = true;
  return shown_;
}

/// Payloads of the step have equal elements, so their values add up before they are placed.
void ServerBlock::add_selected_alike(std::span<float> sum) {
  packed_.clear();
  for (const WorkerState* worker_state : senders_) {
    const base::ConstBytes values = worker_state->held->bytes;
    if (values.empty()) continue;
    packed_.resize(values.size() / sizeof(float));
    kernel::reduce({}, bytes_of(packed_.data()), values.data(), packed_.size());
  }
  if (packed_.empty()) return;
  const auto step = static_cast<std::uint64_t>(senders_.front()->held_for);
  coder_->add_selected(std::as_bytes(std::span(packed_)), {key_, step}, sum);
}

void ServerBlock::add(base::ConstBytes update, Range range, float* into) {
  changed();
  if (update.empty()) return;
  if (coder_) return coder_->add(update, {into, range.size()});
  kernel::reduce({}, bytes_of(into), update.data() + range.begin * sizeof(float), range.size());
}

template <class Decide>
auto ServerBlock::decided(const WorkerState& worker_state, Clock least, const Decide& decide) const {
  std::vector<Clock> clocks;
  std::vector<Pace> paces;
  ServerView view{.least = least, .table = view_.table};
  for (const WorkerState& other : workers_) {
    if (&other == &worker_state) view.worker = clocks.size();
    if (!other.takes_part && &other != &worker_state) continue;
    clocks.push_back(other.clock);
    paces.push_back(other.pace);
  }
  view.clocks = clocks;
  view.paces = paces;
  return decide(view);
}

Clock ServerBlock::last_step_for(const WorkerState& worker_state, Clock least) const {
  if (!rules_.consistency.last_step) return 0;
  return decided(worker_state, least, [&](const ServerView& view) { return last_step_of(rules_.consistency, view); });
}

bool ServerBlock::may_answer(const WorkerState& worker_state, Clock least) const {
  if (!worker_state.asks) return false;
  return *worker_state.asks <= least ||
         (worker_state.step > 0 && last_step_for(worker_state, least) >= worker_state.step);
}

std::vector<std::size_t> ServerBlock::answerable() {
  std::vector<std::size_t> workers;
  if (!has_weights_) return workers;
  const Clock least = this->least();
  for (std::size_t turn = 0; turn < workers_.size(); ++turn) {
    const std::size_t worker = (server_ + turn) % workers_.size();
    if (!may_answer(workers_[worker], least)) continue;
    workers_[worker].asks.reset();
    workers.push_back(worker);
  }
  return workers;
}

Weights ServerBlock::message_to(WorkerState& worker_state) {
  const Clock least = this->least();
  worker_state.may_be_sent = true;
  worker_state.changes = changes_;
  return {.least = least,
          .last = worker_state.applied,
          .piece = worker_state.piece,
          .step = last_step_for(worker_state, least)};
}

Weights ServerBlock::answer(std::size_t worker, double now_s) {
  workers_[worker].answered_s = now_s;
  Weights message = message_to(workers_[worker]);
  const std::uint64_t version = workers_[worker].version;
  if (const auto index = kept_part(version)) {
    message.version = version;
    message.values = copy_of(part(*index));
  } else if (version == kExact && rules_.storages.answer) {
    message.values = copy_of(weights_);
  } else {
    answers_.answer(shown(), version, message);
  }
  return message;
}

std::vector<std::size_t> ServerBlock::unasked() {
  std::vector<std::size_t> workers;
  if (!rules_.consistency.sends_unasked || !has_weights_) return workers;
  const Clock least = this->least();
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    const WorkerState& state = workers_[worker];
    if (!state.takes_part || state.asks || !state.may_be_sent || state.changes == changes_) continue;
    if (decided(state, least, rules_.consistency.sends_unasked)) workers.push_back(worker);
  }
  return workers;
}

/// Whole weights: which version the worker holds is only known with a request.
Weights ServerBlock::push_weights(std::size_t worker) {
  Weights message = message_to(workers_[worker]);
  workers_[worker].may_be_sent = false;
  message.is_unasked = true;
  answers_.answer(shown(), 0, message);
  return message;
}

std::vector<Clock> ServerBlock::clocks() const {
  std::vector<Clock> clocks;
  for (const WorkerState& worker_state : workers_) clocks.push_back(worker_state.clock);
  return clocks;
}

void ServerBlock::leave(std::size_t worker) {
  workers_[worker].takes_part = false;
  workers_[worker].asks.reset();
  if (rules_.in_lockstep()) complete_steps();
}

void ServerBlock::join(std::size_t worker, Clock from, std::uint64_t process) {
  WorkerState& worker_state = workers_[worker];
  worker_state.process = process;
  worker_state.applied = std::max({worker_state.applied, from, complete_});
  worker_state.clock = worker_state.applied;
  worker_state.pace = {};
  worker_state.answered_s.reset();
  worker_state.asks.reset();
  worker_state.piece = 0;
  worker_state.may_be_sent = false;
  worker_state.takes_part = true;
  if (rules_.in_lockstep()) complete_steps();  // others may have waited for an update that was never sent
}

void ServerBlock::come_back(std::size_t worker) {
  WorkerState& worker_state = workers_[worker];
  worker_state.asks.reset();
  worker_state.may_be_sent = false;
  if (worker_state.takes_part) return;
  worker_state.clock = std::max(worker_state.clock, least());
  worker_state.takes_part = true;
  // It may be the first to take part again, and its update of the step that is open may have come before it left.
  if (rules_.in_lockstep()) complete_steps();
}

Clock ServerBlock::least() const noexcept {
  if (rules_.in_lockstep()) return complete_;
  std::optional<Clock> least;
  Clock most = 0;
  for (const WorkerState& worker_state : workers_) {
    most = std::max(most, worker_state.clock);
    if (worker_state.takes_part) least = std::min(least.value_or(worker_state.clock), worker_state.clock);
  }
  return least.value_or(most);
}

Clock ServerBlock::wanted() const noexcept {
  Clock wanted = 0;
  for (const WorkerState& worker_state : workers_) wanted = std::max(wanted, worker_state.asks.value_or(0));
  return wanted;
}

}  // namespace syncopate::server
