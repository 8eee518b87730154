// Rank: joins, runs its collectives, stays, and leaves; a fiber for the program, and control fed when it is due.
#include "virtual/rank.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "collective/choice.hpp"
#include "collective/engine/execute.hpp"
#include "collective/plan/program.hpp"
#include "syncopate/error.hpp"
#include "transport/socket/socket.hpp"
#include "transport/tcp/transport.hpp"

namespace syncopate::virtual_world {

using namespace transport;

namespace {

constexpr auto kJoinTime = 20s, kOperationTime = 20s, kLongStay = 8s;
constexpr const char* kAlgorithms[] = {"ring", "recursive_doubling", "halving_doubling", "double_binary_tree", "mst"};

/// Compiled once for all histories.
const collective::plan::Program& program_of(std::size_t algorithm, int ranks, int rank) {
  static std::map<std::tuple<std::size_t, int, int>, collective::plan::Program> programs;
  auto& made = programs[{algorithm, ranks, rank}];
  if (!made.plan.steps.empty()) return made;
  const collective::Load load{1000, {.alpha_s = 1e-4, .beta_s_per_byte = 1e-9, .gamma_s_per_byte = 1e-10}, {}};
  const collective::Choice choice = collective::settled(
      collective::algorithm_named(kAlgorithms[algorithm], Collective::allreduce),
      {.collective = Collective::allreduce, .rank = 0, .size = static_cast<std::uint32_t>(ranks)}, {}, load);
  return made = collective::plan::compile(collective::build_plan(choice, static_cast<std::uint32_t>(rank)));
}

/// Small whole numbers: their sums are exact in every order.
float element_of(int rank, int operation, std::size_t index) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + static_cast<std::size_t>(operation) * 3 + index) %
                            64);
}

/// What all ranks know without a word.
std::uint64_t mix(std::uint64_t value) { return (value ^ (value >> 31)) * 0x9e3779b97f4a7c15 >> 16; }

}  // namespace

socket::Address Rank::address_of(int rank) {
  static std::map<int, socket::Address> known;
  const auto [found, fresh] = known.try_emplace(rank);
  if (fresh) found->second = socket::Address::parse(fmt::format("10.0.1.{}:5000", rank + 1));
  return found->second;
}

Rank::Rank(Network& network, const Scenario& scenario, int number)
    : network_(network), scenario_(scenario), number_(number), system_(network, number) {
  system_.most = 4 * scenario.seats;
  for (int rank = 0; rank < scenario.ranks; ++rank) addresses_.push_back(address_of(rank));
  listener_ = socket::listen_on(address_of(number), system_);
}

Rank::~Rank() {
  if (!is_over_) kill();  // it waits beyond its bound: history has said so
}

void Rank::start() {
  program_runner_ = std::make_shared<Runner>(system_, [this] { live(); });
  control_runner_ = std::make_shared<Runner>(system_, [this] { watch_control(); });
  system_.on_watcher = program_runner_;
  mailbox_ = std::make_shared<membership::Mailbox>(system_);
  system_.on_watcher = control_runner_;
  std::vector<socket::Descriptor> listeners;
  listeners.push_back(std::move(listener_));
  control_ = std::make_shared<membership::TreeControl>(
      membership::ControlOptions{.rank = number_,
                                 .addresses = addresses_,
                                 .memory_sockets = std::vector<socket::Address>(addresses_.size()),
                                 .group = 7,
                                 .silence = scenario_.silence,
                                 .log = {.level = system_.world().prints ? LogLevel::info : LogLevel::off,
                                         .sink =
                                             [this](LogLevel, std::string_view line) {
                                               system_.world().note(line, static_cast<std::uint64_t>(number_));
                                             }}},
      std::move(listeners), mailbox_);
  program_ = std::make_unique<Fiber>([this] { work(); });
  control_runner_->ask(system_.now());
  program_runner_->ask(system_.now());
}

void Rank::live() {
  if (program_->has_ended()) return;
  program_->resume();
  if (!program_->has_ended() || system_.is_dead) return;
  outcome_.ended = system_.now();
  system_.world().note(outcome_.end == Outcome::End::failed ? outcome_.failure.message : "is done",
                       static_cast<std::uint64_t>(number_), static_cast<std::uint64_t>(outcome_.operations));
  control_->leave();
  is_leaving_ = true;
  control_runner_->ask(system_.now());
}

void Rank::watch_control() {
  try {
    control_->feed(control_->poller().wait({}));
  } catch (const std::exception& error) {
    control_->give_up(error);
  }
  if (is_leaving_ && control_->is_gone()) {
    control_->hear_out(control_->poller().wait({}));
    control_runner_->end();
    program_runner_->end();
    mailbox_.reset();
    control_.reset();
    is_over_ = true;
    system_.world().note("is gone", static_cast<std::uint64_t>(number_));
    return;
  }
  // While it leaves, time alone may let it go.
  control_runner_->ask(is_leaving_ ? std::min(control_->next_deadline(), system_.now() + 10ms)
                                   : control_->next_deadline());
}

void Rank::kill() {
  system_.die();
  outcome_.end = Outcome::End::killed;
  outcome_.ended = system_.now();
  if (program_runner_) program_runner_->end();
  if (control_runner_) control_runner_->end();
  if (program_ && !program_->has_ended()) program_->resume();  // it unwinds
  program_.reset();
  control_.reset();
  mailbox_.reset();
  listener_ = socket::Descriptor();
  is_over_ = true;
}

void Rank::pause(Duration time) {
  const Time end = system_.now() + time;
  while (system_.now() < end) {
    program_runner_->ask(end);
    Fiber::suspend();
    if (system_.is_dead) throw Killed{};
  }
}

void Rank::work() {
  World& world = system_.world();
  try {
    const Time late = system_.now() + kJoinTime;
    while (!control_->has_joined()) {
      if (system_.now() >= late) control_->miss();
      pause(500us);
    }
    tcp::TcpTransport links(
        {.rank = number_, .size = scenario_.ranks, .streams = 1, .rules = {.group = 7, .epoch = 0, .checksum = true}},
        control_, mailbox_);
    for (int operation = 0;; ++operation) {
      if (is_victim() && operation == scenario_.strike_at)
        world.in(scenario_.strike_after, [this] {
          if (!is_over_) strike();
        });
      if (operation == scenario_.operations) break;
      if (scenario_.longest_pause > Duration{0}) pause(world.draw(Duration{0}, scenario_.longest_pause));
      operate(links, operation);
      ++outcome_.operations;
    }
    stay(links);
    outcome_.end = Outcome::End::in_order;
  } catch (const Killed&) {
    outcome_.end = Outcome::End::killed;
  } catch (const Error& error) {
    outcome_.end = Outcome::End::failed;
    outcome_.failure = {std::string(name_of(error.kind())), error.what(), error.where()};
    if (!control_->failed()) control_->report(outcome_.failure);
  }
}

void Rank::operate(Transport& links, int operation) {
  const std::uint64_t drawn = mix(static_cast<std::uint64_t>(operation) + 1 + scenario_.most_elements * 97);
  const std::size_t algorithm = drawn % std::size(kAlgorithms);
  const std::size_t count = 1 + (drawn >> 8) % scenario_.most_elements;
  const collective::plan::Program& program = program_of(algorithm, scenario_.ranks, number_);
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = element_of(number_, operation, i);
  const auto number = static_cast<std::uint64_t>(operation) + 1;
  control_->began({.number = number, .signature = drawn, .text = fmt::format("allreduce {}", count)});
  collective::engine::Scratch scratch;
  collective::engine::Execution execution(
      program, {.data = std::span(data), .reduction = {DType::f32, ReduceOp::sum, 1}, .label = {number, drawn}}, links,
      scratch);
  execution.advance();
  const Time deadline = system_.now() + kOperationTime;
  while (!execution.done()) {
    execution.take(links.poll(deadline, {}));
    if (system_.now() >= deadline)
      throw Timeout(
          fmt::format("rank {} waits for rank {} in operation {}", number_, execution.awaited_peer(), number));
  }
  for (std::size_t i = 0; i < count && outcome_.wrong.empty(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < scenario_.ranks; ++rank) sum += element_of(rank, operation, i);
    if (data[i] != sum)
      outcome_.wrong = fmt::format("operation {} ({}): element {} of {} is {} instead of {}", number,
                                   kAlgorithms[algorithm], i, count, data[i], sum);
  }
}

/// After its last operation a rank is idle, and learns of failures all the same.
void Rank::stay(Transport& links) {
  const bool leaves_soon =
      static_cast<int>(mix(static_cast<std::uint64_t>(number_) * 31 + static_cast<std::uint64_t>(scenario_.leavers)) %
                       static_cast<std::uint64_t>(scenario_.ranks)) < scenario_.leavers;
  const Time end =
      system_.now() +
      (leaves_soon && !is_victim() ? system_.world().draw(Duration{0}, scenario_.leave_within) : Duration{kLongStay});
  while (system_.now() < end) std::ignore = links.poll(end, {});
}

void Rank::cut_one() {
  std::vector<SocketPtr> connected;
  for (const auto& [number, socket] : system_.sockets())
    if (socket->state == Socket::State::connected && socket->peer.lock()) connected.push_back(socket);
  if (connected.empty()) return;
  const SocketPtr chosen = connected[system_.world().draw(0, connected.size() - 1)];
  cut_from_ = chosen->peer.lock()->host;
  network_.cut(chosen);
}

void Rank::strike() {
  system_.world().note(text_of(scenario_.fault), static_cast<std::uint64_t>(number_));
  struck_ = system_.now();
  was_leaving_ = is_leaving_;
  switch (scenario_.fault) {
    case Fault::none:
    case Fault::crowd:
      return;
    case Fault::kill:
      return kill();
    case Fault::vanish:
      network_.isolate(number_);
      return kill();
    case Fault::long_stop:
    case Fault::short_stop:
      return system_.stop(system_.now() + scenario_.stop_for);
    case Fault::cut:
      return cut_one();
    case Fault::no_sockets:
      system_.accepts_again = system_.now() + scenario_.stop_for;
      // Who cannot call for data has failed; calls that replace edges of the tree may come later.
      if (scenario_.strike_at == scenario_.operations) system_.opens_again = system_.accepts_again;
      return;
  }
}

}  // namespace syncopate::virtual_world
