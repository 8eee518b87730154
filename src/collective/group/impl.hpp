// Group::Impl: a rank's endpoint together with what carrying out collectives needs.
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
/// the group's worker thread for those started without waiting. That order is the operation number all ranks share.
/// Messages that were started with no other call between them have one ticket, and are under way together.
class Group::Impl final {
 public:
  Impl(transport::Endpoint endpoint, const GroupOptions& options);
  ~Impl();

  using Request = collective::group::Request;

  /// Carries the request out on this thread, after those that came before.
  void run(const Request& request);
  [[nodiscard]] Work start(Request request);
  [[noreturn]] void refuse(const std::string& reason);

  [[nodiscard]] const transport::Endpoint& endpoint() const noexcept { return endpoint_; }
  /// Calls that are kept ready, for those to come.
  [[nodiscard]] std::size_t prepared() const noexcept { return prepared_.size(); }
  [[nodiscard]] const std::vector<int>& hosts() const noexcept { return hosts_; }
  [[nodiscard]] const collective::group::Scopes& scopes() const noexcept { return scopes_; }
  /// For calls that wait.
  [[nodiscard]] transport::Patience caller_patience() const noexcept { return caller_; }
  /// The end of a wait until `deadline`, or the time before it at which to call `look_up`.
  [[nodiscard]] base::Time next_look(base::Time deadline) const;
  /// Calls what GroupOptions gave for waits; throws what that throws.
  void look_up() const;
  /// Every rank calls it after joining: rank 0's cluster file, where it has one, decides from now on. Throws Misuse or
  /// SystemFailure, on every rank alike, where the file is wrong or cannot be read.
  void learn_costs();
  void believe(const Cluster& cluster);
  /// A group of these ranks, of which this is one.
  [[nodiscard]] std::unique_ptr<Impl> branch(const std::vector<int>& members,
                                             transport::connect::rendezvous::Rendezvous& meeting);
  void abort(const std::string& reason, const std::string& tensor) noexcept;
  void set_timeout(base::Duration timeout) noexcept {
    timeout_ = std::min<base::Duration>(timeout, transport::connect::kLongestBound);
  }
  /// This process was forked after the group was made: the threads and connections are its parent's.
  [[nodiscard]] const base::OwnProcess& process() const noexcept { return process_; }
  /// An exception that was not there when the group was made is on its way through this thread.
  [[nodiscard]] bool unwinds() const noexcept { return std::uncaught_exceptions() > exceptions_; }

 private:
  /// Algorithm, shape, tiles and scope: all that a program depends on beside the rank.
  using PlanKey = std::tuple<std::string_view, collective::plan::Shape, std::uint32_t, Scope>;

  /// A call that nobody's thread waits in.
  struct Started {
    Request request;
    std::shared_ptr<Work::State> work;
    std::string refusal;  ///< why it was refused; empty: it was not
  };
  /// What takes one turn: a collective; or messages, to which others are added until all of them are over.
  struct Batch {
    explicit Batch(bool are_messages) : of_messages(are_messages) {}
    const bool of_messages;
    std::uint64_t ticket = 0;
    std::deque<Started> calls;  ///< messages: those that were not taken up yet
  };
  struct Queue {
    std::deque<std::shared_ptr<Batch>> batches;
    std::shared_ptr<Batch> messages;  ///< the latest such batch, until it is over
  };
  using UnderWay = std::map<std::uint64_t, Started>;

  /// Waits for the turn of a ticket, and gives it on at its end.
  class Turn final {
   public:
    Turn(Impl& group, std::uint64_t ticket);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Impl& group_;
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

  [[nodiscard]] base::Duration timeout() const noexcept { return timeout_; }
  [[nodiscard]] Prepared& prepare(const Request& request);
  [[nodiscard]] Prepared& prepared_for(const Request& request);
  void run_request(const Request& request);
  void check_alone(const Request& request) const;
  /// A refused collective counts as an operation: ranks that are all refused stay in step, and the others are told that
  /// this rank called something else.
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
  /// After an error: tells the others, and takes back what was posted from callers' memory.
  void give_up(const std::exception& error);
  void execute(const collective::plan::Program& program, const collective::engine::Execution::Parameters& parameters,
               const Request& request, const transport::membership::OperationRecord& record);
  void drive(const Request& request, const transport::membership::OperationRecord& record);
  [[noreturn]] void time_out(const Request& request, const transport::membership::OperationRecord& record);
  [[noreturn]] void raise_failure(const std::string& text, const std::string& tensor) const;
  /// Only ranks that share memory make a difference of it.
  [[nodiscard]] Memory memory_of(const Request& request) const noexcept;
  const collective::plan::Program& program_of(const Request& request, Memory memory);
  void doubt(const PlanRequest& wanted, const NetworkCost& cost);
  void run_started(std::uint64_t ticket, const Started& call);
  /// Tells whoever waits for it.
  void end(const Started& call, const std::exception_ptr& error);
  void work(const std::stop_token& stop);
  void begin_worker();

  transport::Endpoint endpoint_;
  GroupOptions options_;
  std::atomic<base::Duration> timeout_;  ///< of what begins from now on
  std::vector<int> hosts_;               ///< by rank
  PlanRequest place_;                    ///< ranks and hosts; the rest is each request's
  collective::group::Scopes scopes_;     ///< of place_
  /// What "auto" believes of the network, by where vectors lie; the same on all ranks.
  NetworkCost cost_, cost_in_group_memory_;
  transport::Patience caller_;
  const base::OwnProcess process_;
  const int exceptions_ = std::uncaught_exceptions();
  std::atomic<std::uint64_t> next_ticket_{0};
  std::atomic<std::uint64_t> serving_{0};  ///< the ticket whose turn it is
  base::Guarded<Queue> pending_;

  // Owned by whoever holds the current ticket.
  std::uint64_t operations_ = 0;
  bool doubted_ = false;  ///< it was said that a collective is larger than all that were measured
  std::map<PlanKey, collective::plan::Program> programs_;
  std::unordered_multimap<std::size_t, Prepared> prepared_;
  Prepared* latest_ = nullptr;  ///< of prepared_: the last collective's
  std::uint64_t messages_ = 0;  ///< that were started
  collective::engine::Scratch scratch_;
  std::optional<collective::engine::Execution> execution_;  ///< this and queues_ are set where there are links
  std::optional<collective::group::MessageQueues> queues_;

  std::jthread worker_;  ///< runs on: worker thread, begun by the first `start`; joined before the rest goes
};

}  // namespace syncopate
