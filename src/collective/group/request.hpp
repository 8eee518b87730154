// Request: one operation as a rank asked for it, what is wrong with it, and what it is called.
#pragma once

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "collective/group/scopes.hpp"
#include "collective/select/select.hpp"
#include "transport/transport.hpp"

namespace syncopate::collective::group {

/// A collective; or a message between two ranks, where `to` or `from` is a rank.
struct Request {
  Collective collective = Collective::allreduce;
  Buffer data;
  CollectiveOptions options;
  transport::Patience patience{};
  Buffer out{};                          ///< alltoall, alltoall_v; what arrives of an exchange
  std::vector<std::size_t> parts{};      ///< of `data`: allgather_v, alltoall_v
  std::vector<std::size_t> out_parts{};  ///< of `out`: alltoall_v
  int to = -1, from = -1;                ///< `data` goes to `to`; `out` (or, without `to`, `data`) comes from `from`

  [[nodiscard]] bool is_message() const noexcept { return to != -1 || from != -1; }
  /// Every call of such a collective has lengths of its own.
  [[nodiscard]] bool has_parts() const noexcept {
    return collective == Collective::allgather_v || collective == Collective::alltoall_v;
  }
  /// What a plan is chosen by: no function of the lengths, or plans and prepared calls would be as many as those.
  [[nodiscard]] std::size_t planned_count() const noexcept {
    if (collective == Collective::alltoall_v) return 0;  // ranks know different counts
    return collective == Collective::allgather_v ? std::bit_floor(data.count) : data.count;
  }
};

/// Vectors, parts, root, peers: what may differ from call to call. Throws Misuse.
void validate(const Request& request, const Scopes& scopes);
/// The algorithm and the tuning that are asked for exist and fit; what is left open is decided later. Throws Misuse.
void check_choice(const Request& request, const Scopes& scopes);

/// What all ranks must agree on, for people, but for the lengths of parts. Its hash travels in every frame.
[[nodiscard]] std::string text_of(const Request& request, const PlanRequest& place);
/// The lengths that this call gives. Those of allgather_v are alike on all ranks, those of alltoall_v are a rank's own.
[[nodiscard]] std::string text_of_parts(const Request& request, int rank);
/// The same for a message from one rank to another, alike on both.
[[nodiscard]] std::string text_of_message(const std::string& tensor, std::pair<int, int> way, const Buffer& data);

/// The request as a question for a plan, on the ranks of `place`.
[[nodiscard]] PlanRequest plan_request_of(const Request& request, PlanRequest place);

/// Cut points of a call that gives lengths, through `data` and on through `out`; else none.
[[nodiscard]] std::vector<std::size_t> cuts_of(const Request& request);

}  // namespace syncopate::collective::group
