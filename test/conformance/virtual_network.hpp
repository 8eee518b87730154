// A virtual network: the engines of all ranks in one thread, on ideal links that know no time but their own.
#pragma once

#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "collective/engine/execute.hpp"
#include "collective/select/select.hpp"

namespace syncopate::test {

/// Every rank has one port to send and one to receive. A frame of n bytes occupies one of each for alpha + n beta. An
/// idle port offers its rank's earliest step to idle ports, which accept the offer for their own rank's earliest step,
/// as in collective/replay. Reducing takes no time.
class VirtualNetwork final {
 public:
  VirtualNetwork(int ranks, const LinkCost& link) : link_(link), sending_(size(ranks)), receiving_(size(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) ends_.push_back(std::make_unique<End>(size(ranks)));
  }

  /// Runs one operation on all ranks: rank r runs `programs[r]` on `data[r]`. Returns the seconds.
  double run(const std::vector<collective::plan::Program>& programs,
             const std::vector<collective::engine::Execution::Parameters>& data) {
    std::vector<collective::engine::Execution> engines;
    for (std::size_t rank = 0; rank < ends_.size(); ++rank)
      engines.emplace_back(programs[rank], data[rank], *ends_[rank], ends_[rank]->scratch);
    for (collective::engine::Execution& engine : engines) engine.advance();
    while (true) {
      while (begin_all()) {
      }
      if (under_way_.empty()) break;
      land_next(engines);
    }
    for (std::size_t rank = 0; rank < engines.size(); ++rank)
      if (!engines[rank].done()) throw std::runtime_error("rank " + std::to_string(rank) + " waits for ever");
    return now_s_;
  }

 private:
  struct Post {
    std::uint64_t token = 0;
    std::byte* bytes = nullptr;
    std::size_t count = 0;
    [[nodiscard]] std::uint64_t step() const { return token >> 32; }
  };

  /// One rank's transport: its posts that have not begun.
  struct End final : transport::Transport {
    explicit End(std::size_t ranks) : sends(ranks), receives(ranks) {}
    void send(const transport::Frame& frame) override {
      sends[size(frame.peer)].push_back({frame.token, const_cast<std::byte*>(frame.bytes.data()), frame.bytes.size()});
    }
    void receive(int peer, const transport::Label&, base::Bytes into, std::uint64_t token) override {
      receives[size(peer)].push_back({token, into.data(), into.size()});
    }
    void release(std::uint64_t) override {}
    std::span<const transport::Event> poll(base::Time, transport::Patience) override { return {}; }
    void wake() noexcept override {}
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override { return {0, 0}; }

    std::vector<std::deque<Post>> sends, receives;  ///< by peer
    collective::engine::Scratch scratch;
  };

  struct Flight {
    std::size_t from = 0, to = 0;
    Post sent, expected;
    double end_s = 0;
  };

  static std::size_t size(int number) { return static_cast<std::size_t>(number); }

  /// The rank to which an idle port would send now.
  [[nodiscard]] std::optional<std::size_t> offer_of(std::size_t from) const {
    std::optional<std::size_t> best;
    for (std::size_t to = 0; to < ends_.size() && !sending_[from]; ++to) {
      const auto& sends = ends_[from]->sends[to];
      if (receiving_[to] || sends.empty() || ends_[to]->receives[from].empty()) continue;
      if (!best || sends.front().step() < ends_[from]->sends[*best].front().step()) best = to;
    }
    return best;
  }

  bool begin_all() {
    std::map<std::size_t, std::size_t> taken;  // from whom, by receiver
    for (std::size_t from = 0; from < ends_.size(); ++from) {
      const auto to = offer_of(from);
      if (!to) continue;
      const auto step = [&](std::size_t sender) { return ends_[*to]->receives[sender].front().step(); };
      const auto [held, is_first] = taken.try_emplace(*to, from);
      if (!is_first && step(from) < step(held->second)) held->second = from;
    }
    for (const auto& [to, from] : taken) begin(from, to);
    return !taken.empty();
  }

  void begin(std::size_t from, std::size_t to) {
    auto &sends = ends_[from]->sends[to], &receives = ends_[to]->receives[from];
    if (sends.front().count != receives.front().count) throw std::runtime_error("frames of two lengths meet");
    const double lasts_s = link_.alpha_s + static_cast<double>(sends.front().count) * link_.beta_s_per_byte;
    under_way_.push_back({from, to, sends.front(), receives.front(), now_s_ + lasts_s});
    sends.pop_front();
    receives.pop_front();
    sending_[from] = receiving_[to] = true;
  }

  /// Ends the frames with the earliest end; frames with equal ends free their ports together.
  void land_next(std::vector<collective::engine::Execution>& engines) {
    now_s_ = std::numeric_limits<double>::infinity();
    for (const Flight& flight : under_way_) now_s_ = std::min(now_s_, flight.end_s);
    std::vector<Flight> landed;
    std::erase_if(under_way_, [&](const Flight& flight) {
      const bool ends = flight.end_s <= now_s_ * (1 + 1e-12);
      if (ends) landed.push_back(flight);
      return ends;
    });
    for (const Flight& flight : landed) {
      sending_[flight.from] = receiving_[flight.to] = false;
      std::memcpy(flight.expected.bytes, flight.sent.bytes, flight.sent.count);
      const transport::Event gone{flight.sent.token, false, {}};
      const transport::Event come{flight.expected.token, true, {flight.expected.bytes, flight.expected.count}};
      engines[flight.from].take({&gone, 1});
      engines[flight.to].take({&come, 1});
    }
  }

  LinkCost link_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<bool> sending_, receiving_;
  std::vector<Flight> under_way_;
  double now_s_ = 0;
};

}  // namespace syncopate::test
