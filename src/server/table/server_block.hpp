// ServerBlock: a block on its server: its weights, who has sent which updates, and who waits for which.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "optim/rule.hpp"
#include "server/message.hpp"
#include "server/table/shown.hpp"

namespace syncopate::server {

/// A state machine without clock, thread or wire. The law: an update is applied once, whatever is sent again, and an
/// update that was answered has been applied. A worker has at most one message under way for a block, so that what is
/// held for it is bounded. Used by one thread at a time.
class ServerBlock final {
 public:
  /// `terms` must outlive this.
  ServerBlock(const Terms& terms, const Block& block, bool spared);

  /// Part `part` (kept_part) of the first values, from worker 0: the optimizer's state, unless it is zero, then the
  /// weights. What comes after the weights is not looked at. Throws Corrupt for another length or part.
  void initialise(base::ConstBytes values, std::uint64_t part);
  /// An update of steps [push.first, push.last): applied, or held until everybody's has come, or had before. Its worker
  /// waits for weights from now on. Throws Mismatch where updates before it are missing, and Corrupt.
  void take(std::size_t worker, const Message& push);
  /// The worker waits for weights with `fetch.least` steps of everybody.
  void ask(std::size_t worker, const Message& fetch);
  /// Workers that can be answered; they wait no more.
  [[nodiscard]] std::vector<std::size_t> answerable();
  [[nodiscard]] Message answer(std::size_t worker);

  /// The worker's clock counts no more. What it has sent stays.
  void leave(std::size_t worker);
  /// On another stream, where it repeats what it asks for. If it had left, it takes part again, and its clock counts
  /// from where the others are. What it has sent before is not applied again.
  void come_back(std::size_t worker);
  /// Another process is that worker from now on, and takes part from step `from` on.
  void join(std::size_t worker, Clock from);

  /// What `answer` does to the block itself. `version` counts it.
  void show() { shown_.advance(weights_); }
  [[nodiscard]] std::uint64_t version() const noexcept { return shown_.version(); }
  /// All of it but who waits, who asks again: a block of the same terms that is restored from it goes on in the same
  /// bits. Throws Corrupt for bytes that are no image; the block is of no use then.
  [[nodiscard]] Payload image() const;
  void restore(base::ConstBytes image);
  /// After `restore`: everybody takes part as another process, from this step on. What was sent beyond it stays in the
  /// weights, as in a checkpoint. Throws Corrupt where an image is not of that step.
  void begin_again(Clock step);

  [[nodiscard]] Clock least() const noexcept;  ///< every update of so many steps is applied
  [[nodiscard]] Clock clock_of(std::size_t worker) const noexcept { return seats_[worker].clock; }
  [[nodiscard]] Clock applied_of(std::size_t worker) const noexcept { return seats_[worker].applied; }
  /// So many steps of everybody are waited for; 0: nobody waits.
  [[nodiscard]] Clock wanted() const noexcept;
  [[nodiscard]] bool takes_part(std::size_t worker) const noexcept { return seats_[worker].takes_part; }
  [[nodiscard]] std::span<const float> values() const noexcept { return weights_; }

 private:
  struct Seat {
    bool takes_part = true;
    Clock applied = 0;              ///< its updates of the first so many steps have come
    Clock clock = 0;                ///< others wait for it beyond this; more than `applied` where it was away
    std::optional<Clock> asks{};    ///< it waits for weights with so many steps
    std::uint64_t version = 0;      ///< Message::version of what it asked
    std::optional<Payload> held{};  ///< in lockstep: its update of a step that is not complete; empty: zero
    Clock held_for = 0;
    double rate = 0;
  };

  void require_length(base::ConstBytes values) const;
  void require_part(std::uint64_t part) const;
  [[nodiscard]] const std::vector<float>& part(std::size_t index) const {
    return index == 0 ? weights_ : state_[index - 1];
  }
  void require_sound(base::ConstBytes update) const;
  void require_next(std::size_t worker, const Message& push) const;
  void hold(Seat& seat, const Message& push);
  void complete_steps();
  void apply_step();
  void step_rule(const optim::Step& step, Range tile, std::span<float> gradient);
  void add(base::ConstBytes update, Range range, float* into);

  const Terms& terms_;
  const bool spared_;
  std::unique_ptr<compress::Coder> coder_;  ///< of updates; null: they travel as they are
  bool has_weights_ = false;
  std::vector<float> weights_;
  std::array<std::vector<float>, optim::kMostStates> state_;
  std::vector<Seat> seats_;
  Clock complete_ = 0;  ///< in lockstep: so many steps are applied
  Shown shown_;
};

}  // namespace syncopate::server
