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
      "# a job\n\n[server]\nmemory = '1GiB'\n[ run ]  # here\n ranks=2 # two\ntimeout = \"60\"\r\n"
      "env = [\"X=a # b\",\n  \"Y=2\"]\n[train]\nanything = 1979-05-27\n";
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
      {"[run]\nconfig = 'other.toml'\n", ":2: key of [run] 'config' is unknown"},
      {"[run]\nranks = 0\n", ":2: --ranks: '0' is not allowed; allowed: 1 to 1024"},
      {"[run]\n\ntransport = 'rdma'\n", ":3: --transport: transport 'rdma' is unknown; allowed: auto, tcp, shm"},
      {"[run]\nzzz = 1\nranks = 0\nlab = 1\n", ":2: key of [run] 'zzz' is unknown"},
      {"[run]\nranks = [1, 2]\n", ":2: --ranks"},
      {"[run]\nranks = 1979-05-27\n", ":2: 'ranks' has a value that no option takes; allowed: a text"},
      {"[run]\nenv = []\n", ":2: 'env' has a value that no option takes"},
      {"[run]\nenv = [['X=1']]\n", ":2: 'env' has a value that no option takes"},
      {"[run]\nranks = ''\n", ":2: 'ranks' has a value that no option takes"},
      {"[run]\nlog-level = 'loud'\n", ":2: --log-level: "},
      {"[runs]\nranks = 2\n", ":1: section 'runs' is unknown; allowed: run, server, train; did you mean 'run'?"},
      {"[run.env]\nX = 1\n", ":1: 'env' has a value that no option takes"},
      {"ranks = 2\n", ":1: 'ranks' is in no section; allowed: below [run], [server], [train]"},
      {"[run\nranks = 2\n", ":1: ", "allowed: TOML, in which a text is in quotes"},
      {"[run]\ntransport = tcp\n", ":2: ", "allowed: TOML, in which a text is in quotes"},
      {"[run]\nranks\n", ":2: ", "allowed: TOML"},
      {"[run]\nranks = \"2\n", ":2: ", "allowed: TOML"},
      {"[run]\nranks = \"2\" 3\n", ":2: ", "allowed: TOML"},
      {"[train]\nsteps = 1\nsteps = 2\n", ":3: ", "cannot redefine"},
  };
  for (const auto& [text, said, meant] : mistakes) {
    SCOPED_TRACE(text);
    expect_misuse(run(text), {file + said, meant});
  }
  expect_misuse(syncopate({"run", "--config", folder / "none", "true"}), {"cannot read", "No such file"});
}

#ifdef SYNCOPATE_HAVE_SERVER
TEST_F(JobFile, OfAServerIsReadInTheSameWay) {
  std::ofstream(file) << "[run]\nservers = 1\n[server]\npatience = 'none'\n";
  expect_misuse(syncopate({"server", "--config", file}), {file + ":4: --patience: 'none' is not allowed"});
  std::ofstream(file) << "[server]\npatience = 1\nmemory = '1 byte'\n";
  expect_misuse(syncopate({"server", "--config", file, "--patience", "2"}), {file + ":3: --memory: "});
}
#endif

}  // namespace
}  // namespace syncopate::test
