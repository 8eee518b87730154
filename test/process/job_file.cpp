// The file of a job: what it sets, what precedes it, and its errors.
#include <gtest/gtest.h>

#include <fstream>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

class JobFile : public testing::Test {
 protected:
  /// `syncopate run --config` with this text, and `more` before the program, which prints its size.
  [[nodiscard]] Ended run(const std::string& text, const std::vector<std::string>& more = {}) const {
    std::ofstream(file) << text;
    std::vector<std::string> words{"run", "--config", file};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "sh", "-c", "echo size $SYNCOPATE_SIZE timeout $SYNCOPATE_TIMEOUT_MS x $X y $Y"});
    return syncopate(words);
  }

  TemporaryFolder folder;
  const std::string file = folder / "job.toml";
};

TEST_F(JobFile, SetsOptionsOfItsSectionAndTheCommandLineTakesPrecedence) {
  const std::string text =
      "# a job\n\n[server]\nmemory = 1GiB\n[ run ]  # here\n ranks=2 # two\ntimeout = \"60\"\r\n"
      "env = [\"X=a # b\", Y=2]\n[train]\nanything = here\n";
  const Ended both = run(text);
  EXPECT_EQ(both.code, 0) << both.error;
  EXPECT_EQ(lines_of(both.output).size(), 2U);
  EXPECT_NE(both.output.find("size 2 timeout 60000 x a # b y 2"), std::string::npos) << both.output;
  for (const std::vector<std::string>& more : {std::vector<std::string>{"-n", "1"}, {"--ranks", "1"}}) {
    const Ended one = run(text, more);
    EXPECT_EQ(one.code, 0) << one.error;
    EXPECT_NE(one.output.find("size 1 timeout 60000"), std::string::npos) << one.output;
  }
}

TEST_F(JobFile, NamesTheLineOfAnErrorAndWhatIsAllowed) {
  const struct {
    std::string text, said, meant{};
  } mistakes[] = {
      {"[run]\nranks = 2\nrank = 2\n", ":3: key of [run] 'rank' is unknown; allowed: ", "did you mean 'ranks'?"},
      {"[run]\nhelp = true\n", ":2: key of [run] 'help' is unknown"},
      {"[run]\nconfig = other.toml\n", ":2: key of [run] 'config' is unknown"},
      {"[run]\nranks = 0\n", ":2: --ranks: '0' is not allowed; allowed: 1 to 1024"},
      {"[run]\n\ntransport = rdma\n", ":3: --transport: transport 'rdma' is unknown; allowed: auto, tcp, shm"},
      {"[run]\nranks = [1, 2]\n", ":2: --ranks"},
      {"[run]\nlog-level = loud\n", ":2: --log-level: "},
      {"[runs]\nranks = 2\n", ":1: section 'runs' is unknown; allowed: run, server, train; did you mean 'run'?"},
      {"[run\nranks = 2\n", ":1: a section's name does not end"},
      {"ranks = 2\n", ":1: 'ranks' is before the first section"},
      {"[run]\nranks\n", ":2: 'ranks' has no value; allowed: KEY = VALUE"},
      {"[run]\nranks =  # two\n", ":2: a value is missing"},
      {"[run]\nranks = \"2\n", ":2: a text has no closing double quote"},
      {"[run]\nenv = [X=1,\n", ":2: a value is missing"},
      {"[run]\nenv = [X=1\n", ":2: a list does not end in this line"},
      {"[run]\nranks = \"2\" 3\n", ":2: '3' follows the value"},
      {"[train]\nsteps = 1\nsteps = 2\n", ":3: 'steps' of [train] is given in line 2 too; give it once"},
  };
  for (const auto& [text, said, meant] : mistakes) {
    SCOPED_TRACE(text);
    expect_misuse(run(text), {file + said, meant});
  }
  expect_misuse(syncopate({"run", "--config", folder / "none", "true"}), {"cannot read", "No such file"});
}

#ifdef SYNCOPATE_HAVE_SERVER
TEST_F(JobFile, OfAServerIsReadInTheSameWay) {
  std::ofstream(file) << "[run]\nservers = 1\n[server]\npatience = none\n";
  expect_misuse(syncopate({"server", "--config", file}), {file + ":4: --patience: 'none' is not allowed"});
  std::ofstream(file) << "[server]\npatience = 1\nmemory = 1 byte\n";
  expect_misuse(syncopate({"server", "--config", file, "--patience", "2"}), {file + ":3: --memory: "});
}
#endif

}  // namespace
}  // namespace syncopate::test
