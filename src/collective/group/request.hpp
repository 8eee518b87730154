// Request: one operation as a rank called it, its checks, and its text.
#pragma once

#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective/group/scopes.hpp"
#include "collective/select/select.hpp"
#include "transport/transport.hpp"

namespace syncopate::collective::group {

/// A collective, or a message between two ranks if `to` or `from` is a rank.
struct Request {
  Collective collective = Collective::allreduce;
  ConstBuffer data;  ///< what this rank contributes
  CollectiveOptions options;
  transport::Patience patience{};
  Buffer out{};                          ///< what it receives; the vector `data`, if the collective works in place
  std::vector<std::size_t> parts{};      ///< lengths in `data`: allgather_v, alltoall_v
  std::vector<std::size_t> out_parts{};  ///< lengths in `out`: alltoall_v
  int to = -1, from = -1;                ///< `data` goes to `to`; `out` comes from `from`

  [[nodiscard]] bool is_message() const noexcept { return to != -1 || from != -1; }
  /// Whether each call of the collective gives its own lengths.
  [[nodiscard]] bool has_parts() const noexcept {
    return collective == Collective::allgather_v || collective == Collective::alltoall_v;
  }
  /// The count by which a plan is chosen. It does not depend on the lengths; otherwise each set of lengths would need
  /// its own plan and prepared call.
  [[nodiscard]] std::size_t planned_count() const noexcept {
    if (collective == Collective::alltoall_v) return 0;  // ranks know different counts
    return collective == Collective::allgather_v ? std::bit_floor(data.count) : data.count;
  }
};

/// A collective that works in place on `data`.
[[nodiscard]] inline Request request_in_place(Collective collective, const Buffer& data, CollectiveOptions options = {},
                                              transport::Patience patience = {}) {
  return {.collective = collective, .data = data, .options = std::move(options), .patience = patience, .out = data};
}

/// Checks vectors, parts, root and peers, which may differ from call to call. Throws Misuse.
void validate(const Request& request, const Scopes& scopes);
/// Checks that the requested algorithm and tuning exist and fit; open choices are made later. Throws Misuse.
void check_choice(const Request& request, const Scopes& scopes);

/// Text of everything that must be equal on all ranks, except the lengths of parts. Every frame carries its hash.
[[nodiscard]] std::string text_of(const Request& request, const PlanRequest& place);
/// Text of the lengths that this call gives. Those of allgather_v are equal on all ranks; those of alltoall_v differ.
[[nodiscard]] std::string text_of_parts(const Request& request, int rank);
/// Text of a message from one rank to another, equal on both.
[[nodiscard]] std::string text_of_message(const std::string& tensor, std::optional<std::int64_t> tag,
                                          std::pair<int, int> way, const ConstBuffer& data);

/// The plan request for this request, on the ranks of `place`.
[[nodiscard]] PlanRequest plan_request_of(const Request& request, PlanRequest place);

/// Cut points of a call that gives lengths, through `data` and then through `out`; else none.
[[nodiscard]] std::vector<std::size_t> cuts_of(const Request& request);

}  // namespace syncopate::collective::group
