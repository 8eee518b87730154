// Drawings of plans: the sends and receives of every rank in every round.
#include "collective/replay/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collective/replay/replay.hpp"

namespace syncopate::collective::replay {

namespace {

using Grid = std::vector<std::vector<std::string>>;  // by rank, by round

/// Adds an entry to a rank's cell of a round: "3>1 0<0" sends chunk 3 to rank 1 and receives chunk 0 from rank 0.
void note(std::string& cell, std::uint32_t chunk, std::string_view sign, std::uint32_t peer) {
  cell += fmt::format("{}{}{}{}", cell.empty() ? "" : " ", chunk, sign, peer);
}

/// Notes a run of chunks at both ends, one chunk per round.
void note_transfer(Grid& cells, const Transfer& transfer, const PlanStep& out, const PlanStep& in) {
  for (std::uint32_t i = 0; i < in.chunk_count; ++i) {
    const std::size_t round = static_cast<std::size_t>(std::lround(transfer.begin)) + i;
    note(cells[transfer.from][round], out.first_chunk + i, ">", transfer.to);
    note(cells[transfer.to][round], in.first_chunk + i, in.act == Act::receive_reduce ? "+" : "<", transfer.from);
  }
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string row_of(const std::string& title, const std::vector<std::string>& cells, std::size_t width) {
  std::string row = fmt::format("{:>7}", title);
  for (const std::string& cell : cells) row += fmt::format(" | {:<{}}", cell, width);
  row.resize(row.find_last_not_of(' ') + 1);
  return row + "\n";
}

std::string text_of(const Grid& cells) {
  std::size_t width = 5;
  for (const auto& row : cells)
    for (const std::string& text : row) width = std::max(width, text.size());
  std::vector<std::string> numbers;
  for (std::size_t round = 1; round <= cells[0].size(); ++round) numbers.push_back(std::to_string(round));
  std::string text = row_of("round", numbers, width);
  for (std::size_t rank = 0; rank < cells.size(); ++rank)
    text += row_of(fmt::format("rank {}", rank), cells[rank], width);
  return text;
}

}  // namespace

std::string draw(const std::vector<Plan>& plans, const Title& title) {
  const Replay played = run(whole_ensemble_of(plans), {.end_of = end_of_round});
  Grid cells(plans.size(), std::vector<std::string>(static_cast<std::size_t>(std::lround(played.makespan))));
  for (const Transfer& transfer : played.transfers)
    note_transfer(cells, transfer, plans[transfer.from].steps[transfer.send_step],
                  plans[transfer.to].steps[transfer.receive_step]);
  return fmt::format("{} ({}), {}, {}; c>r: sends chunk c to rank r, c<r: receives it from rank r, c+r: adds it\n{}",
                     name_of(title.collective), title.algorithm, plural(plans.size(), "rank"),
                     plural(plans[0].chunks, "chunk"), text_of(cells));
}

}  // namespace syncopate::collective::replay
