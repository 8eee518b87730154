// Rank: one process of the virtual world: it joins as production does, and its program uses the production group.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "transport/endpoint.hpp"
#include "transport/meet.hpp"
#include "virtual/scenario.hpp"
#include "virtual/system.hpp"

namespace syncopate::virtual_world {

/// The result of a rank.
struct Outcome {
  enum class End : std::uint8_t { none, in_order, failed, killed } end = End::none;
  transport::membership::Failure failure;  ///< if it failed
  Time ended{};                            ///< when the program ended
  int operations = 0;                      ///< number of finished ones
  Time worked = kNever;                    ///< when the first of them finished
  std::string wrong;                       ///< description of a wrong result
};

class Rank final {
 public:
  Rank(Network& network, const Scenario& scenario, int number);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank();

  /// The address at which it accepts ranks.
  [[nodiscard]] static socket::Address address_of(int rank, std::uint16_t port = VirtualSystem::kFirstPort);
  /// Rank 0's rendezvous address.
  [[nodiscard]] static socket::Address meeting_place() { return address_of(0, 4000); }
  void start();
  /// Applies the scenario's fault to the victim.
  void strike();
  void kill();
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }  ///< control has left, too
  [[nodiscard]] const Outcome& outcome() const noexcept { return outcome_; }
  [[nodiscard]] std::optional<Time> struck() const noexcept { return struck_; }
  [[nodiscard]] int cut_from() const noexcept { return cut_from_; }
  [[nodiscard]] Time met() const noexcept { return met_; }                  ///< when it finished the rendezvous
  [[nodiscard]] bool was_leaving() const noexcept { return was_leaving_; }  ///< when it was struck
  [[nodiscard]] bool is_leaving() const noexcept { return is_leaving_; }    ///< at its end

 private:
  [[nodiscard]] transport::Endpoint join();
  [[nodiscard]] GroupOptions group_options() const;
  void live();
  void work();
  void end();
  void operate(Group& group, int operation);
  void stay(transport::Transport& links);
  void pause(Duration time);
  void sleep(Time until);
  void watch_control();
  void cut_one();
  [[nodiscard]] bool is_victim() const noexcept { return number_ == scenario_.victim; }

  Network& network_;
  const Scenario& scenario_;
  const int number_;
  VirtualSystem system_;
  std::shared_ptr<transport::membership::Mailbox> mailbox_;
  std::shared_ptr<transport::membership::ControlProtocol> control_;
  GroupOptions options_;
  std::unique_ptr<Fiber> program_;
  std::shared_ptr<Runner> program_runner_, control_runner_;
  Outcome outcome_;
  std::optional<Time> struck_;
  int cut_from_ = -1;
  Time met_ = kNever;
  bool was_leaving_ = false, has_joined_ = false, is_leaving_ = false, is_over_ = false;
};

}  // namespace syncopate::virtual_world
