// Launch: rank, size and rendezvous of this process, from options, then from its launcher's variables.
#pragma once

#include <string>

#include "base/env.hpp"
#include "syncopate/group.hpp"
#include "syncopate/tooling/blame.hpp"

namespace syncopate::transport::connect {

/// Defaults when neither options nor environment set a value.
inline constexpr std::chrono::milliseconds kTimeout{120'000}, kJoinTimeout{60'000}, kSilence{2'000};
inline constexpr std::chrono::microseconds kSpin{50};
/// With a shorter silence, ranks that only waited for a processor are reported as lost.
inline constexpr std::chrono::milliseconds kShortestSilence{100};
/// Longer bounds are cut to this: they would overflow a clock of nanoseconds.
inline constexpr std::chrono::milliseconds kLongestBound = std::chrono::hours(24 * 365);

/// SYNCOPATE_SPIN_US, else kSpin: for how long a thread polls before it sleeps. Throws Misuse.
[[nodiscard]] std::chrono::microseconds spin_of(const base::Environment& environment);

struct Launch {
  GroupOptions options;  ///< complete: everything optional is set
  std::string source;    ///< the source of each setting, for the log
  /// SYNCOPATE_BLAME_FD, if `syncopate run` started this rank.
  std::optional<BlameDescriptor> blame{};
};

/// Pure. Rank and size come together from the first source that has them: the options, SYNCOPATE_RANK/SIZE, torchrun
/// (RANK, WORLD_SIZE), Open MPI (OMPI_COMM_WORLD_RANK/SIZE), MPICH (PMI_RANK/SIZE with MPI_LOCALNRANKS), Slurm
/// (SLURM_PROCID, SLURM_NTASKS), PMI (PMI_RANK/SIZE). Without any of them the group has one rank. Every other option
/// that is not set comes from SYNCOPATE_RENDEZVOUS, _INTERFACE, _SECRET_FILE, _TIMEOUT_MS, _JOIN_TIMEOUT_MS,
/// _SILENCE_MS, _TRANSPORT, _TLS, _SPIN_US, _DELAY_US, _STREAMS, _CLUSTER, _CHECKSUM. The rendezvous also comes from
/// torchrun's MASTER_ADDR and MASTER_PORT, or, where Open MPI, MPICH or Slurm started all ranks on one host, from the
/// name of the job (local://NAME). Throws Misuse naming the variables that are out of range, incomplete or missing.
[[nodiscard]] Launch resolve_launch(const GroupOptions& options, const base::Environment& environment);

}  // namespace syncopate::transport::connect
