// `syncopate plan`: what a plan costs before anything runs; a profile compares policies, `collective` shows one plan.
#include "syncopate/plan.hpp"

#include <fmt/format.h>

#include "command.hpp"
#include "plan/policies.hpp"
#include "syncopate/error.hpp"
#include "syncopate/units.hpp"

namespace syncopate::tools::command {
namespace {

struct Options {
  std::string algorithm;
  std::string collective = "allreduce";
  int ranks = 4;
  std::string bytes = "1MiB";
  std::uint32_t blocks = 0;
  int root = 0;
  bool draw = false;
  LinkCost cost;
};

PlanRequest request_of(const Options& options) {
  return {.collective = collective_named(options.collective),
          .algorithm = options.algorithm,
          .ranks = options.ranks,
          .root = options.root,
          .bytes = parse_bytes(options.bytes),
          .blocks = options.blocks};
}

nlohmann::json row_of(const Options& options, const PlanRequest& request, const PlanPrice& price) {
  nlohmann::json row{{"algorithm", price.algorithm},    {"collective", options.collective},
                     {"ranks", options.ranks},          {"bytes", request.bytes},
                     {"rounds", price.rounds},          {"wire_bytes_per_rank", price.wire_bytes_per_rank},
                     {"predicted_s", price.predicted_s}};
  if (options.draw) row["picture"] = draw_plans(request);
  return row;
}

void print_text(const Options& options, const PlanRequest& request, const PlanPrice& price) {
  fmt::print("{} {} over {} ranks, {}\n", price.algorithm, options.collective, options.ranks,
             format_bytes(static_cast<double>(request.bytes)));
  fmt::print("  rounds               {}\n", price.rounds);
  fmt::print("  wire bytes per rank  {} ({})\n", price.wire_bytes_per_rank,
             format_bytes(static_cast<double>(price.wire_bytes_per_rank)));
  fmt::print("  predicted time       {} (alpha {:g} s, beta {:g} s/B, gamma {:g} s/B)\n",
             format_seconds(price.predicted_s), options.cost.alpha_s, options.cost.beta_s_per_byte,
             options.cost.gamma_s_per_byte);
  fmt::print("  proof                every rank ends with the right contributions, no rank blocks\n");
  if (options.draw) fmt::print("\n{}", draw_plans(request));
}

int price_collective(const Options& options, const Session& session) {
  const PlanRequest request = request_of(options);
  const std::string flaw = verify_plans(plan_collective(request), request.collective, request.root);
  if (!flaw.empty()) throw Error("Error", fmt::format("the plan of {} is wrong: {}", options.algorithm, flaw));
  const PlanPrice price = price_plans(request, options.cost);
  if (session.json)
    print_row(row_of(options, request, price));
  else
    print_text(options, request, price);
  return 0;
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<Options>();
  tools::plan::add_policies(app, session);
  app.require_subcommand(0, 1);
  CLI::App& sub = *app.add_subcommand("collective", "One collective's plan: rounds, bytes, predicted time, picture");
  sub.fallthrough();  // --json and --log-level may stand behind it
  sub.add_option("NAME", options->algorithm, "Algorithm from the catalogue (syncopate info), or auto")->required();
  sub.add_option("--collective", options->collective,
                 "allreduce, reduce_scatter, allgather, broadcast, reduce, barrier")
      ->capture_default_str();
  sub.add_option("--ranks", options->ranks, "Number of ranks")->capture_default_str();
  sub.add_option("--bytes", options->bytes, "Size of the full vector: 4KiB, 16MiB, ...")->capture_default_str();
  sub.add_option("--blocks", options->blocks, "Pipeline blocks of algorithms that have them; 0: their own choice")
      ->capture_default_str();
  sub.add_option("--root", options->root, "Root of broadcast and reduce")->capture_default_str();
  sub.add_option("--alpha", options->cost.alpha_s, "Seconds per message")->capture_default_str();
  sub.add_option("--beta", options->cost.beta_s_per_byte, "Seconds per byte sent")->capture_default_str();
  sub.add_option("--gamma", options->cost.gamma_s_per_byte, "Seconds per byte reduced")->capture_default_str();
  sub.add_flag("--draw", options->draw, "Draw the plan: a row per rank, a column per round");
  sub.callback(
      [options, &session] { session.action = [options, &session] { return price_collective(*options, session); }; });
}

}  // namespace

extern constinit const Command plan;
constinit const Command plan{"plan", "What a plan costs before anything runs", define};

}  // namespace syncopate::tools::command
