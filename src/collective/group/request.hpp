// Request: one operation as a rank asked for it, what is wrong with it, and what it is called.
#pragma once

#include <string>
#include <vector>

#include "collective/select/select.hpp"
#include "transport/transport.hpp"

namespace syncopate::collective::group {

/// A collective; or a message between two ranks, where `to` or `from` is a rank.
struct Request {
  Collective collective = Collective::allreduce;
  Buffer data;
  CollectiveOptions options;
  transport::Patience patience{};
  Buffer out{};                      ///< alltoall; what arrives of an exchange
  std::vector<std::size_t> parts{};  ///< allgather_v
  int to = -1, from = -1;            ///< `data` goes to `to`; `out` (or, without `to`, `data`) comes from `from`

  [[nodiscard]] bool is_message() const noexcept { return to != -1 || from != -1; }
};

/// Throws Misuse. `place` has the group's ranks and hosts.
void validate(const Request& request, int rank, const PlanRequest& place);

/// What all ranks must agree on, for people. Its hash travels in every frame.
[[nodiscard]] std::string text_of(const Request& request, const PlanRequest& place);
/// The same for a message, alike on both ranks.
[[nodiscard]] std::string text_of_message(const Request& request, int from, int to, const Buffer& data);

/// The request as a question for a plan, on the group of `place`.
[[nodiscard]] PlanRequest plan_request_of(const Request& request, PlanRequest place);

/// Cut points of a call that gives lengths; else none.
[[nodiscard]] std::vector<std::size_t> cuts_of(const Request& request);

}  // namespace syncopate::collective::group
