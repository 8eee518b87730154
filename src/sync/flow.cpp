// The end of a step: ranks agree whether its codec state counts.
#include "sync/flow.hpp"

#include <algorithm>
#include <cstdint>

namespace syncopate::sync {

// A value that is not finite may stay on one rank, in its residual. If only that rank rejected the step, the averages
// of later steps would lack what the others' residuals gave to this one.
void Flow::end_step() {
  std::int64_t not_finite = state.is_finite() ? 0 : 1;
  const bool agrees = exchange.name != "none" && group.size() > 1 && std::ranges::any_of(codecs, compress::has_state);
  if (agrees)
    run(group, Collective::allreduce, Buffer(&not_finite, 1, DType::i64),
        {.op = ReduceOp::max, .name = "whether all values of the step are finite"});
  if (not_finite == 0)
    state.commit();
  else
    state.reject();
}

}  // namespace syncopate::sync
