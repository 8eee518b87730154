// Membarrier: a memory fence on all threads of both processes, issued by the side that sleeps.
#include "transport/shm/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace syncopate::transport::shm {

bool register_for_membarrier() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void membarrier_all() noexcept { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

}  // namespace syncopate::transport::shm
