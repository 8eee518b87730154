// A worker's rows: sums gradients of equal ids, packs messages, and places answers.
#include "server/rows/worker_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/require.hpp"
#include "server/message_bytes.hpp"

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
std::size_t travelling_bytes(const RowPush& push) {
  return std::holds_alternative<MarkRows>(push) ? 0 : body_bytes(push) + kPushBytes;
}

bool meets(const RowPush& push) {
  const auto* const mark = std::get_if<MarkRows>(&push);
  return mark != nullptr && mark->meets;
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
    send_push(server, PushRows{.table = static_cast<std::uint32_t>(table),
                               .rate = rate,
                               .rows = packed(own, pushed_split_, places, gradients.data())});
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
    send_push(server, RestoreRows{.table = static_cast<std::uint32_t>(table), .rows = packed_rows(own, rows, places)});
}

void WorkerRows::send_push(std::size_t server, RowPush push) {
  const base::Lock lock(mutex_);
  number_and_send(server, std::move(push));
}

void WorkerRows::number_and_send(std::size_t server, RowPush push) {
  Peer& peer = peers_[server];
  const auto key = std::visit(
      [&](auto& sent) {
        sent.number = ++peer.pushes[sent.table];
        return std::pair(sent.table, sent.number);
      },
      push);
  travelling_bytes_ += travelling_bytes(push);
  peer.unacknowledged[key] = {++peer.turns, push};
  send_({server, kRowPriority, widened<WorkerMessage>(std::move(push))});
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
      mark(server, {.table = static_cast<std::uint32_t>(table), .steps = last, .meets = waits_});
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
  for (std::size_t server = 0; server < servers_; ++server)
    mark(server, {.table = static_cast<std::uint32_t>(table), .meets = true, .meeting = meeting_});
}

void WorkerRows::mark(std::size_t server, MarkRows mark) {
  meetings_ += mark.meets ? 1 : 0;
  number_and_send(server, mark);
}

bool WorkerRows::has_met() const {
  const base::Lock lock(mutex_);
  return meetings_ == 0;
}

void WorkerRows::visit(std::size_t server, std::size_t table, std::size_t slab) {
  const base::Lock lock(mutex_);
  Peer& peer = peers_[server];
  visited_.reset();
  peer.visit = {
      .table = static_cast<std::uint32_t>(table), .request = ++pulls_, .pushes = peer.pushes[table], .slab = slab};
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
    peer.next_pull = {.table = static_cast<std::uint32_t>(table), .pushes = peer.pushes[table]};
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
  PullRows message = peer.next_pull;
  const std::size_t most = RowRules::rows_per_message(rules_[message.table].pushed_bytes());
  const auto places = peer.unrequested.first(std::min(most, peer.unrequested.size()));
  peer.unrequested = peer.unrequested.subspan(places.size());
  message.request = ++pulls_;
  message.ids = packed_ids(split_, places);
  peer.pulled[message.request] = {message, places};
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

void WorkerRows::require_table(std::size_t server, std::uint32_t table) const {
  if (table >= rules_.size())
    throw Corrupt(fmt::format("server {} sent rows of table {}, of {}", server, table, rules_.size()));
}

void WorkerRows::receive(std::size_t server, const Welcome& welcome) {
  const base::Lock lock(mutex_);
  peers_[server].snapshot_every = welcome.snapshot_every;
}

/// Acknowledges all pushes to the table up to this one: they are answered in the order in which they were sent.
void WorkerRows::receive(std::size_t server, const PushedRows& pushed) {
  require_table(server, pushed.table);
  const base::Lock lock(mutex_);
  Peer& peer = peers_[server];
  if (pushed.number > peer.pushes[pushed.table])
    throw Corrupt(
        fmt::format("server {} acknowledges push {} of {}", server, pushed.number, peer.pushes[pushed.table]));
  auto& sent = peer.unacknowledged;
  auto push = sent.lower_bound({pushed.table, 0});
  while (push != sent.end() && push->first <= std::pair(pushed.table, pushed.number)) {
    const RowPush& applied = push->second.message;
    travelling_bytes_ -= travelling_bytes(applied);
    if (meets(applied)) --meetings_;
    push = sent.erase(push);
  }
}

/// Ignores the second answer to a request that was sent twice, and the answer to an abandoned one.
void WorkerRows::receive(std::size_t server, const PulledRows& pulled) {
  require_table(server, pulled.table);
  const base::Lock lock(mutex_);
  auto& requests = peers_[server].pulled;
  const auto found = requests.find(pulled.request);
  if (found == requests.end() || found->second.message.table != pulled.table) return;
  const auto places = found->second.places;
  const std::size_t width = rules_[pulled.table].width, row_bytes = rules_[pulled.table].row_bytes();
  if (pulled.rows.bytes.size() != places.size() * row_bytes)
    throw Corrupt(fmt::format("server {} sent {} bytes for {} rows of {} bytes", server, pulled.rows.bytes.size(),
                              places.size(), row_bytes));
  const std::byte* row = pulled.rows.bytes.data();
  for (const std::uint32_t first : places) {
    for (std::uint32_t place = first; place != RowSplit::kNone; place = split_.next(place))
      std::memcpy(out_.data() + place * width, row, row_bytes);
    row += row_bytes;
  }
  unanswered_ -= places.size();
  requests.erase(found);
  request_rows(server);
}

void WorkerRows::receive(std::size_t server, const VisitedRows& message) {
  require_table(server, message.table);
  const base::Lock lock(mutex_);
  std::optional<VisitRows>& visit = peers_[server].visit;
  if (!visit || visit->request != message.request || visit->table != message.table) return;
  const RowRules& own = rules_[message.table];
  const RowLayout from = own.layout_of(own.rows_per_slab());
  const std::size_t count = message.rows;
  const base::ConstBytes bytes = message.slab.bytes;
  if (count > from.rows || bytes.size() != (count == 0 ? 0 : from.bytes()) || (count == 0) != (message.slabs == 0))
    throw Corrupt(fmt::format("server {} sent a slab of {} rows in {} bytes; allowed: {} rows in {}", server, count,
                              bytes.size(), from.rows, from.bytes()));
  Visited visited{message.slabs, {.rule = std::string(own.rule.name)}};
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
  for (const Pushed* push : pushes) send_({server, kRowPriority, widened<WorkerMessage>(push->message)});
  for (const auto& [number, pulled] : peer.pulled) send_({server, kRowPriority, pulled.message});
  if (peer.visit) send_({server, kRowPriority, *peer.visit});
}

}  // namespace syncopate::server
