// Environments: what starters of ranks may have set.
#include "transport/connect/launch.hpp"

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

namespace {

constexpr const char* kNames[] = {"SYNCOPATE_RANK",
                                  "SYNCOPATE_SIZE",
                                  "SYNCOPATE_RENDEZVOUS",
                                  "SYNCOPATE_TIMEOUT_MS",
                                  "SYNCOPATE_SILENCE_MS",
                                  "SYNCOPATE_TRANSPORT",
                                  "SYNCOPATE_SPIN_US",
                                  "SYNCOPATE_DELAY_US",
                                  "SYNCOPATE_STREAMS",
                                  "SYNCOPATE_CHECKSUM",
                                  "SYNCOPATE_JOIN_TIMEOUT_MS",
                                  "SYNCOPATE_BLAME_FD",
                                  "SYNCOPATE_INTERFACE",
                                  "SYNCOPATE_SECRET_FILE",
                                  "RANK",
                                  "WORLD_SIZE",
                                  "MASTER_ADDR",
                                  "MASTER_PORT",
                                  "TORCHELASTIC_USE_AGENT_STORE",
                                  "OMPI_COMM_WORLD_RANK",
                                  "OMPI_COMM_WORLD_SIZE",
                                  "OMPI_COMM_WORLD_LOCAL_SIZE",
                                  "PMIX_NAMESPACE",
                                  "PMI_RANK",
                                  "PMI_SIZE",
                                  "PMI_FD",
                                  "MPI_LOCALNRANKS",
                                  "SLURM_PROCID",
                                  "SLURM_NTASKS",
                                  "SLURM_JOB_ID",
                                  "SLURM_STEP_ID",
                                  "SLURM_STEP_NUM_NODES"};

}  // namespace

void launch(Input input) {
  std::map<std::string, std::string, std::less<>> values;
  for (Fields fields(input); !fields.empty();) {
    const auto name = fields.take<std::uint8_t>();
    values[kNames[name % std::size(kNames)]] = text_of(fields.take_bytes(fields.take<std::uint8_t>() % 32));
  }
  static const GroupOptions options;
  may_refuse<Misuse>([&] {
    const auto launch = transport::connect::resolve_launch(options, base::Environment(values));
    hold(*launch.options.rank >= 0 && *launch.options.rank < *launch.options.size, "a rank is below the size");
    hold(launch.options.timeout->count() > 0 && launch.options.silence->count() > 0, "bounds are positive");
    hold(*launch.options.streams >= 1 && *launch.options.streams <= 16, "streams are 1 to 16");
  });
}

}  // namespace syncopate::fuzz::target
