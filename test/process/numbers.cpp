// Numbers on the command line: no command takes one that is negative, or longer than 64 bits.
#include "process/numbers.hpp"

namespace syncopate::test {
namespace {

/// Every command below `command` that the help lists, and itself.
void find_commands(const std::vector<std::string>& command, std::vector<std::vector<std::string>>& all) {
  all.push_back(command);
  std::vector<std::string> words = command;
  words.emplace_back("--help");
  bool listed = false;
  for (const std::string& line : lines_of(syncopate(words).output)) {
    if (line == "Subcommands:") {
      listed = true;
      continue;
    }
    if (!line.starts_with("  ")) listed = false;
    if (!listed || line[2] == ' ') continue;
    words.back() = line.substr(2, line.find(' ', 2) - 2);
    if (words.back() != "train" && words.back() != "server") find_commands(words, all);  // programs of their own
  }
}

TEST(Numbers, ThatAreNegativeOrTooLongAreRefusedByEveryCommand) {
  std::vector<std::vector<std::string>> commands;
  find_commands({}, commands);
  EXPECT_GE(commands.size(), 25U);
  std::size_t options = 0;
  for (const std::vector<std::string>& command : commands) options += expect_refusals(command);
  EXPECT_GE(options, 90U);
}

#ifdef SYNCOPATE_HAVE_SERVER
TEST(Numbers, ThatAreNegativeOrTooLongAreRefusedByServers) { EXPECT_GE(expect_refusals({"server"}), 5U); }
#endif

}  // namespace
}  // namespace syncopate::test
