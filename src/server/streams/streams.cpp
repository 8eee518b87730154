// Streams: the thread of the loop, and calls that wait for it.
#include "server/streams/streams.hpp"

#include <fmt/format.h>

#include <optional>
#include <system_error>

#include "base/clock.hpp"

namespace syncopate::server::streams {

namespace {

constexpr std::chrono::milliseconds kBetweenLookups{100};

/// The address of a host whose name may become known later: a container's, for instance.
transport::socket::Address resolved(const Streams::Target& target, base::Time deadline) {
  const base::SteadyClock clock;
  for (;;) {
    try {
      return address_in(target.address, transport::socket::Address::resolve);
    } catch (const SystemFailure& failure) {
      if (clock.now() + kBetweenLookups >= deadline)
        throw PeerLost(fmt::format("no parameter server answers at {}: {}", target.address, failure.what()));
    }
    std::this_thread::sleep_for(kBetweenLookups);
  }
}

/// The result of a dial.
struct Result {
  std::unique_ptr<Stream> stream;
  std::exception_ptr failure;
  [[nodiscard]] bool is_here() const noexcept { return stream || failure; }
};

}  // namespace

Streams::Streams(const EndOptions& options, const std::vector<std::string>& addresses, Accepted accepted)
    : leader_(std::make_unique<LoopLeader>(options, std::move(accepted))), silence_(options.silence) {
  if (!addresses.empty()) addresses_ = leader_->loop().listen(addresses);
  try {
    thread_ = std::make_unique<std::jthread>([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error& error) {
    throw SystemFailure(fmt::format("no thread for the streams of {}: {}; raise the limit of threads",
                                    text_of(options.self), error.what()));
  }
}

Streams::~Streams() {
  if (process_.is_inherited()) {  // the thread is the parent's
    static_cast<void>(thread_.release());
    static_cast<void>(leader_.release());
    return;
  }
  thread_->request_stop();
  leader_->wake();
  thread_->join();
}

/// Runs on: `thread_`.
void Streams::run(const std::stop_token& stop) {
  leader_->serve(stop);
  Loop& loop = leader_->loop();
  loop.adopt();
  loop.abandon();
  const base::Time bound = base::SteadyClock().now() + silence_;
  while (!loop.is_empty() && base::SteadyClock().now() < bound) loop.turn(bound);
}

void Streams::dial(const Target& target, DialEvents events) {
  const auto failed = events.failed;
  try {
    begin(target, std::move(events));
  } catch (...) {
    failed(std::current_exception());
  }
}

void Streams::begin(const Target& target, DialEvents events) {
  const base::Time deadline = base::SteadyClock().now() + target.patience;
  const auto to = resolved(target, deadline);
  leader_->loop().dial({.to = to,
                        .address = target.address,
                        .server = target.server,
                        .patience = deadline - base::SteadyClock().now(),
                        .events = std::move(events)});
}

std::unique_ptr<Stream> Streams::dial(const Target& target, StreamEvents events) {
  const auto result = std::make_shared<base::Guarded<Result>>();
  begin(target, {.reached =
                     [result, events = std::move(events)](std::unique_ptr<Stream> stream) {
                       result->change([&](Result& come) { come.stream = std::move(stream); });
                       return events;
                     },
                 .failed =
                     [result](std::exception_ptr why) {
                       result->change([&](Result& come) { come.failure = std::move(why); });
                     }});
  Result come;
  result->wait_until(
      base::kNever, [](const Result& here) { return here.is_here(); }, [&](Result& here) { come = std::move(here); });
  if (come.failure) std::rethrow_exception(come.failure);
  return std::move(come.stream);
}

}  // namespace syncopate::server::streams
