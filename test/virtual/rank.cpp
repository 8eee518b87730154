// Rank: joins, runs its collectives, stays, and leaves; a fiber for the program, and control fed when it is due.
#include "virtual/rank.hpp"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "collective/group/impl.hpp"
#include "random/perform.hpp"
#include "syncopate/error.hpp"
#include "syncopate/group.hpp"
#include "transport/socket/socket.hpp"
#include "transport/tcp/transport.hpp"

namespace syncopate::virtual_world {

using namespace transport;

namespace {

constexpr auto kJoinTime = 20s, kOperationTime = 20s, kLongStay = 8s;

/// What all ranks know without a word.
std::uint64_t mix(std::uint64_t value) { return (value ^ (value >> 31)) * 0x9e3779b97f4a7c15 >> 16; }

/// The operation that all ranks call.
test::Step step_of(const Scenario& scenario, int operation) {
  test::Draw draw(scenario.key + static_cast<std::uint64_t>(operation));
  const int per_host = scenario.ranks_per_host > 0 ? scenario.ranks_per_host : 1;
  const test::World world{.ranks = scenario.ranks,
                          .hosts = (scenario.ranks + per_host - 1) / per_host,
                          .most = scenario.most_elements,
                          .may_split = false,
                          .is_exact = true};
  if (operation == 0) return {.collective = Collective::barrier};  // behind it all have joined
  test::Step step = test::draw_step(draw, world);
  while (scenario.only_collectives && step.kind != test::Kind::collective) step = test::draw_step(draw, world);
  step.is_started = false;                        // that takes a thread
  if (step.collective == Collective::alltoall) {  // its parts are even, whatever the scope
    const int parts =
        std::lcm(std::lcm(scenario.ranks, world.hosts), std::lcm(per_host, scenario.ranks % per_host + 1));
    step.count -= step.count % static_cast<std::size_t>(parts);
  }
  return step;
}

/// What the program of a rank throws.
class GaveUp final : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

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

transport::Endpoint Rank::endpoint() {
  Endpoint made{.rank = number_, .size = scenario_.ranks, .kind = "tcp"};
  for (int rank = 0; rank < scenario_.ranks; ++rank) made.hosts.push_back(address_of(rank).text());
  made.control = control_;
  made.links = std::make_unique<tcp::TcpTransport>(
      tcp::TransportOptions{
          .rank = number_, .size = scenario_.ranks, .streams = 1, .rules = {.group = 7, .epoch = 0, .checksum = true}},
      control_, mailbox_);
  made.clock = &system_;
  return made;
}

GroupOptions Rank::group_options() const {
  GroupOptions options;
  options.log.level = LogLevel::off;
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(Duration{kOperationTime});
  options.spin = std::chrono::microseconds{0};
  options.ranks_per_host = scenario_.ranks_per_host;
  return options;
}

void Rank::work() {
  World& world = system_.world();
  try {
    const Time late = system_.now() + kJoinTime;
    while (!control_->has_joined()) {
      if (system_.now() >= late) control_->miss();
      pause(500us);
    }
    Group group(std::make_unique<Group::Impl>(endpoint(), group_options()));
    for (int operation = 0;; ++operation) {
      if (is_victim() && operation == scenario_.strike_at && is_sudden(scenario_.fault))
        world.in(scenario_.strike_after, [this] {
          if (!is_over_) strike();
        });
      if (operation == scenario_.operations) break;
      if (scenario_.longest_pause > Duration{0}) pause(world.draw(Duration{0}, scenario_.longest_pause));
      operate(group, operation);
      ++outcome_.operations;
    }
    stay(*group.impl().endpoint().links);
    outcome_.end = Outcome::End::in_order;
  } catch (const Killed&) {
    outcome_.end = Outcome::End::killed;
  } catch (const GaveUp&) {  // its group has been aborted on the way here
    outcome_.end = Outcome::End::failed;
  } catch (const Error& error) {
    outcome_.end = Outcome::End::failed;
    outcome_.failure = {std::string(name_of(error.kind())), error.what(), error.where()};
    if (!control_->failed()) control_->report(outcome_.failure);
  }
}

void Rank::operate(Group& group, int operation) {
  test::Step step = step_of(scenario_, operation);
  if (is_victim() && operation == scenario_.strike_at) {
    if (scenario_.fault == Fault::gives_up) strike();
    // Sets of ranks may call what they like, and a barrier has no name.
    if (scenario_.fault == Fault::other_call && step.kind == test::Kind::collective &&
        step.collective != Collective::barrier && step.options.scope == Scope::group) {
      strike();
      step.options.name += "'s brother";
    }
  }
  try {
    test::Performance(group, step).finish();
  } catch (const test::WrongValue& wrong) {
    outcome_.wrong = fmt::format("operation {} ({}): {}", operation, test::text_of(step), wrong.what());
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
    case Fault::other_call:
      return;
    case Fault::gives_up:
      throw GaveUp("it gave up");
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
