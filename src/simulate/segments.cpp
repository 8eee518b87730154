// Segments: virtual links, and the engines of all ranks on them, in one thread.
#include "simulate/segments.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <queue>

#include "base/require.hpp"
#include "collective/engine/execute.hpp"

namespace syncopate::simulate {

namespace {

/// An event. Events at the same time run in the order in which they were scheduled.
struct Event {
  enum class Kind : std::uint8_t { call, frame, received };  ///< received: after the reduction, if the step reduces
  Kind kind = Kind::call;
  std::uint32_t rank = 0;    ///< the rank that calls or receives
  std::uint32_t from = 0;    ///< sender of a frame
  std::uint64_t token = 0;   ///< token of the frame's send, or of the receive
  base::ConstBytes bytes{};  ///< bytes received
  double time_s = 0;
  std::uint64_t number = 0;
  bool operator>(const Event& other) const {
    return time_s != other.time_s ? time_s > other.time_s : number > other.number;
  }
};

/// Everything in flight between ranks.
class Links final {
 public:
  Links(const Network& network, const collective::replay::Ensemble& ensemble)
      : network_(network),
        ensemble_(ensemble),
        ports_(network),
        copied_s_(ensemble.ranks, 0.0),
        reduced_s_(ensemble.ranks, 0.0) {}

  [[nodiscard]] bool are_near(std::uint32_t a, std::uint32_t b) const noexcept {
    return network_.host_of(a) == network_.host_of(b);
  }
  [[nodiscard]] double now_s() const noexcept { return now_s_; }
  [[nodiscard]] bool are_idle() const noexcept { return events_.empty(); }

  void expect(double time_s, Event event) {
    event.time_s = time_s;
    event.number = number_++;
    events_.push(event);
  }
  /// Returns the next event and sets the clock to its time.
  [[nodiscard]] Event next() {
    const Event event = events_.top();
    events_.pop();
    now_s_ = event.time_s;
    return event;
  }

  void send(std::uint32_t from, const transport::Frame& frame) {
    const auto to = static_cast<std::uint32_t>(frame.peer);
    const std::uint32_t out = network_.host_of(from), in = network_.host_of(to);
    const LinkCost& link = network_.link(from, to);
    const double begin_s = now_s_ + link.alpha_s;
    const double taken_s = static_cast<double>(frame.bytes.size()) * link.beta_s_per_byte;
    const double end_s = out == in ? copied_s_[from] = std::max(begin_s, copied_s_[from]) + taken_s
                                   : ports_.pass(out, in, begin_s, taken_s * network_.slowness_between(out, in));
    expect(end_s, {.kind = Event::Kind::frame, .rank = to, .from = from, .token = frame.token});
  }

  void receive(std::uint32_t rank, std::uint32_t from, const Event& received) {
    Mailbox& mailbox = mailboxes_[{rank, from}];
    mailbox.awaited.push_back(received);
    match(mailbox, from);
  }
  void arrive(const Event& frame) {
    Mailbox& mailbox = mailboxes_[{frame.rank, frame.from}];
    ++mailbox.arrived;
    match(mailbox, frame.from);
  }

 private:
  /// Frames from one rank to another.
  struct Mailbox {
    std::deque<Event> awaited;  ///< events for receives that are already posted
    std::size_t arrived = 0;
  };

  void match(Mailbox& mailbox, std::uint32_t from) {
    if (mailbox.arrived == 0 || mailbox.awaited.empty()) return;
    const Event received = mailbox.awaited.front();
    mailbox.awaited.pop_front();
    --mailbox.arrived;
    const auto step = static_cast<std::size_t>(received.token >> 32);
    const double gamma = network_.link(from, received.rank).gamma_s_per_byte;
    double end_s = now_s_;
    if (ensemble_.programs[received.rank].plan.steps[step].act == Act::receive_reduce)
      end_s = reduced_s_[received.rank] =
          std::max(now_s_, reduced_s_[received.rank]) + static_cast<double>(received.bytes.size()) * gamma;
    expect(end_s, received);
  }

  const Network& network_;
  const collective::replay::Ensemble& ensemble_;
  Ports ports_;
  std::vector<double> copied_s_;   ///< by rank: end of its copies to ranks on its host
  std::vector<double> reduced_s_;  ///< by rank: end of its reductions
  std::map<std::pair<std::uint32_t, std::uint32_t>, Mailbox> mailboxes_;  ///< by receiver and sender
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t number_ = 0;
  double now_s_ = 0;
};

/// One rank's transport. The loop below passes events to its engine, which does not poll.
class End final : public transport::Transport {
 public:
  End(Links& links, std::uint32_t rank) : links_(links), rank_(rank) {}

  [[nodiscard]] transport::FrameLengths frame_lengths(int peer) const noexcept override {
    return links_.are_near(rank_, static_cast<std::uint32_t>(peer)) ? transport::kMemoryFrames : transport::kWireFrames;
  }
  void send(const transport::Frame& frame) override { links_.send(rank_, frame); }
  void receive(int peer, const transport::Label& /*label*/, base::Bytes into, std::uint64_t token) override {
    links_.receive(rank_, static_cast<std::uint32_t>(peer),
                   {.kind = Event::Kind::received, .rank = rank_, .token = token, .bytes = into});
  }
  void release(std::uint64_t /*token*/) override {}
  [[nodiscard]] std::span<const transport::Event> poll(base::Time /*until*/,
                                                       transport::Patience /*patience*/) override {
    return {};
  }
  void wake() noexcept override {}
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override { return {0, 0}; }

 private:
  Links& links_;
  std::uint32_t rank_;
};

struct EngineAtEnd {
  EngineAtEnd(Links& links, std::uint32_t rank) : end(links, rank), engine(end, scratch) {}

  End end;
  collective::engine::Scratch scratch;
  collective::engine::Execution engine;
};

}  // namespace

std::vector<double> run_segments(const Network& network, const collective::replay::Ensemble& ensemble,
                                 std::uint64_t bytes, const std::vector<double>& called_s) {
  Links links(network, ensemble);
  const std::size_t count = (bytes + sizeof(float) - 1) / sizeof(float);
  const auto addresses = std::make_unique_for_overwrite<float[]>(count);  // addresses only; never read or written
  std::vector<std::unique_ptr<EngineAtEnd>> ranks;
  for (std::uint32_t rank = 0; rank < ensemble.ranks; ++rank) {
    ranks.push_back(std::make_unique<EngineAtEnd>(links, rank));
    ranks[rank]->engine.begin(ensemble.programs[rank],
                              {.data = Buffer(addresses.get(), count, DType::f32), .has_payload = false});
    links.expect(called_s[rank], {.rank = rank});
  }
  std::vector<double> left_s = called_s;
  const auto post = [&](std::uint32_t rank, const transport::Event& event) {
    left_s[rank] = links.now_s();
    ranks[rank]->engine.take({&event, 1});
  };
  while (!links.are_idle()) {
    const Event event = links.next();
    if (event.kind == Event::Kind::call) ranks[event.rank]->engine.advance();
    if (event.kind == Event::Kind::received) post(event.rank, {event.token, true, event.bytes});
    if (event.kind != Event::Kind::frame) continue;
    post(event.from, {event.token, false, {}});
    links.arrive(event);
  }
  for (const auto& rank : ranks) base::require(rank->engine.done(), "a plan of {} ranks does not end", ensemble.ranks);
  return left_s;
}

}  // namespace syncopate::simulate
