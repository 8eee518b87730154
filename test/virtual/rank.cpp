// Rank: joins, runs its collectives, stays, and leaves; a fiber for the program, and control that is fed when due.
#include "virtual/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "collective/group/access.hpp"
#include "collective/group/impl.hpp"
#include "random/perform.hpp"
#include "syncopate/error.hpp"
#include "syncopate/group.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::virtual_world {

using namespace transport;

namespace {

constexpr auto kOperationTime = 20s, kLongStay = 8s;
const std::string kSecret = "the secret of every rank of these histories";

/// A hash that all ranks compute alike.
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
  if (operation == 0) return {.collective = Collective::barrier};  // after it all ranks have joined
  test::Step step = test::draw_step(draw, world);
  while (scenario.only_collectives && step.kind != test::Kind::collective) step = test::draw_step(draw, world);
  step.is_started = false;                        // a started operation needs a thread
  if (step.collective == Collective::alltoall) {  // its parts are even in every scope
    const int parts =
        std::lcm(std::lcm(scenario.ranks, world.hosts), std::lcm(per_host, scenario.ranks % per_host + 1));
    step.count -= step.count % static_cast<std::size_t>(parts);
  }
  return step;
}

/// The exception of a rank's program that gives up.
class GaveUp final : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

socket::Address Rank::address_of(int rank, std::uint16_t port) {
  static std::map<int, socket::Address> known;
  const auto [found, fresh] = known.try_emplace(rank);
  if (fresh) found->second = socket::Address::parse(fmt::format("10.0.1.{}:0", rank + 1));
  return found->second.with_port(port);
}

Rank::Rank(Network& network, const Scenario& scenario, int number)
    : network_(network), scenario_(scenario), number_(number), system_(network, number) {
  system_.most = 4 * scenario.seats;
  options_.rank = number;
  options_.size = scenario.ranks;
  options_.join_timeout = std::chrono::floor<std::chrono::milliseconds>(scenario.join_time);
  options_.silence = std::chrono::floor<std::chrono::milliseconds>(scenario.silence);
  options_.transport = TransportChoice::tcp;
  options_.tls = TlsChoice::off;
  options_.streams = 1;
  options_.checksum = true;
  const auto note = [this](LogLevel, std::string_view line) {
    system_.world().note(line, static_cast<std::uint64_t>(number_));
  };
  options_.log = {.level = system_.world().prints ? LogLevel::info : LogLevel::off, .sink = note};
}

Rank::~Rank() {
  if (!is_over_) kill();  // it waits past its limit, which history has reported
}

void Rank::start() {
  if (is_over_) return;  // it was struck before
  system_.world().note("starts", static_cast<std::uint64_t>(number_));
  program_runner_ = std::make_shared<Runner>(system_, [this] { live(); });
  control_runner_ = std::make_shared<Runner>(system_, [this] { watch_control(); });
  system_.on_watcher = program_runner_;
  mailbox_ = std::make_shared<membership::Mailbox>(system_);
  program_ = std::make_unique<Fiber>([this] { work(); });
  program_runner_->ask(system_.now());
}

/// As `transport::join`, but control is fed instead of having a thread.
Endpoint Rank::join() {
  const JoiningRank me{options_, kSecret, system_, "here", "nobody"};
  std::vector<socket::Descriptor> listeners;
  listeners.push_back(socket::listen_on(address_of(number_, 0), system_));
  const Time deadline = system_.now() + *options_.join_timeout;
  const auto meeting = connect::rendezvous::over_tcp({meeting_place(), kSecret, options_.log, false, &system_});
  const Meeting met = meet(me, *meeting, info_of(me, listeners, false), deadline);
  met_ = system_.now();
  system_.on_watcher = control_runner_;
  control_ = std::make_shared<membership::ControlProtocol>(control_options_of(me, met, deadline), std::move(listeners),
                                                           mailbox_);
  control_runner_->ask(system_.now());
  while (!control_->has_joined()) sleep(kNever);
  has_joined_ = true;
  Endpoint made{.rank = number_, .size = scenario_.ranks, .kind = kind_of(met.all)};
  for (const connect::PeerInfo& rank : met.all) made.hosts.push_back(rank.address);  // all ranks are on different hosts
  made.control = control_;
  made.links = links_of(me, met.all, {control_, mailbox_, nullptr});
  made.clock = &system_;
  return made;
}

void Rank::live() {
  if (program_->has_ended()) return;
  program_->resume();
  if (!program_->has_ended() || system_.is_dead) return;
  outcome_.ended = system_.now();
  system_.world().note(outcome_.end == Outcome::End::failed ? outcome_.failure.message : "is done",
                       static_cast<std::uint64_t>(number_), static_cast<std::uint64_t>(outcome_.operations));
  if (!control_) return end();
  control_->leave();
  is_leaving_ = true;
  control_runner_->ask(system_.now());
}

void Rank::end() {
  control_runner_->end();
  program_runner_->end();
  control_.reset();
  mailbox_.reset();
  is_over_ = true;
  system_.world().note("is gone", static_cast<std::uint64_t>(number_));
}

void Rank::watch_control() {
  try {
    control_->feed(control_->poller().wait({}));
  } catch (const std::exception& error) {
    control_->give_up(error);
  }
  if (is_leaving_ && control_->is_gone()) {
    control_->drain(control_->poller().wait({}));
    return end();
  }
  if (!has_joined_) program_runner_->ask(system_.now());
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
  is_over_ = true;
}

void Rank::pause(Duration time) {
  const Time end = system_.now() + time;
  while (system_.now() < end) sleep(end);
}

/// Sleeps until then, or until an event wakes the program.
void Rank::sleep(Time until) {
  program_runner_->ask(until);
  Fiber::suspend();
  if (system_.is_dead) throw Killed{};
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
    const std::unique_ptr<Group> group = GroupAccess::group_on(join(), group_options());
    for (int operation = 0;; ++operation) {
      if (is_victim() && !scenario_.strikes_early && operation == scenario_.strike_at && is_sudden(scenario_.fault))
        world.in(scenario_.strike_after, [this] {
          if (!is_over_) strike();
        });
      if (operation == scenario_.operations) break;
      if (scenario_.longest_pause > Duration{0}) pause(world.draw(Duration{0}, scenario_.longest_pause));
      operate(*group, operation);
      if (++outcome_.operations == 1) outcome_.worked = system_.now();
    }
    stay(*GroupAccess::impl(*group).endpoint().links);
    outcome_.end = Outcome::End::in_order;
  } catch (const Killed&) {
    outcome_.end = Outcome::End::killed;
  } catch (const GaveUp&) {  // its group was aborted before it got here
    outcome_.end = Outcome::End::failed;
  } catch (const Error& error) {
    outcome_.end = Outcome::End::failed;
    outcome_.failure = {error.kind(), error.what(), error.where()};
    if (has_joined_ && !control_->failed()) control_->report(outcome_.failure);
  }
}

void Rank::operate(Group& group, int operation) {
  test::Step step = step_of(scenario_, operation);
  if (is_victim() && operation == scenario_.strike_at) {
    if (scenario_.fault == Fault::gives_up) strike();
    // Sets of ranks may make any call, and a barrier has no name.
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

/// After its last operation a rank is idle, and still learns of failures.
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
      // A rank that cannot make data connections has failed; connections that replace edges of the tree may come later.
      if (scenario_.strikes_early || scenario_.strike_at == scenario_.operations)
        system_.opens_again = system_.accepts_again;
      return;
  }
}

}  // namespace syncopate::virtual_world
