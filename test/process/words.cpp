// The command line's errors for unknown words, and its help.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "process/run_program.hpp"
#include "syncopate/tooling/environment.hpp"

namespace syncopate::test {
namespace {

struct Mistake {
  std::vector<std::string> words;
  std::string said;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, NameWhatIsAllowedAndTheNearestOfIt) {
  const Ended ended = syncopate(GetParam().words);
  expect_misuse(ended, {GetParam().said});
  EXPECT_LT(ended.error.size(), 1500U) << "no number of hundreds of digits";
}

INSTANTIATE_TEST_SUITE_P(
    All, Mistakes,
    testing::Values(
        Mistake{{"trian"}, "subcommand of `syncopate` 'trian' is unknown; allowed: bench, data"},
        Mistake{{"trian"}, "did you mean 'train'?"},
        Mistake{{"bench", "alreduce"}, "subcommand of `syncopate bench` 'alreduce' is unknown; allowed: allreduce"},
        Mistake{{"bench", "alreduce"}, "did you mean 'allreduce'?"},
        Mistake{{"bench"}, "`syncopate bench` needs a subcommand; allowed: allreduce, reduce_scatter"},
        Mistake{{"bench", "allreduce", "--algoritm", "ring"}, "did you mean '--algorithm'?"},
        Mistake{{"bench", "allreduce", "--algorithm", "rings"}, "did you mean 'ring'?"},
        Mistake{{"bench", "allreduce", "--contenders", "glo"}, "did you mean 'gloo'?"},
        Mistake{{"bench", "allreduce", "--bytes", "4XiB"}, "size '4XiB' is not understood; allowed: whole numbers"},
        Mistake{{"run", "--transport", "rdma", "true"}, "transport 'rdma' is unknown; allowed: auto, tcp, shm"},
        Mistake{{"run", "--np", "2", "--", "true"}, "option of `syncopate run` '--np' is unknown; allowed: "},
        Mistake{{"run", "--np", "2", "--", "true"}, "did you mean '-n'?"},
        Mistake{{"run", "-n", "2", "--rank", "2", "true"}, "did you mean '--ranks'?"},
        Mistake{{"run", "-x", "true"}, "option of `syncopate run` '-x' is unknown"},
        Mistake{{"lab", "exec", "0", "--nam", "x", "--", "true"}, "did you mean '--name'?"},
        Mistake{{"run", "--lab", "1", "Gbit/s", "true"},
                "rate '1' is not understood; allowed: bits per second with a unit"},
        Mistake{{"lab", "up", "2", "1", "Gbit/s"}, "`syncopate lab up` takes no further word: 'Gbit/s'"},
        Mistake{{"run", "-n", "0", "true"}, "'0' is not allowed; allowed: 1 to 1024"},
        Mistake{{"plan", "collective", "ring", "--ranks", "0"}, "'0' is not allowed; allowed: 1 or more"},
        Mistake{{"fit", "--limit", "0", "-o", "x"}, "'0' is not allowed; allowed: more than 0"},
        Mistake{{"fit", "--limit", "1", "-o", "x"}, "--limit 1 is too short: on 4 ranks"},
        Mistake{{"run", "--timeout", "0", "true"}, "--timeout: '0' is not allowed; allowed: 0.001 to 1000000"},
        Mistake{{"run", "--snapshot-every", "0", "true"}, "--snapshot-every: '0' is not allowed; allowed: 1 or more"},
        Mistake{{"fit", "--ranks", "2", "--ranks", "3", "-o", "x"}, "--ranks is given twice; give it once"},
        Mistake{{"fit", "-o"}, "--out needs a value"},
        Mistake{{"simulate", "--steps", "2.5"}, "--steps: '2.5' is not a whole number; allowed: 1 or more"},
        Mistake{{"simulate", "--fusion-bytes", "0"}, "--fusion-bytes: '0' is not allowed; allowed: 1 B or more"},
        Mistake{{"data", "draw", "--format", "foo"}, "format 'foo' is unknown; allowed: cifar10, folder"},
        Mistake{{"fit", "--codec", "foo", "-o", "x"}, "codec 'foo' is unknown; allowed: "},
        Mistake{{"info", "codecs"}, "name 'codecs' is unknown; did you mean 'codec'?"},
        Mistake{{"run", "--ranks-per-host", "2", "true"}, "for real hosts write --hosts a:2,b:2"},
        Mistake{{"run", "--snapshots", "x", "true"}, "--snapshots needs --servers and excludes --replicas"},
        Mistake{{"run", "--servers", "1", "--replicas", "1", "true"}, "--replicas needs --servers 2 or more"},
        Mistake{{"profile", "--architecture", "resnet50", "-o", "x"}, "need --throughput-gflops"},
        Mistake{{"plan", "/nothing.json"}, "cannot read /nothing.json: No such file or directory"},
        Mistake{{"simulate", "/nothing.json", "--cluster", "x"}, "cannot read /nothing.json: No such file"},
        Mistake{{"figure", "/nothing.jsonl", "-o", "x"}, "cannot read /nothing.jsonl: No such file"},
        Mistake{{"bench", "replay", "/nothing.json"}, "cannot read /nothing.json: No such file"},
        Mistake{{"bench", "server", "--replay", "thesis", "--lab", "1gbit", "--models", "vgg16"},
                "the thesis has no model 'vgg16'; allowed: resnet110, googlenet, inception_v4_slim"},
        Mistake{{"bench", "server", "--replay", "thesis", "--lab", "1gbit", "--models", ""}, "--models is empty"},
        Mistake{{"bench", "server", "--replay", "thesis"}, "--replay needs --lab RATE"},
        Mistake{{"bench", "server", "--replay", "paper", "--lab", "1gbit"}, "there is no replay 'paper'"},
        Mistake{{"bench", "server", "--models", "resnet110"}, "--models is for --replay thesis"},
        Mistake{{"profile", "--table", "/nothing.csv", "--throughput-gflops", "1", "-o", "x"},
                "cannot read /nothing.csv"},
        Mistake{{"info", "rng"}, "did you mean 'ring'?"},
        Mistake{{"help", "bnech"}, "command 'bnech' is unknown; allowed: bench"},
        Mistake{{"help", "lab", "upp"}, "did you mean 'up'?"}));

TEST(Variables, WithAValueThatIsNotAllowedAreMisuseOfRun) {
  using Kind = AllowedValues::Kind;
  for (const EnvironmentVariable& variable : environment_variables()) {
    if (variable.allowed.kind == Kind::any) continue;
    const std::string name(variable.name);
    const Ended ended = syncopate({"run", "-n", "1", "--", "true"}, {.environment = {{name, "rdma"}}});
    expect_misuse(ended, {name + "=rdma is not "});
  }
  expect_misuse(syncopate({"run", "--env", "SYNCOPATE_TLS=never", "true"}),
                {"SYNCOPATE_TLS=never is not allowed; allowed: auto, on, off"});
}

TEST(Variables, WithAValueThatIsNotAllowedAreMisuseOfEveryCommand) {
  const std::string said = syncopate({"no-such-command"}).error, mark = "allowed: ";
  std::istringstream listed(said.substr(said.find(mark) + mark.size()));
  std::size_t count = 0;
  for (std::string command; listed >> command && !command.starts_with('('); ++count) {
    if (command.ends_with(',')) command.pop_back();
    expect_misuse(syncopate({command}, {.environment = {{"SYNCOPATE_TRANSPORT", "rdma"}}}),
                  {"SYNCOPATE_TRANSPORT=rdma is not allowed; allowed: auto, tcp, shm"});
  }
  EXPECT_GT(count, 10U) << said;
}

TEST(Help, TheOutputOptionHasTheSameNamesInEveryCommand) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"fit"}, {"report"}, {"figure"}, {"profile"}, {"data", "draw"}}) {
    std::vector<std::string> help = command;
    help.emplace_back("--help");
    const std::string output = syncopate(help).output;
    EXPECT_NE(output.find("-o,--out,--output"), std::string::npos) << command[0] << '\n' << output;
  }
}

TEST(Help, OfACommandIsWhatItsHelpOptionShows) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"bench"}, {"lab", "up"}, {"plan", "collective"}, {"run"}}) {
    std::vector<std::string> help = command, option = command;
    help.insert(help.begin(), "help");
    option.emplace_back("--help");
    const Ended ended = syncopate(help);
    EXPECT_EQ(ended.code, 0) << ended.error;
    EXPECT_EQ(ended.output, syncopate(option).output);
  }
  EXPECT_EQ(syncopate({"help"}).output, syncopate({"--help"}).output);
}

TEST(Files, ThatAreSwappedAreNamedAsWhatTheyAre) {
  const TemporaryFolder folder;
  const std::string cluster = folder / "cluster.json", profile = folder / "profile.json";
  std::ofstream(cluster) << R"({"ranks": 4, "links": {"inter": {"alpha_s": 1e-4, "beta_s_per_byte": 1e-8}}})";
  std::ofstream(profile)
      << R"({"model": "m", "forward_s": 1, "layers": [{"name": "a", "elements": 9, "backward_s": 1}]})";
  ASSERT_EQ(syncopate({"plan", profile, "--cluster", cluster}).code, 0);
  expect_misuse(syncopate({"plan", cluster, "--cluster", profile}), {"cluster.json: this is a cluster file"});
  expect_misuse(syncopate({"plan", profile, "--cluster", profile}), {"profile.json: this is a profile"});
}

TEST(Info, OfANameOrAShelfIsThatAlone) {
  const Ended ring = syncopate({"info", "ring", "--json"});
  ASSERT_EQ(ring.code, 0) << ring.error;
  EXPECT_EQ(nlohmann::json::parse(ring.output).at("name"), "ring");
  const Ended codecs = syncopate({"info", "codec", "--json"});
  EXPECT_GT(lines_of(codecs.output).size(), 1U);
  for (const std::string& line : lines_of(codecs.output)) EXPECT_EQ(nlohmann::json::parse(line).at("shelf"), "codec");
}

}  // namespace
}  // namespace syncopate::test
