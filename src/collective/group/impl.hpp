// Group::Impl: a rank's endpoint together with what carrying out collectives needs.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/guarded.hpp"
#include "collective/engine/execute.hpp"
#include "collective/group/request.hpp"
#include "collective/group/work.hpp"
#include "syncopate/cluster.hpp"
#include "syncopate/collective.hpp"
#include "transport/connect/launch.hpp"
#include "transport/endpoint.hpp"

namespace syncopate {

/// Operations run one at a time, in the order in which their tickets were drawn: by the calling thread itself, or by
/// the group's worker thread for those started without waiting. That order is the operation number all ranks share.
class Group::Impl final {
 public:
  Impl(transport::Endpoint endpoint, const GroupOptions& options);
  ~Impl();

  using Request = collective::group::Request;

  /// Carries the request out on this thread, after those that came before.
  void run(const Request& request);
  [[nodiscard]] Work start(Request request);

  [[nodiscard]] const transport::Endpoint& endpoint() const noexcept { return endpoint_; }
  /// Calls that are kept ready, for those to come.
  [[nodiscard]] std::size_t prepared() const noexcept { return prepared_.size(); }
  [[nodiscard]] const std::vector<int>& hosts() const noexcept { return hosts_; }
  [[nodiscard]] const collective::group::Scopes& scopes() const noexcept { return scopes_; }
  /// For calls that wait.
  [[nodiscard]] transport::Patience caller_patience() const noexcept { return caller_; }
  /// Every rank calls it after joining: rank 0's cluster file, where it has one, decides from now on. Throws Misuse or
  /// SystemFailure, on every rank alike, where the file is wrong or cannot be read.
  void learn_costs();
  void believe(const Cluster& cluster);
  /// A group of these ranks, of which this is one.
  [[nodiscard]] std::unique_ptr<Impl> branch(const std::vector<int>& members,
                                             transport::connect::rendezvous::Rendezvous& meeting);
  void abort(const std::string& reason, const std::string& tensor) noexcept;

 private:
  /// Algorithm, shape, tiles and scope: all that a program depends on beside the rank.
  using PlanKey = std::tuple<std::string_view, collective::plan::Shape, std::uint32_t, Scope>;

  struct Pending {
    std::uint64_t ticket = 0;
    Request request;
    std::shared_ptr<Work::State> work;
  };

  /// What can be known of a collective before it runs; the same for every call that differs only in its addresses, and
  /// in the lengths of parts.
  struct Prepared {
    Request request;
    std::string text;                               ///< of all such calls
    transport::membership::OperationRecord record;  ///< this and what follows: of the call at hand
    std::vector<std::size_t> cuts;
    const collective::plan::Program* program = nullptr;  ///< null where this rank has nobody to exchange with
    Memory memory = Memory::own;
    [[nodiscard]] bool serves(const Request& other, Memory where) const noexcept;
    void take_parts(const Request& call, int rank);
  };

  [[nodiscard]] base::Duration timeout() const noexcept {
    return options_.timeout.value_or(transport::connect::kTimeout);
  }
  [[nodiscard]] Prepared& prepare(const Request& request);
  [[nodiscard]] Prepared& prepared_for(const Request& request);
  void run_ticket(std::uint64_t ticket, const Request& request);
  void run_request(const Request& request);
  void run_message(const Request& request);
  void execute(const collective::plan::Program& program, const collective::engine::Execution::Parameters& parameters,
               const Request& request, const transport::membership::OperationRecord& record);
  void drive(const Request& request, const transport::membership::OperationRecord& record);
  [[noreturn]] void time_out(const Request& request, const transport::membership::OperationRecord& record);
  [[noreturn]] void raise_failure(const std::string& text, const std::string& tensor) const;
  [[nodiscard]] transport::membership::OperationRecord message_record(const Request& request, bool arrives);
  /// Only ranks that share memory make a difference of it.
  [[nodiscard]] Memory memory_of(const Request& request) const noexcept;
  const collective::plan::Program& program_of(const Request& request, Memory memory);
  void doubt(const PlanRequest& wanted, const NetworkCost& cost);
  void work(const std::stop_token& stop);
  void work_off(const Pending& pending);
  void begin_worker();

  transport::Endpoint endpoint_;
  GroupOptions options_;
  std::vector<int> hosts_;            ///< by rank
  PlanRequest place_;                 ///< ranks and hosts; the rest is each request's
  collective::group::Scopes scopes_;  ///< of place_
  /// What "auto" believes of the network, by where vectors lie; the same on all ranks.
  NetworkCost cost_, cost_in_group_memory_;
  transport::Patience caller_;
  std::atomic<std::uint64_t> next_ticket_{0};
  std::atomic<std::uint64_t> serving_{0};  ///< changed under the lock of `turn_`
  struct Turn {};
  base::Guarded<Turn> turn_;
  base::Guarded<std::deque<Pending>> pending_;

  // Owned by whoever holds the current ticket.
  std::uint64_t operations_ = 0;
  bool doubted_ = false;  ///< it was said that a collective is larger than all that were measured
  std::map<PlanKey, collective::plan::Program> programs_;
  std::unordered_multimap<std::size_t, Prepared> prepared_;
  Prepared* latest_ = nullptr;                             ///< of prepared_: the last collective's
  std::map<std::pair<int, int>, std::uint64_t> messages_;  ///< how many, by sender and receiver
  collective::engine::Scratch scratch_;
  std::optional<collective::engine::Execution> execution_;  ///< set once there are links

  std::jthread worker_;  ///< runs on: worker thread, begun by the first `start`; joined before the rest goes
};

}  // namespace syncopate
