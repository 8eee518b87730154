// Launch: rank, size and meeting place of this process, from options, then from what started it.
#pragma once

#include <string>

#include "base/env.hpp"
#include "syncopate/group.hpp"

namespace syncopate::transport::connect {

/// Where neither options nor environment say otherwise.
inline constexpr std::chrono::milliseconds kTimeout{120'000}, kJoinTimeout{60'000}, kSilence{2'000};
inline constexpr std::chrono::microseconds kSpin{50};
/// A shorter silence blames ranks that only waited for a processor.
inline constexpr std::chrono::milliseconds kShortestSilence{100};
/// Longer bounds are cut to this: a clock of nanoseconds cannot count to the end of the longest.
inline constexpr std::chrono::milliseconds kLongestBound = std::chrono::hours(24 * 365);

struct Launch {
  GroupOptions options;  ///< complete: everything optional is set
  std::string source;    ///< for the log: what was taken from where
  bool blames = false;   ///< SYNCOPATE_BLAME: `syncopate run` started this rank and wants to know who failed first
};

/// Pure. Rank and size come together from the first source that has them: the options, SYNCOPATE_RANK/SIZE, torchrun
/// (RANK, WORLD_SIZE), Open MPI (OMPI_COMM_WORLD_RANK/SIZE), MPICH (PMI_RANK/SIZE with MPI_LOCALNRANKS), Slurm
/// (SLURM_PROCID, SLURM_NTASKS), PMI (PMI_RANK/SIZE); with none of them the group has one rank. Every other option that
/// was not given is taken from SYNCOPATE_RENDEZVOUS, _INTERFACE, _SECRET_FILE, _TIMEOUT_MS, _JOIN_TIMEOUT_MS,
/// _SILENCE_MS, _TRANSPORT, _TLS, _SPIN_US, _DELAY_US, _STREAMS, _CLUSTER, _CHECKSUM; the rendezvous also from
/// torchrun's MASTER_ADDR and MASTER_PORT, and, where Open MPI, MPICH or Slurm started all ranks on one host, from what
/// they call the job (local://NAME). Throws Misuse naming the variables that are out of range, incomplete or missing.
[[nodiscard]] Launch resolve_launch(const GroupOptions& options, const base::Environment& environment);

}  // namespace syncopate::transport::connect
