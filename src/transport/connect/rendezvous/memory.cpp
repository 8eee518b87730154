// Rendezvous in memory: the ranks are threads of one process.
#include <map>

#include "base/guarded.hpp"
#include "base/require.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"

namespace syncopate::transport::connect::rendezvous {

class Board final {
 public:
  base::Guarded<std::map<int, std::string>> texts;
};

namespace {

class InMemory final : public Rendezvous {
 public:
  explicit InMemory(std::shared_ptr<Board> board) : board_(std::move(board)) {}

  std::vector<std::string> exchange(const Member& me, std::string mine, base::Time deadline) override {
    bool first = false;
    board_->texts.change([&](auto& texts) { first = texts.emplace(me.rank, std::move(mine)).second; });
    base::require(first, "two members joined as rank {}", me.rank);
    std::vector<std::string> all;
    const auto complete = [&](const auto& texts) { return texts.size() >= static_cast<std::size_t>(me.size); };
    const bool came = board_->texts.wait_until(deadline, complete, [&](const auto& texts) {
      for (const auto& [rank, text] : texts) all.push_back(text);
    });
    if (came) return all;
    std::vector<bool> present(static_cast<std::size_t>(me.size));
    board_->texts.with([&](const auto& texts) {
      for (const auto& [rank, text] : texts) present[static_cast<std::size_t>(rank)] = true;
    });
    throw Timeout(missing_ranks(present) + " did not come to the rendezvous", {.rank = me.rank});
  }

 private:
  std::shared_ptr<Board> board_;
};

}  // namespace

std::shared_ptr<Board> make_board() { return std::make_shared<Board>(); }

std::unique_ptr<Rendezvous> in_memory(std::shared_ptr<Board> board) {
  return std::make_unique<InMemory>(std::move(board));
}

std::string missing_ranks(const std::vector<bool>& present) {
  constexpr std::size_t kShown = 16;
  std::vector<std::size_t> missing;
  for (std::size_t rank = 0; rank < present.size(); ++rank)
    if (!present[rank]) missing.push_back(rank);
  if (missing.size() == 1) return fmt::format("rank {}", missing[0]);
  const std::size_t shown = std::min(missing.size(), kShown);
  std::string text = "ranks ";
  for (std::size_t i = 0; i < shown; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == missing.size() ? " and " : ", ", missing[i]);
  if (shown < missing.size()) text += fmt::format(" and {} more", missing.size() - shown);
  return text;
}

}  // namespace syncopate::transport::connect::rendezvous
