// Group::Impl: a rank's endpoint together with what carrying out collectives needs.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "base/guarded.hpp"
#include "collective/execute.hpp"
#include "syncopate/collective.hpp"
#include "transport/endpoint.hpp"

namespace syncopate {

/// Operations run one at a time, in the order in which their tickets were drawn: by the calling thread itself, or by
/// the group's worker thread for those started without waiting. That order is the operation number all ranks share.
class Group::Impl final {
 public:
  Impl(transport::Endpoint endpoint, const GroupOptions& options);
  ~Impl();

  struct Request {
    Collective collective = Collective::allreduce;
    Buffer data;
    CollectiveOptions options;
    transport::Patience patience{};
  };

  /// Carries the request out on this thread, after those that came before.
  void run(const Request& request);
  [[nodiscard]] Work start(Request request);

  [[nodiscard]] const transport::Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] const std::vector<int>& hosts() const noexcept { return hosts_; }
  /// For calls that wait.
  [[nodiscard]] transport::Patience caller_patience() const noexcept { return caller_; }
  void abort(const std::string& reason, const std::string& tensor) noexcept;

 private:
  /// Collective, algorithm, root, blocks, tiles: what a program depends on beside rank and size.
  using PlanKey = std::tuple<Collective, std::string_view, int, std::uint32_t, std::uint32_t>;

  struct Pending {
    std::uint64_t ticket = 0;
    Request request;
    std::promise<void> done;
  };

  /// What can be known of an operation before it runs; the same for every call that differs only in its address.
  struct Prepared {
    Request request;
    transport::OperationRecord record;
    const collective::Program* program = nullptr;
    [[nodiscard]] bool serves(const Request& other) const noexcept;
  };

  void validate(const Request& request) const;
  [[nodiscard]] Prepared& prepare(const Request& request);
  void run_ticket(std::uint64_t ticket, const Request& request);
  void carry_out(const Request& request);
  void drive(const Request& request, const transport::OperationRecord& record);
  [[noreturn]] void time_out(const Request& request, const transport::OperationRecord& record);
  const collective::Program& program_of(const Request& request, const std::string& algorithm);
  void work(const std::stop_token& stop);

  transport::Endpoint endpoint_;
  base::Duration timeout_;
  std::vector<int> hosts_;  ///< by rank
  transport::Patience caller_;
  std::atomic<std::uint64_t> next_ticket_{0};
  std::atomic<std::uint64_t> serving_{0};  ///< changed under the lock of `turn_`
  struct Turn {};
  base::Guarded<Turn> turn_;
  base::Guarded<std::deque<Pending>> pending_;

  // Owned by whoever holds the current ticket.
  std::uint64_t operations_ = 0;
  std::map<PlanKey, collective::Program> programs_;
  Prepared prepared_;  ///< of the last operation
  collective::Scratch scratch_;
  std::optional<collective::Execution> execution_;  ///< set once there are links

  std::jthread worker_;  ///< runs on: worker thread, begun by the first `start`; joined before the rest goes
};

}  // namespace syncopate
