// Names of collectives, as options and errors write them.
#include "collective/plan/shape.hpp"

#include "base/named.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kNames[] = {"allreduce", "reduce_scatter", "allgather", "allgather_v", "broadcast", "reduce",
                                       "gather",    "scatter",        "alltoall",  "alltoall_v",  "barrier"};
static_assert(std::size(kNames) == std::size(kCollectives));
}  // namespace

std::string_view name_of(Collective collective) noexcept { return kNames[static_cast<int>(collective)]; }
Collective collective_named(std::string_view name) { return base::value_named<Collective>("collective", name, kNames); }

}  // namespace syncopate
