// A worker's rows: sums gradients of equal ids, packs messages, and places answers.
#include "server/table/worker_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/require.hpp"

namespace syncopate::server {

namespace {

/// Limit of unacknowledged pushes: memory, and how far a worker runs ahead of its servers.
constexpr std::size_t kMostTravelling = std::size_t{32} << 20;
/// Memory of an unacknowledged push next to its body: here and in the queue of its stream.
constexpr std::size_t kPushBytes = 512;
/// Limit of a worker's unanswered pulls on a server, each of kRowMessageBytes or one row: the answers that wait there.
constexpr std::size_t kMostPulls = 32;
/// The begins and ends of a step's visits have 2^20 numbers.
constexpr int kVisitBits = 20;

/// A mark takes none: has_met waits for it, is_acknowledged does not.
std::size_t travelling_bytes(const Message& push) {
  return push.kind == MessageKind::mark_rows ? 0 : push.body.bytes.size() + kPushBytes;
}

/// The ids of these places, then the sum of the gradients of each.
Payload packed(const RowRules& rules, const RowSplit& split, std::span<const std::uint32_t> places,
               const float* gradients) {
  const std::size_t bytes = places.size() * rules.pushed_bytes(), width = rules.width;
  const auto body = std::make_shared_for_overwrite<std::byte[]>(bytes);
  std::byte* id_into = body.get();
  auto* sum = reinterpret_cast<float*>(body.get() + places.size() * sizeof(std::uint64_t));
  for (const std::uint32_t first : places) {
    const std::uint64_t id = split.id(first);
    std::memcpy(id_into, &id, sizeof id);
    id_into += sizeof id;
    std::memcpy(sum, gradients + first * width, rules.row_bytes());
    for (std::uint32_t place = split.next(first); place != RowSplit::kNone; place = split.next(place))
      for (std::size_t i = 0; i < width; ++i) sum[i] += gradients[place * width + i];
    sum += width;
  }
  return {body, {body.get(), bytes}};
}

Payload packed_ids(const RowSplit& split, std::span<const std::uint32_t> places) {
  const auto ids = std::make_shared_for_overwrite<std::uint64_t[]>(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) ids[i] = split.id(places[i]);
  return {ids, std::as_bytes(std::span(ids.get(), places.size()))};
}

Payload packed_rows(const RowRules& rules, const KeptRows& rows, std::span<const std::uint32_t> places) {
  const RowLayout to = rules.layout_of(places.size());
  const auto body = std::make_shared_for_overwrite<std::byte[]>(to.bytes());
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::memcpy(body.get() + to.id(i), &rows.ids[places[i]], RowLayout::kNumber);
    std::memcpy(body.get() + to.steps(i), &rows.steps[places[i]], RowLayout::kNumber);
    std::memcpy(body.get() + to.values(i), rows.values.data() + places[i] * rules.kept_floats(), to.row_bytes);
  }
  return {body, {body.get(), to.bytes()}};
}

/// The first places of the ids of one message.
struct Part {
  std::size_t server = 0;
  std::span<const std::uint32_t> places{};
};

/// The messages of a call: one to every server in turn, so that all are busy.
std::vector<Part> parts_of(std::size_t most, const RowSplit& split) {
  std::vector<Part> parts;
  bool is_left = true;
  for (std::size_t begin = 0; is_left; begin += most) {
    is_left = false;
    for (std::size_t server = 0; server < split.servers(); ++server) {
      const auto places = split.of(server);
      if (begin >= places.size()) continue;
      parts.push_back({server, places.subspan(begin, std::min(most, places.size() - begin))});
      is_left = true;
    }
  }
  return parts;
}

}  // namespace

WorkerRows::WorkerRows(const Setup& setup, Send send, bool waits)
    : rules_(row_rules_of(setup.rows, setup.catalogue)),
      send_(std::move(send)),
      servers_(setup.servers),
      waits_(waits),
      lockstep_(waits && !setup.tables.empty()),
      peers_(setup.servers) {
  for (Peer& peer : peers_) peer.pushes.resize(rules_.size());
}

const RowRules& WorkerRows::rules(std::size_t table) const {
  base::require(table < rules_.size(), "table {} of rows; this job has {}, which create_rows made", table,
                rules_.size());
  return rules_[table];
}

const RowRules& WorkerRows::require_fit(std::size_t table, std::size_t ids, std::size_t floats) const {
  const RowRules& own = rules(table);
  base::require(ids <= floats / own.width && floats == ids * own.width,
                "{} ids and {} floats for rows of table '{}'; allowed: {} floats for each id", ids, floats, own.name,
                own.width);
  return own;
}

void WorkerRows::push(std::size_t table, std::span<const std::uint64_t> ids, std::span<const float> gradients,
                      double rate) {
  const RowRules& own = require_fit(table, ids.size(), gradients.size());
  base::require(std::isfinite(rate) && rate >= 0, "a learning rate of {}; allowed: 0 or more", rate);
  pushed_split_.split(ids, servers_);
  for (const auto& [server, places] : parts_of(RowRules::rows_per_message(own.pushed_bytes()), pushed_split_))
    send_push(server, {.kind = MessageKind::push_rows,
                       .block = static_cast<std::uint32_t>(table),
                       .rate = rate,
                       .body = packed(own, pushed_split_, places, gradients.data())});
}

void WorkerRows::restore(std::size_t table, const KeptRows& rows) {
  const RowRules& own = rules(table);
  const std::size_t count = rows.ids.size();
  base::require(rows.rule == own.rule.name, "rows of rule '{}' for table '{}'; allowed: '{}'", rows.rule, own.name,
                own.rule.name);
  base::require(rows.steps.size() == count && rows.values.size() == count * own.kept_floats(),
                "{} ids, {} steps and {} floats for rows of table '{}' with their state; allowed: 1 and {} for each id",
                count, rows.steps.size(), rows.values.size(), own.name, own.kept_floats());
  pushed_split_.split(rows.ids, servers_);
  for (const auto& [server, places] : parts_of(RowRules::rows_per_message(own.layout_of(1).bytes()), pushed_split_))
    send_push(server, {.kind = MessageKind::restore_rows,
                       .block = static_cast<std::uint32_t>(table),
                       .body = packed_rows(own, rows, places)});
}

void WorkerRows::send_push(std::size_t server, Message message) {
  const base::Lock lock(mutex_);
  number_and_send(server, std::move(message));
}

void WorkerRows::number_and_send(std::size_t server, Message message) {
  Peer& peer = peers_[server];
  message.version = ++peer.pushes[message.block];
  travelling_bytes_ += travelling_bytes(message);
  peer.unacknowledged[{message.block, message.version}] = {++peer.turns, message};
  send_({server, kRowPriority, std::move(message)});
}

bool WorkerRows::has_room() const {
  const base::Lock lock(mutex_);
  return travelling_bytes_ < kMostTravelling && meetings_ == 0;
}

void WorkerRows::end_steps(Clock steps) {
  const base::Lock lock(mutex_);
  for (std::size_t server = 0; server < servers_; ++server) {
    Peer& peer = peers_[server];
    if (peer.snapshot_every == 0) continue;
    const Clock last = steps / peer.snapshot_every * peer.snapshot_every;
    if (last <= peer.marked) continue;
    peer.marked = last;
    for (std::size_t table = 0; table < rules_.size(); ++table)
      mark(server, table, {.first = waits_ ? 1 : 0, .last = last});
  }
}

void WorkerRows::begin(Clock steps, Clock meeting) {
  {
    const base::Lock lock(mutex_);
    if (!lockstep_) meeting_ = meeting;
  }
  end_steps(steps);
}

/// All workers number it alike, by their steps where these agree: one that was away meanwhile counts no visit as
/// another one.
void WorkerRows::begin_visit(std::size_t table, Clock steps) {
  static_cast<void>(rules(table));  // throws where there is no such table
  const base::Lock lock(mutex_);
  meeting_ = std::max(meeting_ + 1, lockstep_ ? steps << kVisitBits | 1 : 0);
  mark_visit(table);
}

void WorkerRows::end_visit(std::size_t table) {
  static_cast<void>(rules(table));
  const base::Lock lock(mutex_);
  ++meeting_;
  mark_visit(table);
}

void WorkerRows::mark_visit(std::size_t table) {
  for (std::size_t server = 0; server < servers_; ++server) mark(server, table, {.first = 1, .step = meeting_});
}

void WorkerRows::mark(std::size_t server, std::size_t table, Message mark) {
  meetings_ += mark.first != 0 ? 1 : 0;
  mark.kind = MessageKind::mark_rows;
  mark.block = static_cast<std::uint32_t>(table);
  number_and_send(server, std::move(mark));
}

bool WorkerRows::has_met() const {
  const base::Lock lock(mutex_);
  return meetings_ == 0;
}

void WorkerRows::visit(std::size_t server, std::size_t table, std::size_t slab) {
  const base::Lock lock(mutex_);
  Peer& peer = peers_[server];
  visited_.reset();
  peer.visit = {.kind = MessageKind::visit_rows,
                .block = static_cast<std::uint32_t>(table),
                .first = static_cast<Clock>(slab),
                .least = static_cast<Clock>(peer.pushes[table]),
                .version = ++pulls_};
  send_({server, kRowPriority, *peer.visit});
}

bool WorkerRows::has_visited() const {
  const base::Lock lock(mutex_);
  return visited_.has_value();
}

WorkerRows::Visited WorkerRows::take_visited() {
  const base::Lock lock(mutex_);
  return std::exchange(visited_, std::nullopt).value();
}

bool WorkerRows::is_acknowledged() const {
  const base::Lock lock(mutex_);
  return travelling_bytes_ == 0;
}

void WorkerRows::pull(std::size_t table, std::span<const std::uint64_t> ids, std::span<float> rows) {
  static_cast<void>(require_fit(table, ids.size(), rows.size()));
  const base::Lock lock(mutex_);
  split_.split(ids, servers_);
  out_ = rows;
  for (std::size_t server = 0; server < servers_; ++server) {
    Peer& peer = peers_[server];
    peer.next_pull = {.kind = MessageKind::pull_rows,
                      .block = static_cast<std::uint32_t>(table),
                      .least = static_cast<Clock>(peer.pushes[table])};
    peer.unrequested = split_.of(server);
    unanswered_ += peer.unrequested.size();
  }
  for (bool is_left = true; is_left;) {  // one to every server in turn, so that all are busy
    is_left = false;
    for (std::size_t server = 0; server < servers_; ++server) is_left = request_rows(server) || is_left;
  }
}

/// Requests the next rows of the current pull. Returns false if none are left, or the server has enough to answer.
bool WorkerRows::request_rows(std::size_t server) {
  Peer& peer = peers_[server];
  if (peer.unrequested.empty() || peer.pulled.size() >= kMostPulls) return false;
  Message message = peer.next_pull;
  const std::size_t most = RowRules::rows_per_message(rules_[message.block].pushed_bytes());
  const auto places = peer.unrequested.first(std::min(most, peer.unrequested.size()));
  peer.unrequested = peer.unrequested.subspan(places.size());
  message.version = ++pulls_;
  message.body = packed_ids(split_, places);
  peer.pulled[message.version] = {message, places};
  send_({server, kRowPriority, std::move(message)});
  return true;
}

bool WorkerRows::has_pulled() const {
  const base::Lock lock(mutex_);
  return unanswered_ == 0;
}

void WorkerRows::abandon() {
  const base::Lock lock(mutex_);
  for (Peer& peer : peers_) {
    peer.pulled.clear();
    peer.unrequested = {};
    peer.visit.reset();
  }
  unanswered_ = 0;
}

void WorkerRows::receive(std::size_t server, const Message& message) {
  const base::Lock lock(mutex_);
  if (message.kind == MessageKind::welcome) {
    peers_[server].snapshot_every = message.first;
    return;
  }
  if (message.block >= rules_.size())
    throw Corrupt(fmt::format("server {} sent rows of table {}, of {}", server, message.block, rules_.size()));
  if (message.kind == MessageKind::pushed) return acknowledge(server, message);
  if (message.kind == MessageKind::visited) return take_slab(server, message);
  take_rows(server, message);
}

/// Acknowledges all pushes to the table up to this one: they are answered in the order in which they were sent.
void WorkerRows::acknowledge(std::size_t server, const Message& message) {
  Peer& peer = peers_[server];
  if (message.version > peer.pushes[message.block])
    throw Corrupt(
        fmt::format("server {} acknowledges push {} of {}", server, message.version, peer.pushes[message.block]));
  auto& sent = peer.unacknowledged;
  auto push = sent.lower_bound({message.block, 0});
  while (push != sent.end() && push->first <= std::pair(message.block, message.version)) {
    const Message& applied = push->second.message;
    travelling_bytes_ -= travelling_bytes(applied);
    if (applied.kind == MessageKind::mark_rows && applied.first != 0) --meetings_;
    push = sent.erase(push);
  }
}

/// Ignores the second answer to a request that was sent twice, and the answer to an abandoned one.
void WorkerRows::take_rows(std::size_t server, const Message& message) {
  auto& pulled = peers_[server].pulled;
  const auto found = pulled.find(message.version);
  if (found == pulled.end() || found->second.message.block != message.block) return;
  const auto places = found->second.places;
  const std::size_t width = rules_[message.block].width, row_bytes = rules_[message.block].row_bytes();
  if (message.body.bytes.size() != places.size() * row_bytes)
    throw Corrupt(fmt::format("server {} sent {} bytes for {} rows of {} bytes", server, message.body.bytes.size(),
                              places.size(), row_bytes));
  const std::byte* row = message.body.bytes.data();
  for (const std::uint32_t first : places) {
    for (std::uint32_t place = first; place != RowSplit::kNone; place = split_.next(place))
      std::memcpy(out_.data() + place * width, row, row_bytes);
    row += row_bytes;
  }
  unanswered_ -= places.size();
  pulled.erase(found);
  request_rows(server);
}

void WorkerRows::take_slab(std::size_t server, const Message& message) {
  std::optional<Message>& visit = peers_[server].visit;
  if (!visit || visit->version != message.version || visit->block != message.block) return;
  const RowRules& own = rules_[message.block];
  const RowLayout from = own.layout_of(own.rows_per_slab());
  const auto count = static_cast<std::size_t>(message.first);
  const base::ConstBytes bytes = message.body.bytes;
  if (count > from.rows || bytes.size() != (count == 0 ? 0 : from.bytes()) || (count == 0) != (message.last == 0))
    throw Corrupt(fmt::format("server {} sent a slab of {} rows in {} bytes; allowed: {} rows in {}", server, count,
                              bytes.size(), from.rows, from.bytes()));
  Visited visited{static_cast<std::size_t>(message.last), {.rule = std::string(own.rule.name)}};
  const auto copy = [&](auto& into, std::size_t at, std::size_t length) {
    into.resize(length);
    if (length > 0) std::memcpy(into.data(), bytes.data() + at, length * sizeof into[0]);
  };
  copy(visited.rows.ids, from.id(0), count);
  copy(visited.rows.steps, from.steps(0), count);
  copy(visited.rows.values, from.values(0), count * own.kept_floats());
  visited_ = std::move(visited);
  visit.reset();
}

void WorkerRows::repeat(std::size_t server) {
  const base::Lock lock(mutex_);
  const Peer& peer = peers_[server];
  std::vector<const Pushed*> pushes;
  for (const auto& [number, push] : peer.unacknowledged) pushes.push_back(&push);
  std::ranges::sort(pushes, {}, &Pushed::turn);
  for (const Pushed* push : pushes) send_({server, kRowPriority, push->message});
  for (const auto& [number, pulled] : peer.pulled) send_({server, kRowPriority, pulled.message});
  if (peer.visit) send_({server, kRowPriority, *peer.visit});
}

}  // namespace syncopate::server
