// Membarrier: a memory fence on all threads of both processes, issued by the side that sleeps.
#pragma once

namespace syncopate::transport::shm {

// One end writes a record, then looks whether the other sleeps; the other says that it sleeps, then looks for records.
// Each needs its write to be seen before its look. A fence on both sides would cost the writer of every small frame a
// quarter of its time, so the sleeper alone pays: the system makes every running thread of the processes that have
// registered pass a fence (Linux 4.16).

/// Registers this process; false where the system cannot. To be called before memory is shared.
[[nodiscard]] bool register_for_membarrier() noexcept;
/// Afterwards every write that another registered process made before is seen here, or that process will see what this
/// one wrote before.
void membarrier_all() noexcept;

}  // namespace syncopate::transport::shm
