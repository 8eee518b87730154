// Cluster: servers that are killed at any moment, and the replicas from which others replace them.
#include <gtest/gtest.h>

#include <algorithm>

#include "server/cluster.hpp"

namespace syncopate::server {

namespace {

/// Copies a record, as on the wire: nothing is shared with the sender.
Record copied(const Record& record) {
  Record copy = record;
  auto bytes = std::make_shared<std::vector<std::byte>>(record.message.body.bytes.begin(),  //
                                                        record.message.body.bytes.end());
  const base::ConstBytes all(*bytes);
  copy.message.body = {std::move(bytes), all};
  return copy;
}

}  // namespace

std::unique_ptr<ServerTables> Cluster::made(std::size_t server) {
  ServerTables::Forward to_replica;
  if (options_.kill_every_s > 0) to_replica = [this, server](const Record& record) { forward(server, record); };
  return std::make_unique<ServerTables>(
      server, kMemory, [this, server](Outgoing outgoing) { to_worker(server, std::move(outgoing)); }, to_replica);
}

void Cluster::forward(std::size_t server, const Record& record) {
  travel(replicas_[server].link, 0, [this, server, record = copied(record)] {
    Replica& replica = replicas_[server];
    replica.has = replica.tables->apply(record);
    if (replica.has == 0) return;
    travel(replica.link, 1, [this, server, has = replica.has] { servers_[server]->acknowledge(has); });
  });
}

void Cluster::follow(std::size_t server) {
  replicas_[server].link.is_up = true;
  servers_[server]->follow(replicas_[server].has);
}

void Cluster::break_replication() {
  if (!goes_on()) return;
  const std::size_t server = random_() % servers_.size();
  Link& link = replicas_[server].link;
  if (link.is_up) {
    link.is_up = false;
    after(random(0.05), [this, server, life = ++link.life] {
      if (servers_[server] && replicas_[server].link.life == life) follow(server);
    });
  }
  after(random(2 * options_.break_every_s), [this] { break_replication(); });
}

void Cluster::kill_server() {
  if (!goes_on()) return;
  after(random(2 * options_.kill_every_s), [this] { kill_server(); });
  const bool are_there = std::ranges::none_of(servers_, [](const auto& server) { return server == nullptr; });
  const bool are_whole = std::ranges::all_of(replicas_, [](const Replica& replica) { return replica.has > 0; });
  if (!are_there || !are_whole || !has_begun()) return;
  ++kills_;
  const std::size_t server = random_() % servers_.size();
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    Link& link = links_[{worker, server}];
    ++link.life;
    link.is_up = link.is_welcome = false;
  }
  servers_[server].reset();
  for (const std::size_t of : {server, before(server)}) {
    ++replicas_[of].link.life;
    replicas_[of].link.is_up = false;
  }
  replicas_[before(server)].tables = std::make_unique<ServerTables>(before(server), kMemory, [](auto&&...) {});
  replicas_[before(server)].has = 0;
  after(random(0.05), [this, server] { replace(server); });
}

void Cluster::replace(std::size_t server) {
  servers_[server] = made(server);
  EXPECT_TRUE(replicas_[server].tables->hand_over(
      [&](const Record& record) { static_cast<void>(servers_[server]->apply(copied(record))); }));
  follow(server);
  follow(before(server));
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker]->is_gone) servers_[server]->leave(worker);
    after(random(0.05), [this, worker, server] { reconnect(worker, server); });
  }
}

}  // namespace syncopate::server
