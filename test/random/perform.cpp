// Perform: from drawn steps to calls of the library.
#include "random/perform.hpp"

#include <algorithm>
#include <cstring>

namespace syncopate::test {

namespace {

constexpr std::size_t kFence = 64;
constexpr std::byte kMark{0xa5};

/// Where a vector lies: all ranks of a collective have it in the same kind of memory, the two of a message in any.
std::uint64_t place_key(const Step& step, int rank) {
  const std::uint64_t own = mixed(step.key + 1000 + static_cast<std::uint64_t>(rank));
  return step.kind == Kind::collective ? own / 2 * 2 + step.key % 2 : own;
}

Members members_of(Group& group, Scope scope) { return {group.scope_ranks(scope), group.scope_rank(scope)}; }

}  // namespace

Vector::Vector(Group& group, DType dtype, std::size_t count, std::uint64_t key) {
  const std::size_t width = size_of(dtype), shift = key % 3 == 0 ? key / 3 % 16 * width : 0;
  bytes_ = count * width + shift + 2 * kFence;
  memory_ = key % 2 == 0 ? group.allocate<std::byte>(bytes_) : std::make_unique<std::byte[]>(bytes_);
  std::memset(memory_.get(), static_cast<int>(kMark), bytes_);
  buffer_ = Buffer(memory_.get() + kFence + shift, count, dtype);
}

bool Vector::is_fenced() const noexcept {
  const auto is_mark = [](std::byte byte) { return byte == kMark; };
  const auto* begin = static_cast<const std::byte*>(buffer_.data);
  return std::all_of(static_cast<const std::byte*>(memory_.get()), begin, is_mark) &&
         std::all_of(begin + buffer_.bytes().size(), static_cast<const std::byte*>(memory_.get()) + bytes_, is_mark);
}

Performance::Performance(Group& group, const Step& step)
    : group_(group), step_(step), members_(members_of(group, step.options.scope)) {
  takes_part_ = members_.me >= 0;
  if (!takes_part_) members_ = {{group.rank()}, 0};
  const bool is_crossing = step.kind == Kind::exchange || step.collective == Collective::alltoall ||
                           step.collective == Collective::alltoall_v;
  const bool is_receiver = step.kind == Kind::message && group.rank() == step.to;
  in_.emplace(group, step.dtype, input_count(step, members_), place_key(step, group.rank()));
  if (!is_receiver) fill(in_->buffer(), inputs_of(step), group.rank());
  if (is_crossing) out_.emplace(group, step.dtype, result_count(step, members_), place_key(step, group.rank() + 100));
  call();
}

void Performance::call() { return step_.kind == Kind::collective ? call_collective() : call_message(); }

void Performance::call_collective() {
  Call call{.collective = step_.collective, .data = in_->buffer()};
  if (out_) call.out = out_->buffer();
  if (step_.collective == Collective::allgather_v) call.parts = parts_of(step_, members_.size());
  for (int other = 0; step_.collective == Collective::alltoall_v && other < members_.size(); ++other) {
    call.parts.push_back(part_between(step_, members_.me, other));
    call.out_parts.push_back(part_between(step_, other, members_.me));
  }
  if (step_.is_started) {
    work_ = start(group_, std::move(call), step_.options);
    return;
  }
  switch (step_.collective) {
    case Collective::allreduce:
      return allreduce(group_, call.data, step_.options);
    case Collective::reduce_scatter:
      return static_cast<void>(reduce_scatter(group_, call.data, step_.options));
    case Collective::allgather:
      return allgather(group_, call.data, step_.options);
    case Collective::allgather_v:
      return allgather_v(group_, call.data, call.parts, step_.options);
    case Collective::broadcast:
      return broadcast(group_, call.data, step_.options);
    case Collective::reduce:
      return reduce(group_, call.data, step_.options);
    case Collective::gather:
      return gather(group_, call.data, step_.options);
    case Collective::scatter:
      return static_cast<void>(scatter(group_, call.data, step_.options));
    case Collective::alltoall:
      return alltoall(group_, call.data, call.out, step_.options);
    case Collective::alltoall_v:
      return alltoall_v(group_, {call.data, call.parts}, {call.out, call.out_parts}, step_.options);
    case Collective::barrier:
      return barrier(group_, step_.options);
  }
}

void Performance::call_message() {
  const int me = group_.rank(), size = group_.size();
  if (step_.kind == Kind::exchange)
    return exchange(group_, {(me + step_.distance) % size, in_->buffer()},
                    {(me + size - step_.distance) % size, out_->buffer()}, step_.options);
  if (me != step_.from && me != step_.to) return;
  const Buffer& data = in_->buffer();
  if (!step_.is_started)
    return me == step_.from ? send(group_, step_.to, data, step_.options)
                            : recv(group_, step_.from, data, step_.options);
  work_ = me == step_.from ? start_send(group_, step_.to, data, step_.options)
                           : start_recv(group_, step_.from, data, step_.options);
}

void Performance::finish() {
  if (work_) work_->wait();
  const auto refuse = [&](const std::string& what) {
    throw WrongValue(fmt::format("rank {} of {} ({}), {}: {}", group_.rank(), group_.size(), group_.transport(),
                                 text_of(step_), what));
  };
  if (!in_->is_fenced() || (out_ && !out_->is_fenced())) refuse("bytes outside the vector were written");
  const Inputs inputs = inputs_of(step_);
  const bool stays = out_ || !takes_part_ || (step_.kind == Kind::message && group_.rank() != step_.to);
  if (stays && !is_unchanged(in_->buffer(), inputs, group_.rank())) refuse("an input was changed");
  if (!takes_part_) return;
  const std::string flaw = flaw_in((out_ ? out_ : in_)->buffer(), step_, members_);
  if (!flaw.empty()) refuse(flaw);
}

std::optional<std::uint64_t> Performance::digest() const {
  if (!takes_part_ || !is_same_everywhere(step_)) return std::nullopt;
  const auto bytes = in_->buffer().bytes();
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

namespace {

/// The steps of one group that are under way.
class Sequence final {
 public:
  Sequence(Group& group, std::uint64_t seed, const Ledger& ledger)
      : group_(group), seed_(seed), mine_(seed + 7 + static_cast<std::uint64_t>(group.rank())), ledger_(ledger) {}

  void perform(const Step& step, int number) {
    under_way_.emplace_back(number, std::make_unique<Performance>(group_, step));
    if (!step.is_started) finish(under_way_.size() - 1);
    while (!under_way_.empty() && mine_.chance(30)) finish(mine_.below(under_way_.size()));
  }
  void finish_all() {
    while (!under_way_.empty()) finish(mine_.below(under_way_.size()));
  }

 private:
  void finish(std::size_t index) {
    const auto [number, performance] = std::move(under_way_[index]);
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
    performance->finish();
    if (const auto digest = performance->digest())
      ledger_(fmt::format("{}/{} of rank {}'s set", seed_, number, performance->set()), *digest);
  }

  Group& group_;
  std::uint64_t seed_;
  Draw mine_;  ///< ranks wait in different orders
  const Ledger& ledger_;
  std::vector<std::pair<int, std::unique_ptr<Performance>>> under_way_;
};

void perform_apart(Group& group, const Step& step, const World& world, const Ledger& ledger) {
  const int color = static_cast<int>(mixed(step.key + static_cast<std::uint64_t>(group.rank())) %
                                     (static_cast<std::uint64_t>(step.colors) + 1)) -
                    1;
  const int key = static_cast<int>(mixed(step.key ^ static_cast<std::uint64_t>(group.rank())) % 3);
  const auto part = group.split(color, key);
  if (!part) return;
  const Script inner{step.key + static_cast<std::uint64_t>(color), 4, {part->size(), 1, world.most, false}};
  perform(*part, inner, ledger);
}

}  // namespace

void perform(Group& group, const Script& script, const Ledger& ledger) {
  Draw draw(script.seed);
  Sequence sequence(group, script.seed, ledger);
  for (int number = 0; number < script.steps; ++number) {
    const Step step = draw_step(draw, script.world);
    if (step.kind == Kind::split)
      perform_apart(group, step, script.world, ledger);
    else
      sequence.perform(step, number);
  }
  sequence.finish_all();
}

}  // namespace syncopate::test
