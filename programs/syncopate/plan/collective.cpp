// The plan of one collective: the question, by which costs it is asked, and the answer as a picture or a row.
#include "plan/collective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "arguments.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::plan {
namespace {

struct CollectiveArguments {
  std::string collective = "allreduce";
  std::string bytes = "1MiB";
  std::string grid;
  std::string cluster;
  std::string transport, memory = "own";
  bool draw = false;
  PlanRequest request{.ranks = 0};
  LinkCost link;
};

constexpr int kUsualRanks = 4;

/// The request of the plan, and the costs to use.
struct PlannedCall {
  PlanRequest request;
  NetworkCost cost;

  /// The link that its ranks meet first.
  [[nodiscard]] const LinkCost& link() const {
    const auto ranks = static_cast<std::uint32_t>(request.ranks);
    const bool spread = !request.hosts.empty() || (request.ranks_per_host > 0 && request.ranks_per_host < ranks);
    return spread ? cost.inter : cost.intra;
  }
};

PlannedCall question_of(const CollectiveArguments& options) {
  PlannedCall question{options.request, options.link};
  PlanRequest& request = question.request;
  if (!options.transport.empty()) question.cost = usual_cost(options.transport, memory_named(options.memory));
  if (!options.cluster.empty()) {
    const Cluster cluster = read_cluster(options.cluster);
    question.cost = cost_of(cluster);
    if (request.ranks == 0) request.ranks = cluster.ranks;
    if (request.hosts.empty() && request.ranks_per_host == 0)
      request.ranks_per_host = static_cast<std::uint32_t>(cluster.ranks_per_host);
  }
  if (request.ranks == 0) request.ranks = kUsualRanks;
  request.collective = collective_named(options.collective);
  request.bytes = parse_bytes(options.bytes);
  if (options.grid.empty()) return question;
  int used = 0;
  const int read = std::sscanf(options.grid.c_str(), "%ux%u%n", &request.tuning.rows, &request.tuning.columns, &used);
  if (read != 2 || static_cast<std::size_t>(used) != options.grid.size())
    throw Misuse(fmt::format("grid is '{}'; allowed: ROWSxCOLUMNS, as in 2x4", options.grid));
  return question;
}

/// One algorithm after the other, as `auto` prefers them.
nlohmann::json alternatives_of(const std::vector<RankedAlgorithm>& ranking) {
  nlohmann::json rows = nlohmann::json::array();
  for (const RankedAlgorithm& entry : ranking) {
    rows.push_back({{"algorithm", entry.algorithm}, {"law_s", entry.law_s}});
    if (entry.measured_s) rows.back()["measured_s"] = *entry.measured_s;
  }
  return rows;
}

struct RankedAlgorithms {
  PlanPrice price;
  std::vector<RankedAlgorithm> ranking;
  std::string picture;
};

void print_json(const PlanRequest& request, const RankedAlgorithms& answer) {
  nlohmann::json row{{"algorithm", answer.price.algorithm},
                     {"collective", name_of(request.collective)},
                     {"ranks", request.ranks},
                     {"bytes", request.bytes},
                     {"rounds", answer.price.rounds},
                     {"wire_bytes_per_rank", answer.price.wire_bytes_per_rank},
                     {"predicted_s", answer.price.predicted_s},
                     {"alternatives", alternatives_of(answer.ranking)}};
  if (!answer.picture.empty()) row["picture"] = answer.picture;
  print_row(row);
}

void print_answer(const PlanRequest& request, const LinkCost& link, const RankedAlgorithms& answer) {
  const PlanPrice& price = answer.price;
  print_text("{} {} over {} rank{}, {}\n", price.algorithm, name_of(request.collective), request.ranks,
             request.ranks == 1 ? "" : "s", format_bytes(static_cast<double>(request.bytes)));
  print_text("  rounds               {}\n", price.rounds);
  print_text("  wire bytes per rank  {} ({})\n", price.wire_bytes_per_rank,
             format_bytes(static_cast<double>(price.wire_bytes_per_rank)));
  print_text("  predicted time       {} (alpha {:g} s, beta {:g} s/B, gamma {:g} s/B)\n",
             format_seconds(price.predicted_s), link.alpha_s, link.beta_s_per_byte, link.gamma_s_per_byte);
  print_text("  proof                every rank ends with the right contributions, no rank blocks\n");
  const bool measured = !answer.ranking.empty() && answer.ranking.front().measured_s;
  if (request.ranks > 1)
    print_text("  by {}, in the order in which auto prefers them\n", measured ? "cost law | as measured" : "cost law");
  for (const RankedAlgorithm& entry : answer.ranking)
    print_text("    {:<24} {}{}\n", entry.algorithm, format_seconds(entry.law_s),
               entry.measured_s ? " | " + format_seconds(*entry.measured_s) : "");
  if (!answer.picture.empty()) print_text("\n{}", answer.picture);
}

int price_collective(const CollectiveArguments& options, const Session& session) {
  PlannedCall question = question_of(options);
  PlanRequest& request = question.request;
  const NetworkCost& cost = question.cost;
  const Progress progress(session, "plan");
  progress.show(fmt::format("proving the plans of {} ranks", request.ranks));
  const std::string flaw = verify_plans(request, cost);
  if (!flaw.empty()) throw Corrupt(fmt::format("the plan of {} is wrong: {}", request.algorithm, flaw));
  progress.show(fmt::format("playing the plans of {} ranks in time", request.ranks));
  const RankedAlgorithms answer{price_plans(request, cost),
                                request.ranks > 1 ? sort_algorithms(request, cost) : std::vector<RankedAlgorithm>(),
                                options.draw ? draw_plans(request, cost) : std::string()};
  progress.clear();
  if (request.collective == Collective::barrier) request.bytes = kBarrierBytes;
  const std::string warning =
      warning_about_size(cost, request.ranks, request.collective, static_cast<double>(request.bytes));
  if (!warning.empty()) session.log.write(LogLevel::warning, warning);
  if (session.json)
    print_json(request, answer);
  else
    print_answer(request, question.link(), answer);
  return 0;
}

void add_tuning(CLI::App& sub, CollectiveArguments& options) {
  Tuning& tuning = options.request.tuning;
  sub.add_option("--blocks", tuning.blocks, "Pipeline blocks of algorithms that have them; 0: their own choice")
      ->check(at_least(0U))
      ->capture_default_str();
  sub.add_option("--grid", options.grid, "torus_2d: ROWSxCOLUMNS; without it the most square one");
  sub.add_option("--ranks-per-host", options.request.ranks_per_host,
                 "Number of neighbouring ranks that share a host; 0: all")
      ->check(at_least(0U))
      ->capture_default_str();
  sub.add_option("--hosts", options.request.hosts, "A host number for each rank: 0,0,1")
      ->check(at_least(0U))
      ->delimiter(',');
  sub.add_option("--inner", tuning.inner, "hierarchical: the algorithm within hosts")->capture_default_str();
  sub.add_option("--outer", tuning.outer, "hierarchical: the algorithm between hosts")->capture_default_str();
}

void add_options(CLI::App& sub, CollectiveArguments& options) {
  PlanRequest& request = options.request;
  std::vector<std::string_view> names;
  for (const Collective collective : kCollectives) names.push_back(name_of(collective));
  sub.add_option("NAME", request.algorithm, "Algorithm from the catalogue (syncopate info), or auto")->required();
  sub.add_option("--collective", options.collective, fmt::format("{}", fmt::join(names, ", ")))->capture_default_str();
  sub.add_option("--ranks", request.ranks, "Number of ranks (default: the cluster's, else 4)")->check(at_least(1));
  sub.add_option("--bytes", options.bytes, "Size of the full vector: 4KiB, 16MiB, ...")
      ->type_name("BYTES")
      ->check(byte_size())
      ->capture_default_str();
  sub.add_option("--root", request.root, "Root of broadcast, reduce, gather and scatter")
      ->check(at_least(0))
      ->capture_default_str();
  add_tuning(sub, options);
  CLI::Option* cluster =
      sub.add_option("--cluster", options.cluster, "Costs and timings: a file of syncopate fit")->check(input_file());
  CLI::Option* transport =
      sub.add_option("--transport", options.transport, "The usual costs of tcp or shm, where a group has no cluster")
          ->check(one_of("transport", {"tcp", "shm"}))
          ->excludes(cluster);
  sub.add_option("--memory", options.memory, "With --transport shm: vectors of the ranks' own, or the group's memory")
      ->check(one_of("memory", {"own", "group"}))
      ->capture_default_str()
      ->needs(transport);
  for (CLI::Option* cost : {sub.add_option("--alpha", options.link.alpha_s, "Seconds per message"),
                            sub.add_option("--beta", options.link.beta_s_per_byte, "Seconds per byte sent"),
                            sub.add_option("--gamma", options.link.gamma_s_per_byte, "Seconds per byte reduced")})
    cost->check(not_negative())->capture_default_str()->excludes(cluster)->excludes(transport);
  sub.add_flag("--draw", options.draw, "Draw the plan: a row per rank, a column per round");
}

}  // namespace

void add_collective(CLI::App& app, Session& session) {
  const auto options = std::make_shared<CollectiveArguments>();
  CLI::App& sub = *app.add_subcommand("collective", "One collective's plan: rounds, bytes, predicted time, picture");
  sub.fallthrough();  // --json and --log-level may stand behind it
  add_options(sub, *options);
  sub.callback(
      [options, &session] { session.action = [options, &session] { return price_collective(*options, session); }; });
}

}  // namespace syncopate::tools::plan
