// A virtual server: the production tables, slots and keeper of a replica, driven by events.
#include "virtual/server/job.hpp"

namespace syncopate::virtual_server {

using namespace server;

namespace {
constexpr Duration kTurn = 50ms, kBound = 3 * kSilence;
const syncopate::Log kQuiet{.level = LogLevel::off, .sink = {}};

class WorldClock final : public base::Clock {
 public:
  explicit WorldClock(const World& world) : world_(world) {}
  [[nodiscard]] Time now() const override { return world_.now(); }

 private:
  const World& world_;
};
}  // namespace

ServerProcess::ServerProcess(Job& job, std::size_t index)
    : machine(job.network, index, {.role = streams::Identity::Role::server, .index = index},
              [this](std::unique_ptr<streams::Stream> stream) { return accept(std::move(stream)); }),
      tables(
          index, kMemory, [this](Outgoing outgoing) { slots_.send(std::move(outgoing)); },
          job.replicas == 0 ? ServerTables::Forward() : [this](const Record& record) {
            if (!holds_ || !link_) return;
            each_part(record, [&](Relayed part) { link_->send(0, head_of(part), std::move(part.message.body)); });
          },
          job.setup.catalogue, std::make_unique<WorldClock>(job.world)),
      process(job.world.draw(1, ~std::uint64_t{0} - 1)),
      job_(job),
      index_(index),
      slots_(kPatience, std::make_unique<WorldClock>(job.world)) {
  const std::size_t servers = job.setup.servers;
  if (job.options.image_every > 0)
    tables.take_images(job.options.image_every,
                       [this](const ServerTables::Image& image) { job_.check_image(index_, image); });
  if (job.replicas > 0)
    keeper.emplace((index + servers - 1) % servers, kMemory, kBound, kQuiet, job.setup.catalogue,
                   std::make_unique<WorldClock>(job.world));
  else
    open();
  job_.world.in(kTurn, [this, alive = alive_] {
    if (*alive) turn();
  });
  if (job.replicas > 0) dial();
  machine.listen();
}

ServerProcess::~ServerProcess() {
  *alive_ = false;
  if (link_) link_->end();
  if (keeper) keeper->end();
}

bool ServerProcess::keeps_replica() const {
  ServerStatus status;
  keeper->count(status);
  return status.keeps_replica;
}

void ServerProcess::turn() {
  if (!machine.is_stopped()) {
    const auto setup = tables.setup();
    for (const std::size_t worker : slots_.due(setup ? setup->workers : 0)) {
      job_.world.note("given up", worker, index_);
      tables.leave(worker);
    }
    if (keeper) keeper->turn();
  }
  job_.world.in(kTurn, [this, alive = alive_] {
    if (*alive) turn();
  });
}

streams::StreamEvents ServerProcess::accept(std::unique_ptr<streams::Stream> stream) {
  if (stream->peer().role == streams::Identity::Role::server) return keeper->accept(std::move(stream));
  const std::size_t worker = stream->peer().index;
  const std::uint64_t life = slots_.take(worker, std::move(stream));
  tables.renew(worker);
  return {.received =
              [this, worker, life](Payload bytes) {
                const std::size_t length = bytes.bytes.size();
                Message message = message_of(std::move(bytes), true);
                job_.world.note("server takes", worker, static_cast<std::uint64_t>(message.kind) << 32 | message.block);
                if (slots_.admit(worker, life, length, message)) take(worker, message);
              },
          .ended = [this, worker, life](const streams::Ending&) { static_cast<void>(slots_.lose(worker, life)); }};
}

void ServerProcess::take(std::size_t worker, const Message& message) {
  try {
    tables.receive(worker, message);
    if (message.kind == MessageKind::finish) slots_.mark_finished(worker);
  } catch (const Error& error) {
    slots_.send({worker, 0, {.kind = MessageKind::refuse, .block = 0, .body = payload_of(error.what())}});
    throw;
  }
}

void ServerProcess::open() {
  for (const std::size_t worker : tables.departed()) slots_.give_up(worker);
  for (const auto& [worker, message] : slots_.open()) {
    try {
      take(worker, message);
    } catch (const Error& error) {
      slots_.cut_off(worker, error.what());
    }
  }
}

void ServerProcess::cut_replication() {
  if (machine.cut((index_ + 1) % job_.setup.servers)) job_.world.note("replication breaks", index_);
}

/// ReplicaLink::serve_once, as events.
void ServerProcess::dial() {
  tables.pause();
  holds_ = false;
  const auto again = [this, alive = alive_] {
    if (*alive) dial();
  };
  const auto reader = std::make_shared<RecordReader>(kMemory);
  const auto reached = [this, again, reader](std::unique_ptr<streams::Stream> stream) -> streams::StreamEvents {
    link_ = std::move(stream);
    const RelayKind claim = tables.is_empty() ? RelayKind::claim_empty : RelayKind::claim;
    link_->send(0, head_of(Relayed{.kind = claim, .number = process}), {});
    return {.received = [this, reader](Payload bytes) { tell(*reader, std::move(bytes)); },
            .ended =
                [this, again](const streams::Ending&) {
                  holds_ = false;
                  tables.pause();
                  job_.world.in(kTurn, again);
                }};
  };
  machine.dial((index_ + 1) % job_.setup.servers,
               {.reached = reached, .failed = [this, again] { job_.world.in(kTurn, again); }});
}

/// ReplicaLink::receive.
void ServerProcess::tell(RecordReader& reader, Payload bytes) {
  Relayed relayed = relayed_of(std::move(bytes));
  if (relayed.kind == RelayKind::replaced) return job_.law("a live server was refused as replaced");
  if (relayed.kind == RelayKind::occupied) return job_.law("a server was refused though the previous one is dead");
  if (relayed.kind == RelayKind::holds && holds_) return tables.acknowledge(relayed.number);
  if (relayed.kind == RelayKind::holds) {
    holds_ = true;
    tables.follow(relayed.number);
    if (!std::exchange(has_joined_, true)) open();
    return;
  }
  if (relayed.kind != RelayKind::record || holds_) throw Corrupt("unexpected message from a replica's keeper");
  Record record;
  if (reader.take(std::move(relayed), record)) static_cast<void>(tables.apply(record));
}

}  // namespace syncopate::virtual_server
