// `syncopate lab`: emulated hosts on one machine, from the command line.
#include "lab/lab.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "arguments.hpp"
#include "command.hpp"
#include "launch/process/program.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::command {

namespace {

struct Words {
  lab::LabOptions lab{.detached = true};
  std::string host;
  bool everything = false;
};

lab::Lab running(const std::string& name) {
  if (auto found = lab::Lab::find(name)) return std::move(*found);
  throw Misuse(fmt::format("no lab '{}' is up; start one: syncopate lab up N RATE{}", name,
                           name == "sync" ? "" : fmt::format(" --name {}", name)));
}

void describe(const Session& session, const lab::Lab& lab) {
  std::vector<std::string> addresses;
  for (int i = 0; i < lab.options().hosts; ++i) addresses.push_back(lab.address(i));
  if (session.json)
    print_row({{"lab", lab.options().name},
               {"hosts", lab.options().hosts},
               {"rate", lab.options().rate},
               {"addresses", addresses},
               {"owner", lab.owner()}});
  else
    print_text("lab {}: {} hosts at {}, sync0 {} to sync{} {}\n", lab.options().name, lab.options().hosts,
               lab.options().rate, addresses.front(), lab.options().hosts - 1, addresses.back());
}

int up(const Session& session, const Words& words) {
  (void)lab::Lab::all();  // forgets the dead
  describe(session, lab::Lab::start(words.lab));
  return 0;
}

int reshape(const Session& session, const Words& words) {
  lab::Lab lab = running(words.lab.name);
  lab.reshape(words.lab.rate);
  describe(session, lab);
  return 0;
}

int down(const Words& words) {
  for (lab::Lab& lab : lab::Lab::all())
    if (words.everything || lab.options().name == words.lab.name) lab.stop();
  return 0;
}

int status(const Session& session) {
  const std::vector<lab::Lab> labs = lab::Lab::all();
  if (labs.empty() && !session.json) print_text("no lab is up\n");
  for (const lab::Lab& lab : labs) {
    describe(session, lab);
    for (int i = 0; i < lab.options().hosts; ++i) {
      const lab::PortCounters port = lab.counters(i);
      if (session.json)
        print_row({{"lab", lab.options().name},
                   {"host", i},
                   {"address", lab.address(i)},
                   {"sent_bytes", port.sent_bytes},
                   {"received_bytes", port.received_bytes},
                   {"sent_drops", port.sent_drops},
                   {"received_drops", port.received_drops}});
      else
        print_text("  sync{:<4}{:<13} sent {:>14} bytes, {:>6} drops   received {:>14} bytes, {:>6} drops\n", i,
                   lab.address(i), port.sent_bytes, port.sent_drops, port.received_bytes, port.received_drops);
    }
  }
  return 0;
}

int host_number(const std::string& text) {
  if (text == "bridge") return lab::kBridge;
  if (!text.empty() && text.size() < 4 && text.find_first_not_of("0123456789") == std::string::npos)
    return std::stoi(text);
  throw Misuse(fmt::format("host '{}' is unknown; allowed: its number, 0 and up, or bridge", text));
}

int execute(const Words& words, std::vector<std::string> argv) {
  if (argv.empty()) throw Misuse("no command given: lab exec I CMD…");
  const int host = host_number(words.host);
  const lab::Lab lab = running(words.lab.name);
  const std::string path = launch::process::resolve_program(argv[0]);
  lab.enter(host);
  std::vector<char*> arguments;
  for (std::string& word : argv) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  throw Misuse(fmt::format("cannot run '{}': {}", path, std::strerror(errno)));
}

void define(CLI::App& app, Session& session) {
  const auto words = std::make_shared<Words>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* summary, std::function<int()> action) {
    CLI::App* child = app.add_subcommand(name, summary);
    child->add_flag("--json", session.json, "Rows for programs");
    child->add_option("--name", words->lab.name, "Which lab, where there are several")->capture_default_str();
    child->callback([&session, action = std::move(action)] { session.action = action; });
    return child;
  };
  CLI::App* start = add("up", "Start N hosts whose ports carry RATE; replaces a lab of the same name",
                        [&session, words] { return up(session, *words); });
  start->add_option("N", words->lab.hosts, "How many hosts: 1 to 128")->required()->check(between(1, 128));
  start->add_option("RATE", words->lab.rate, "200mbit, 1gbit, 10gbit…; none: not shaped")
      ->required()
      ->type_name("RATE");
  CLI::App* rate = add("rate", "Reshape a running lab", [&session, words] { return reshape(session, *words); });
  rate->add_option("RATE", words->lab.rate, "200mbit, 1gbit, 10gbit…; none: not shaped")->required()->type_name("RATE");
  CLI::App* stop = add("down", "Stop what runs on the hosts, then the lab", [words] { return down(*words); });
  stop->add_flag("--all", words->everything, "Every lab of this user");
  add("status", "Labs that are up, and what their ports have carried", [&session, words] { return status(session); });
  CLI::App* run = add("exec", "Run a command on host I (a number from 0, or bridge)", nullptr);
  run->add_option("I", words->host, "The host")->required();
  run->prefix_command();
  run->callback([&session, words, run] {
    session.action = [words, argv = program_behind(*run)] { return execute(*words, argv); };
  });
  app.footer(
      "Host I has the address 10.78.0.<I+1>, the name sync<I> and the interface eth0. Needs root, or a kernel that\n"
      "lets users make user namespaces, and iproute2.");
}

}  // namespace

extern constinit const Command lab{
    .name = "lab",
    .summary = "Emulated hosts on one machine: up, exec, rate, status, down",
    .define = define,
};

}  // namespace syncopate::tools::command
