// Machine: runs the loop of a process's streams in events.
#include "virtual/server/machine.hpp"

#include <fmt/format.h>

namespace syncopate::server {

namespace socket = transport::socket;

std::string Machine::address_of(std::size_t host) { return fmt::format("10.0.1.{}:7000", host + 1); }

Machine::Machine(virtual_world::Network& network, std::size_t host, const streams::Identity& self,
                 streams::Accepted accepted)
    : network_(network), host_(host), system_(network, static_cast<int>(host)) {
  runner_ = std::make_shared<virtual_world::Runner>(system_, [this] {
    loop_->adopt();
    loop_->turn(system_.now());
    loop_->disown();
    runner_->ask(loop_->has_work() ? system_.now() : loop_->next_deadline());
    if (look_) look_();
  });
  system_.on_watcher = runner_;
  loop_ =
      std::make_unique<streams::Loop>(streams::EndOptions{.self = self,
                                                          .job = "a job",
                                                          .secret = "the secret of every process of these histories",
                                                          .silence = kSilence,
                                                          .patience = 1s,
                                                          .log = log()},
                                      std::move(accepted), system_);
}

syncopate::Log Machine::log() {
  const auto note = [this](LogLevel, std::string_view line) {
    system_.world().note(line, static_cast<std::uint64_t>(system_.host()));
  };
  return {.level = network_.world().prints ? LogLevel::info : LogLevel::off, .sink = note};
}

void Machine::run(std::function<Time()> turn, std::function<void()> look) {
  look_ = std::move(look);
  turns_ = std::make_shared<virtual_world::Runner>(system_, [this, turn = std::move(turn)] {
    turns_->ask(turn());
    if (look_) look_();
  });
  ask();
}

void Machine::ask() {
  if (turns_) turns_->ask(system_.now());
}

void Machine::listen() {
  std::ignore = loop_->listen({address_of(host_)});
  runner_->ask(system_.now());
}

void Machine::dial(std::size_t server, streams::DialEvents events) {
  const std::string address = address_of(server);
  loop_->dial({.to = socket::Address::parse(address),
               .address = address,
               .server = static_cast<std::int32_t>(server),
               .patience = kSilence,
               .events = std::move(events)});
}

bool Machine::cut(std::size_t server) {
  const std::string address = address_of(server);
  for (const auto& [number, socket] : system_.sockets()) {
    if (socket->state != virtual_world::Socket::State::connected || socket->remote.text() != address) continue;
    network_.cut(socket);
    return true;
  }
  return false;
}

void Machine::end() {
  die();
  loop_.reset();
}

void Machine::die() {
  if (system_.is_dead) return;
  runner_->end();
  if (turns_) turns_->end();
  system_.die();
}

}  // namespace syncopate::server
