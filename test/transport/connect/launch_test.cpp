// Launch: every source of rank, size and rendezvous, their order, and the refused ones.
#include "transport/connect/launch.hpp"

#include <gtest/gtest.h>

#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::transport::connect {
namespace {

using namespace std::chrono_literals;
using Variables = std::map<std::string, std::string, std::less<>>;

Launch launched(Variables variables, GroupOptions options = {}) {
  return resolve_launch(options, base::Environment(std::move(variables)));
}

std::string refusal(Variables variables, const GroupOptions& options = {}) {
  return syncopate::test::thrown<Misuse>([&] { return launched(std::move(variables), options); });
}

void expect(const Launch& launch, int rank, int size, const std::string& source) {
  EXPECT_EQ(launch.options.rank, rank);
  EXPECT_EQ(launch.options.size, size);
  EXPECT_NE(launch.source.find(source), std::string::npos) << launch.source;
}

TEST(Launch, WithNothingThereIsOneRank) { expect(launched({}), 0, 1, "one rank"); }

TEST(Launch, EverySourceIsUnderstood) {
  const std::string place = "file:///x";
  expect(launched({{"SYNCOPATE_RANK", "1"}, {"SYNCOPATE_SIZE", "3"}, {"SYNCOPATE_RENDEZVOUS", place}}), 1, 3,
         "SYNCOPATE_RANK");
  expect(launched({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}}), 2, 4,
         "torchrun");
  expect(launched({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SYNCOPATE_RENDEZVOUS", place}}), 5, 6, "Slurm");
  expect(launched({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"SYNCOPATE_RENDEZVOUS", place}}), 0,
         2, "Open MPI");
  expect(launched({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"SYNCOPATE_RENDEZVOUS", place}}), 1, 2, "PMI");
  GroupOptions options;
  options.rank = 3;
  options.size = 8;
  options.rendezvous = place;
  expect(launched({}, options), 3, 8, "options");
}

TEST(Launch, TheFirstSourceWins) {
  Variables all{{"SYNCOPATE_RANK", "1"},
                {"SYNCOPATE_SIZE", "9"},
                {"RANK", "2"},
                {"WORLD_SIZE", "9"},
                {"SLURM_PROCID", "3"},
                {"SLURM_NTASKS", "9"},
                {"PMI_RANK", "4"},
                {"PMI_SIZE", "9"},
                {"MASTER_ADDR", "h"},
                {"MASTER_PORT", "1000"},
                {"SYNCOPATE_RENDEZVOUS", "tcp://a:1"}};
  GroupOptions options;
  options.rank = 7;
  options.size = 9;
  options.rendezvous = "file:///mine";
  EXPECT_EQ(launched(all, options).options.rank, 7);
  EXPECT_EQ(launched(all, options).options.rendezvous, "file:///mine");
  EXPECT_EQ(launched(all).options.rank, 1);
  EXPECT_EQ(launched(all).options.rendezvous, "tcp://a:1");
  all.erase("SYNCOPATE_RANK");
  all.erase("SYNCOPATE_SIZE");
  all.erase("SYNCOPATE_RENDEZVOUS");
  EXPECT_EQ(launched(all).options.rank, 2);
  EXPECT_EQ(launched(all).options.rendezvous, "tcp://h:1000");
}

TEST(Launch, TheAgentsPortIsLeftToIt) {
  Variables torchrun{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(launched(torchrun).options.rendezvous, "tcp://[::1]:29500");
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(launched(torchrun).options.rendezvous, "tcp://[::1]:29501");
}

TEST(Launch, HalfASourceIsRefusedByName) {
  const std::pair<Variables, std::string> refused[] = {
      {{{"SYNCOPATE_RANK", "1"}}, "SYNCOPATE_RANK is set without SYNCOPATE_SIZE"},
      {{{"SYNCOPATE_SIZE", "2"}}, "SYNCOPATE_SIZE is set without SYNCOPATE_RANK"},
      {{{"RANK", "1"}}, "WORLD_SIZE"},
      {{{"SYNCOPATE_RENDEZVOUS", "tcp://a:1"}}, "SYNCOPATE_RANK"},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}, "SYNCOPATE_RENDEZVOUS"},
  };
  for (const auto& [variables, words] : refused) syncopate::test::expect_words(refusal(variables), {words});
  EXPECT_EQ(refusal({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), "no error") << "one rank needs no place";
  GroupOptions options;
  options.size = 4;
  syncopate::test::expect_words(refusal({}, options), {"size is set without rank"});
}

TEST(Launch, ValuesOutOfRangeAreRefusedByName) {
  const std::pair<Variables, std::string> refused[] = {
      {{{"SYNCOPATE_RANK", "4"}, {"SYNCOPATE_SIZE", "4"}}, "SYNCOPATE_RANK=4 does not fit SYNCOPATE_SIZE=4"},
      {{{"PMI_RANK", "-1"}, {"PMI_SIZE", "4"}}, "PMI_RANK"},
      {{{"RANK", "x"}, {"WORLD_SIZE", "4"}}, "RANK"},
  };
  for (const auto& [variables, words] : refused) syncopate::test::expect_words(refusal(variables), {words});
  GroupOptions options;
  options.streams = 0;
  syncopate::test::expect_words(refusal({}, options), {"streams=0"});
}

std::string meeting_of(Variables variables) { return launched(std::move(variables)).options.rendezvous; }

const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "1444806657"}};
const Variables kMpich{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}, {"PMI_FD", "8"}};
const Variables kSlurm{{"SLURM_PROCID", "1"},
                       {"SLURM_NTASKS", "4"},
                       {"SLURM_JOB_ID", "77"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_STEP_NUM_NODES", "1"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(Launch, RanksOfOneHostMeetByTheNameOfTheirJob) {
  for (const auto& [starter, rank] :
       {std::pair{kOpenMpi, "OMPI_COMM_WORLD_RANK"}, {kMpich, "PMI_RANK"}, {kSlurm, "SLURM_PROCID"}}) {
    EXPECT_TRUE(meeting_of(starter).starts_with("local://")) << meeting_of(starter);
    EXPECT_EQ(meeting_of(starter), meeting_of(with(starter, rank, "3"))) << "all ranks derive the same";
    EXPECT_NE(launched(starter).source.find(meeting_of(starter)), std::string::npos) << "the log names it";
    EXPECT_EQ(meeting_of(with(starter, "SYNCOPATE_RENDEZVOUS", "tcp://a:1")), "tcp://a:1") << "an explicit one wins";
    EXPECT_EQ(meeting_of(with(with(starter, "MASTER_ADDR", "h"), "MASTER_PORT", "29500")), "tcp://h:29500");
  }
  EXPECT_EQ(meeting_of(kMpich), "local://fd:8") << "MPICH does not name the job; the process behind its socket does";
}

TEST(Launch, OtherJobsMeetElsewhere) {
  EXPECT_NE(meeting_of(kOpenMpi), meeting_of(with(kOpenMpi, "PMIX_NAMESPACE", "1444806658")));
  EXPECT_NE(meeting_of(kOpenMpi), meeting_of(with(kOpenMpi, "OMPI_MCA_orte_hnp_uri", "1.0;tcp://127.0.0.1:5")));
  EXPECT_NE(meeting_of(kSlurm), meeting_of(with(kSlurm, "SLURM_JOB_ID", "78")));
  EXPECT_NE(meeting_of(kSlurm), meeting_of(with(kSlurm, "SLURM_STEP_ID", "1")));
}

TEST(Launch, OnSeveralHostsTheTwoVariablesAreNamedAndHowToPassThem) {
  for (const auto& [starter, count, pass] : {std::tuple{kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun -x"},
                                             {kMpich, "MPI_LOCALNRANKS", "mpirun -genv"},
                                             {kSlurm, "SLURM_STEP_NUM_NODES", "export"}}) {
    const std::string text = refusal(with(starter, count, "2"));
    syncopate::test::expect_words(text, {"SYNCOPATE_RENDEZVOUS=tcp://HOST:29500", "SYNCOPATE_SECRET_FILE=FILE", pass});
  }
}

TEST(Launch, AStarterInsideAnotherIsTheOneThatCounts) {
  Variables both = kSlurm;  // mpirun inside a Slurm job: every rank has the same Slurm step's variables
  both["SLURM_PROCID"] = "0";
  both["SLURM_NTASKS"] = "1";
  Variables mpich = both;
  both.insert(kOpenMpi.begin(), kOpenMpi.end());
  expect(launched(both), 1, 4, "Open MPI");
  mpich.insert(kMpich.begin(), kMpich.end());
  expect(launched(mpich), 1, 4, "MPICH");
  Variables srun = kSlurm;  // srun --mpi=pmi2 also provides PMI, without MPICH's own process
  srun.insert({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}});
  expect(launched(srun), 1, 4, "Slurm");
}

TEST(Launch, BoundsThatNoClockCanCountAreCutToAYear) {
  GroupOptions options;
  options.timeout = options.join_timeout = options.silence = std::chrono::milliseconds::max();
  const GroupOptions found = launched({}, options).options;
  for (const auto& bound : {found.timeout, found.join_timeout, found.silence}) EXPECT_EQ(*bound, 24h * 365);
}

TEST(Launch, SilenceTooShortForHeartbeatsIsMisuse) {
  EXPECT_THROW(launched({}, {.silence = 99ms}), Misuse);
  EXPECT_THROW(launched({{"SYNCOPATE_SILENCE_MS", "1"}}), Misuse);
  EXPECT_EQ(launched({}, {.silence = 100ms}).options.silence, 100ms);
}

TEST(Launch, TheRestComesFromTheEnvironmentUnlessGiven) {
  const Variables variables{
      {"SYNCOPATE_INTERFACE", "eth7"},       {"SYNCOPATE_SECRET_FILE", "/s"}, {"SYNCOPATE_TIMEOUT_MS", "1000"},
      {"SYNCOPATE_JOIN_TIMEOUT_MS", "2000"}, {"SYNCOPATE_SILENCE_MS", "300"}, {"SYNCOPATE_STREAMS", "4"},
      {"SYNCOPATE_CHECKSUM", "1"},           {"SYNCOPATE_TRANSPORT", "shm"},  {"SYNCOPATE_SPIN_US", "700"},
      {"SYNCOPATE_CLUSTER", "/c.json"},      {"SYNCOPATE_SPIN_US", "700"},    {"SYNCOPATE_DELAY_US", "450"}};
  const GroupOptions found = launched(variables).options;
  EXPECT_EQ(found.interface, "eth7");
  EXPECT_EQ(found.secret_file, "/s");
  EXPECT_EQ(found.timeout->count(), 1000);
  EXPECT_EQ(found.delay->count(), 450);
  EXPECT_EQ(found.join_timeout->count(), 2000);
  EXPECT_EQ(found.silence->count(), 300);
  EXPECT_EQ(found.streams, 4);
  EXPECT_EQ(found.transport, TransportChoice::shm);
  EXPECT_EQ(launched({}).options.transport, TransportChoice::automatic);
  EXPECT_EQ(launched({}).options.tls, TlsChoice::automatic);
  EXPECT_EQ(found.cluster, "/c.json");
  EXPECT_EQ(found.spin->count(), 700);
  EXPECT_EQ(found.checksum, true);
  GroupOptions options;
  options.interface = "lo";
  options.streams = 2;
  options.cluster = "mine.json";
  EXPECT_EQ(launched(variables, options).options.cluster, "mine.json");
  EXPECT_EQ(launched(variables, options).options.interface, "lo");
  EXPECT_EQ(launched(variables, options).options.streams, 2);
  const GroupOptions standard = launched({}).options;
  const GroupOptions kept = launched(variables, standard).options;  // given, although it equals the default
  EXPECT_EQ(kept.timeout, 120s);
  EXPECT_EQ(kept.join_timeout, 60s);
  EXPECT_EQ(kept.silence, 2s);
  EXPECT_EQ(kept.streams, 1);
  EXPECT_EQ(kept.checksum, false);
}

}  // namespace
}  // namespace syncopate::transport::connect
