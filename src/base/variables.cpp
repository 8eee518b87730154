// The table of all environment variables; docs/environment.md is generated from it.
#include <algorithm>

#include "base/env.hpp"
#include "syncopate/tooling/environment.hpp"

namespace syncopate {

namespace {

using Allow = AllowedValues;

constexpr long kMostMs = std::numeric_limits<int>::max();

constexpr EnvironmentVariable kVariables[] = {
    {"SYNCOPATE_RANK", Allow::whole(0), "0 to size - 1", "the rank of another starter (torchrun, Slurm, MPI), else 0",
     "job", "Rank of this process. Set it together with SYNCOPATE_SIZE."},
    {"SYNCOPATE_SIZE", Allow::whole(1), "1 or more", "the size of another starter, else 1", "job",
     "Number of ranks of the job."},
    {"SYNCOPATE_LOCAL_RANK", Allow::whole(0), "0 or more", "not set", "job",
     "Rank among the ranks of the same host, for programs that choose a device by it. The library does not read it."},
    {"SYNCOPATE_RENDEZVOUS", Allow::any(), "tcp://HOST:PORT, file:///FOLDER, local://NAME",
     "torchrun's MASTER_ADDR and MASTER_PORT, or the job id of MPI or Slurm on one host", "job",
     "Where the ranks find each other."},
    {"SYNCOPATE_INTERFACE", Allow::any(), "an interface or an address",
     "the one that faces the rendezvous, else loopback", "job",
     "The interface that this rank listens on and sends from."},
    {"SYNCOPATE_JOIN_TIMEOUT_MS", Allow::whole(1, kMostMs), "1 or more", "60000", "job",
     "Milliseconds until joining the group fails."},
    {"SYNCOPATE_SECRET_FILE", Allow::any(), "a file of 16 to 4096 bytes that only its user and group can access",
     "none: loopback only", "security",
     "The job's secret, equal on all ranks and servers. Line ends at the end of the file are ignored."},
    {"SYNCOPATE_TLS", Allow::listed(), "auto, on, off", "auto", "security",
     "Whether connections between ranks, and to servers, are encrypted. auto encrypts if an address is public. The "
     "result must be equal on all ranks and servers."},
    {"SYNCOPATE_TIMEOUT_MS", Allow::whole(1, kMostMs), "1 or more", "120000", "failures",
     "Milliseconds until a collective, or a request to a server, fails."},
    {"SYNCOPATE_SILENCE_MS", Allow::whole(100, kMostMs), "100 or more", "2000", "failures",
     "Milliseconds without a heartbeat after which a rank or server counts as lost. Rank 0's value is used."},
    {"SYNCOPATE_BLAME_FD", Allow::any(), "NUMBER:INODE of an open descriptor", "not set", "failures",
     "Where a rank that `syncopate run` started writes one line that names the rank that failed first. `run` sets it."},
    {"SYNCOPATE_TRANSPORT", Allow::listed(), "auto, tcp, shm", "auto", "transport",
     "How ranks exchange data. auto uses shared memory within a host. Rank 0's value is used."},
    {"SYNCOPATE_STREAMS", Allow::whole(1, 16), "1 to 16", "1", "transport",
     "TCP connections for each pair of ranks. Rank 0's value is used."},
    {"SYNCOPATE_CHECKSUM", Allow::listed(), "0, 1", "0", "transport",
     "1: payloads have a checksum, not only headers. Rank 0's value is used."},
    {"SYNCOPATE_SPIN_US", Allow::whole(0, 60'000'000), "0 to 60000000", "50", "transport",
     "Microseconds that a blocking call, or a server after a small message, polls before it sleeps."},
    {"SYNCOPATE_DELAY_US", Allow::whole(0, 1'000'000), "0 to 1000000", "0", "transport",
     "Microseconds by which every message leaves later, to emulate a network with a longer start-up time."},
    {"SYNCOPATE_CLUSTER", Allow::any(), "a cluster file", "typical costs", "planning",
     "Measured costs by which algorithm `auto` chooses (`syncopate fit` writes the file). Rank 0's value is used."},
    {"SYNCOPATE_SERVERS", Allow::any(), "addresses, separated by commas", "none", "parameter server",
     "Addresses of the servers in the order of their index. Workers and servers with replicas need it."},
    {"SYNCOPATE_SERVER", Allow::whole(0), "0 or more", "not set: a worker", "parameter server",
     "Index of the server that this process is. `syncopate run --own-servers` sets it."},
    {"SYNCOPATE_LISTEN", Allow::any(), "addresses, separated by commas", "none", "parameter server",
     "Where the server of SYNCOPATE_SERVER listens."},
    {"SYNCOPATE_JOB", Allow::any(), "a name", "empty", "parameter server",
     "Name of the job. A server rejects workers of another job."},
    {"SYNCOPATE_LOG", Allow::listed(), "error, warning, info, debug, off", "warning", "output",
     "Severity of what the library writes to standard error. Writing never blocks; lines that do not fit are counted."},
    {"SYNCOPATE_PROGRESS", Allow::listed(), "1", "not set", "output",
     "`syncopate run` sets it for rank 0 when it draws on a terminal: the program may write progress lines."},
    {"SYNCOPATE_SSH", Allow::any(), "a program", "ssh", "command line",
     "The program that `syncopate run --hosts` calls as ssh."},
    {"SYNCOPATE_PYTHON", Allow::any(), "a Python interpreter",
     "python3; with `python -m syncopate` the same interpreter", "command line",
     "The Python that runs PyTorch contenders of `syncopate bench step`."},
    {"SYNCOPATE_CONTENDER", Allow::any(), "a Python program", "bench/contender/pytorch.py", "command line",
     "The program of PyTorch contenders of `syncopate bench step`, a file of the source tree."},
    {"SYNCOPATE_SEED", Allow::whole(0), "a whole number", "a fixed seed", "tests",
     "First seed of tests with random inputs."},
    {"SYNCOPATE_COUNT", Allow::whole(1), "1 or more", "a fixed number", "tests",
     "Number of seeds of tests with random inputs."},
    {"SYNCOPATE_SECONDS", Allow::whole(1), "1 or more", "a fixed number", "tests",
     "Seconds for which tests with real time run."},
    {"SYNCOPATE_TRACE", Allow::listed(), "1", "not set", "tests", "1: histories in virtual time print every event."},
};

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

void require_allowed(std::string_view name, std::string_view value) {
  const auto* const found = std::ranges::find(kVariables, name, &EnvironmentVariable::name);
  if (found == std::end(kVariables) || value.empty()) return;
  require_allowed(name, value, found->allowed, found->values);
}

}  // namespace syncopate
