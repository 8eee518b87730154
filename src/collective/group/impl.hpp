// Group::Impl: a rank's endpoint, and the state that its collectives and messages need.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/fork.hpp"
#include "base/guarded.hpp"
#include "collective/engine/execute.hpp"
#include "collective/group/message_queues.hpp"
#include "collective/group/request.hpp"
#include "collective/group/work.hpp"
#include "syncopate/cluster.hpp"
#include "syncopate/collective.hpp"
#include "transport/connect/launch.hpp"
#include "transport/endpoint.hpp"

namespace syncopate {

/// Operations run one at a time, in the order in which their tickets were drawn: by the calling thread itself, or by
/// the group's worker thread for those started without waiting. The order defines the operation number, which is equal
/// on all ranks. Messages that were started with no other call between them share one ticket and are in progress
/// together.
class Group::Impl final {
 public:
  Impl(transport::Endpoint endpoint, const GroupOptions& options);
  ~Impl();

  using Request = collective::group::Request;

  /// Runs the request on this thread, after the earlier ones.
  void run(const Request& request);
  [[nodiscard]] Work start(Request request);
  [[noreturn]] void refuse(const std::string& reason);

  [[nodiscard]] const transport::Endpoint& endpoint() const noexcept { return endpoint_; }
  /// Number of prepared calls that are kept for later use.
  [[nodiscard]] std::size_t prepared() const noexcept { return prepared_.size(); }
  [[nodiscard]] const std::vector<int>& hosts() const noexcept { return hosts_; }
  [[nodiscard]] const collective::group::Scopes& scopes() const noexcept { return scopes_; }
  /// Polling and sleeping of calls that wait.
  [[nodiscard]] transport::Patience caller_patience() const noexcept { return caller_; }
  /// The end of a wait until `deadline`, or the time before it at which to call `poll_callback`.
  [[nodiscard]] base::Time next_look(base::Time deadline) const;
  /// Calls GroupOptions::while_waiting; throws what it throws.
  void poll_callback() const;
  /// Every rank calls it after joining. From then on rank 0's cluster file, if it has one, determines the costs. Throws
  /// Misuse or SystemFailure, equally on every rank, if the file is invalid or cannot be read.
  void learn_costs();
  void use_costs_of(const Cluster& cluster);
  /// Makes a group of these ranks, which include this one.
  [[nodiscard]] std::unique_ptr<Impl> branch(const std::vector<int>& members,
                                             transport::connect::rendezvous::Rendezvous& meeting);
  void abort(const std::string& reason, const std::string& tensor) noexcept;
  void set_timeout(base::Duration timeout) noexcept {
    timeout_ = std::min<base::Duration>(timeout, transport::connect::kLongestBound);
  }
  /// Detects that this process was forked after the group was made, so that threads and connections are its parent's.
  [[nodiscard]] const base::OwnProcess& process() const noexcept { return process_; }
  /// Why this rank aborts the group if an exception unwinds its program.
  [[nodiscard]] std::string reason_to_unwind() const;
  /// Whether an exception that did not exist when the group was made is unwinding this thread.
  [[nodiscard]] bool unwinds() const noexcept { return std::uncaught_exceptions() > exceptions_; }

 private:
  /// Algorithm, shape, tiles and scope: a program depends on these and on the rank.
  using PlanKey = std::tuple<std::string_view, collective::plan::Shape, std::uint32_t, Scope>;

  /// A started call, in which no caller's thread waits.
  struct Started {
    Request request;
    std::shared_ptr<Work::State> work;
    std::string refusal;  ///< reason for a refusal; empty: not refused
  };
  /// The calls of one ticket: a collective, or messages, to which more are added until all have ended.
  struct Batch {
    explicit Batch(bool are_messages) : of_messages(are_messages) {}
    const bool of_messages;
    std::uint64_t ticket = 0;
    std::deque<Started> calls;  ///< messages: those not begun yet
  };
  struct Queue {
    std::deque<std::shared_ptr<Batch>> batches;
    std::shared_ptr<Batch> messages;  ///< the latest batch of messages, until it has ended
  };
  /// The latest collective that was refused.
  struct Refusal {
    std::uint64_t operation = 0;
    std::string reason;
  };
  using UnderWay = std::map<std::uint64_t, Started>;

  /// Waits for the turn of a ticket, and passes the turn on in the destructor.
  class Turn final {
   public:
    Turn(Impl& group, std::uint64_t ticket);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Impl& group_;
  };

  /// The part of a collective that is computed before it runs. Calls that differ only in addresses and in the lengths
  /// of parts share it.
  struct Prepared {
    Request request;
    std::string text;                               ///< text of all such calls
    transport::membership::OperationRecord record;  ///< this and the following fields belong to the current call
    std::vector<std::size_t> cuts;
    const collective::plan::Program* program = nullptr;  ///< null if this rank has no peer to exchange with
    Memory memory = Memory::own;
    [[nodiscard]] bool serves(const Request& other, Memory where) const noexcept;
    void take_parts(const Request& call, int rank);
  };

  [[nodiscard]] base::Duration timeout() const noexcept { return timeout_; }
  [[nodiscard]] Prepared& prepare(const Request& request);
  [[nodiscard]] Prepared& prepared_for(const Request& request);
  void run_request(const Request& request);
  void check_alone(const Request& request) const;
  /// A refused collective counts as an operation: if all ranks are refused, their numbers stay equal; otherwise the
  /// other ranks detect a mismatch.
  void count_refused(const std::string& reason);
  /// A refused message aborts the group, because its peer may already wait for it.
  void refuse_message(const Request& request, const std::string& reason) noexcept;
  [[nodiscard]] Work enqueue(Started call);
  void run_message(const Request& request);
  void run_messages(Batch& batch);
  [[nodiscard]] bool take_up(Batch& batch, UnderWay& under_way);
  void fail(UnderWay& under_way);
  [[nodiscard]] bool has_started_messages();
  /// Throws the group's failure, if it has one.
  void check_health() const;
  /// After an error: reports it to the others, and withdraws operations posted from callers' memory.
  void give_up(const std::exception& error);
  void execute(const collective::plan::Program& program, const collective::engine::Execution::Parameters& parameters,
               const Request& request, const transport::membership::OperationRecord& record);
  void drive(const Request& request, const transport::membership::OperationRecord& record);
  [[noreturn]] void time_out(const Request& request, const transport::membership::OperationRecord& record);
  [[noreturn]] void raise_failure(const std::string& text, const std::string& tensor) const;
  /// The kind of memory matters only between ranks that share memory.
  [[nodiscard]] Memory memory_of(const Request& request) const noexcept;
  const collective::plan::Program& program_of(const Request& request, Memory memory);
  void warn_about_size(const PlanRequest& wanted, const NetworkCost& cost);
  void run_started(std::uint64_t ticket, const Started& call);
  /// Ends the call and wakes its waiters.
  void end(const Started& call, const std::exception_ptr& error);
  void work(const std::stop_token& stop);
  void begin_worker();

  transport::Endpoint endpoint_;
  GroupOptions options_;
  std::atomic<base::Duration> timeout_;  ///< for operations that begin from now on
  std::vector<int> hosts_;               ///< by rank
  PlanRequest place_;                    ///< ranks and hosts; each request sets the rest
  collective::group::Scopes scopes_;     ///< of place_
  /// The network costs by which "auto" chooses, by the memory of the vectors; equal on all ranks.
  NetworkCost cost_, cost_in_group_memory_;
  transport::Patience caller_;
  const base::OwnProcess process_;
  const int exceptions_ = std::uncaught_exceptions();
  std::atomic<std::uint64_t> next_ticket_{0};
  std::atomic<std::uint64_t> serving_{0};  ///< the ticket whose turn it is
  base::Guarded<Queue> pending_;
  base::Guarded<Refusal> refusal_;

  // Owned by the holder of the current ticket.
  std::atomic<std::uint64_t> operations_ = 0;  ///< read by any thread
  bool has_warned_ = false;  ///< the warning about a collective larger than all measured ones was logged
  collective::PortSharing sharing_;
  std::map<PlanKey, collective::plan::Program> programs_;
  std::unordered_multimap<std::size_t, Prepared> prepared_;
  Prepared* latest_ = nullptr;  ///< the last collective's entry of prepared_
  std::uint64_t messages_ = 0;  ///< started so far
  collective::engine::Scratch scratch_;
  std::optional<collective::engine::Execution> execution_;  ///< this and queues_ are set if there are links
  std::optional<collective::group::MessageQueues> queues_;

  std::jthread
      worker_;  ///< runs on: worker thread, started by the first `start`; joined before other members are destroyed
};

}  // namespace syncopate
