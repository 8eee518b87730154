// A job whose messages are delivered one after another, by the thread that sends them.
#include "laws/immediate_job.hpp"

#include <algorithm>
#include <utility>

namespace syncopate::laws {

namespace {

constexpr std::size_t kMemory = std::size_t{1} << 28;

}  // namespace

ImmediateJob::ImmediateJob(server::Setup setup, const Memory& memory)
    : setup_(std::move(setup)), replicas_(setup_.servers) {
  for (std::size_t index = 0; index < setup_.servers; ++index) {
    servers_.push_back(made(index, [this, index](const server::Record& record) {
      travelling_.emplace_back([this, index, record] {
        if (replicas_[index]) replicas_[index]->apply(record);
        servers_[index]->acknowledge(record.sequence);
      });
    }));
    servers_.back()->follow(0);
  }
  for (std::size_t worker = 0; worker < setup_.workers; ++worker) {
    std::vector<Buffer> buffers;
    for (std::size_t table = 0; table < setup_.tables.size(); ++table) buffers.push_back(memory(worker, table));
    workers_.push_back(std::make_unique<server::WorkerTables>(
        setup_, worker, std::move(buffers), [this, worker](server::Request request) {
          travelling_.emplace_back([this, worker, request = std::move(request)] {
            servers_[request.server]->receive(worker, request.message);
          });
        }));
    for (const auto& server : servers_)
      server->receive(worker, server::Hello{.is_new = true, .setup = server::payload_of(setup_.bytes())});
  }
  deliver();
  workers_.front()->offer();
  for (const auto& worker : workers_) worker->begin({});
  deliver();
}

std::unique_ptr<server::ServerTables> ImmediateJob::made(std::size_t index, server::ServerTables::Forward forward) {
  const auto send = [this, index](server::Outgoing outgoing) {
    if (std::holds_alternative<server::Welcome>(outgoing.message)) return;
    travelling_.emplace_back(
        [this, index, outgoing = std::move(outgoing)] { workers_[outgoing.worker]->receive(index, outgoing.message); });
  };
  return std::make_unique<server::ServerTables>(index, kMemory, send, std::move(forward), setup_.catalogue);
}

void ImmediateJob::deliver() {
  while (!travelling_.empty()) {
    const auto arrives = std::move(travelling_.front());
    travelling_.pop_front();
    arrives();
  }
}

bool ImmediateJob::step(double rate, const Gradient& gradient) {
  std::vector<float> values;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    server::WorkerTables& tables = *workers_[worker];
    const UpdateStep at{rate, static_cast<std::uint64_t>(tables.clock()) + 1};
    tables.demand();
    deliver();
    for (std::size_t table = 0; table < setup_.tables.size(); ++table) {
      if (!tables.may_read(table)) return false;
      tables.read(table);
    }
    for (std::size_t table = setup_.tables.size(); table-- > 0;) {
      values.assign(setup_.tables[table].elements, 0.0F);
      gradient(worker, tables.clock(), table, values);
      tables.update(table, std::span(values), at);
    }
    tables.end_step(at);
    if (!tables.in_lockstep() || worker + 1 == workers_.size()) deliver();
  }
  return true;
}

/// A worker's last request may wait for those of the others.
bool ImmediateJob::finish() {
  for (int turn = 0; turn < 2; ++turn)
    for (const auto& worker : workers_) {
      static_cast<void>(worker->finish());
      deliver();
    }
  for (const auto& worker : workers_) {
    if (!worker->finish()) return false;
    for (std::size_t table = 0; table < setup_.tables.size(); ++table) worker->read(table);
  }
  return true;
}

server::ServerTables& ImmediateJob::replica(std::size_t index) {
  replicas_[index] = made(index, nullptr);
  static_cast<void>(servers_[index]->hand_over([&](const server::Record& record) { replicas_[index]->apply(record); }));
  return *replicas_[index];
}

}  // namespace syncopate::laws
