// The cache: forms the partition once; in each step sends the records that others use, and gathers those of this rank.
#include "syncopate/cache.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/require.hpp"
#include "cache/decoded.hpp"
#include "cache/parcels.hpp"
#include "cache/partition.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::cache {
namespace {

using Lists = std::vector<std::vector<Item>>;

std::unique_ptr<disk::Store> store_of(const Options& options, const input::Source& source, int rank) {
  if (options.folder.empty()) return nullptr;
  return std::make_unique<disk::Store>(disk::Place{fmt::format("{}/rank-{}", options.folder, rank), options.disk_bytes},
                                       source, with_environment_level(options.log));
}

/// Assigns holders to the records on disks. If several ranks have a record, the one whose disk holds the least is
/// chosen.
Partition partition_of(const std::vector<Statement>& all, const input::Source& source) {
  std::vector<Room> rooms;
  std::vector<std::vector<int>> owners(source.records());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    rooms.push_back(all[rank].room);
    for (const std::uint32_t sample : all[rank].on_disk) owners[sample].push_back(static_cast<int>(rank));
  }
  Partition partition(source.records(), rooms);
  std::vector<std::uint64_t> load(all.size());
  for (std::uint32_t sample = 0; sample < owners.size(); ++sample) {
    if (owners[sample].empty()) continue;
    const int rank =
        *std::ranges::min_element(owners[sample], {}, [&](int r) { return load[static_cast<std::size_t>(r)]; });
    if (partition.found(sample, source.bytes(sample), rank))
      load[static_cast<std::size_t>(rank)] += source.bytes(sample);
  }
  return partition;
}

base::Time now() { return base::SteadyClock().now(); }

Tally& tally_of(Counters& row, Tier tier) {
  if (tier == Tier::memory || tier == Tier::decoded) return row.memory;
  return tier == Tier::disk ? row.disk : row.origin;
}

void add(Tally& tally, const Item& item) {
  ++tally.records;
  tally.bytes += item.bytes;
}

}  // namespace

class Cache::Impl {
 public:
  Impl(std::unique_ptr<Group> group, const input::Source& source, std::uint64_t seed, const Options& options)
      : group_(std::move(group)),
        source_(source),
        order_(source.records(), seed),
        part_(options.part),
        parts_(options.parts),
        partition_(0, {}),
        decoded_(options.decoded_bytes) {
    base::require(parts_ == 1 || group_->size() == 1, "a part of every step in a group of {}; allowed: in a group of 1",
                  group_->size());
    base::require(part_ >= 0 && part_ < parts_, "part {} of {} of every step; allowed: 0 to {}", part_, parts_,
                  parts_ - 1);
    plan_.out.resize(static_cast<std::size_t>(group_->size()));
    plan_.in.resize(static_cast<std::size_t>(group_->size()));
    auto store = open_store(options, source);
    const Room room{store ? options.disk_bytes : 0, options.memory_bytes};
    const auto all = agree(*group_, {source.version(), source.records(), seed, room, options.decoded_bytes,
                                     store ? store->samples() : std::vector<std::uint32_t>{}});
    for (const Statement& one : all) most_decoded_.push_back(one.decoded);
    partition_ = partition_of(all, source);
    if (store) store->retain([&](std::uint32_t s) { return partition_.known_holder_of(s) == group_->rank(); });
    tiers_.emplace(source, options.memory_bytes, std::move(store));
  }

  std::vector<input::Record> read(const input::Step& step);
  void keep(std::uint32_t sample, std::vector<std::byte> decoded) { decoded_.keep(sample, std::move(decoded)); }
  void abort(const std::string& reason) noexcept { group_->abort(reason); }
  std::vector<Counters> counters() const {
    return rows_.with([](const auto& rows) {
      std::vector<Counters> all;
      for (const auto& [epoch, row] : rows) all.push_back(row);
      return all;
    });
  }

 private:
  /// This rank's work in one step.
  struct StepPlan {
    std::vector<std::uint32_t> mine;  ///< this rank's share
    std::vector<Item> here;           ///< records of it that this rank holds
    std::vector<Item> direct;         ///< records of it that no rank holds
    Lists out, in;                    ///< by peer
    std::size_t moves = 0;            ///< records that travel between any two ranks; equal on all ranks

    /// Keeps the memory.
    void clear() {
      mine.clear(), here.clear(), direct.clear();
      for (Lists* lists : {&out, &in})
        for (std::vector<Item>& list : *lists) list.clear();
      moves = 0;
    }
  };

  /// The other ranks read why it failed, and not only that this rank has left the group.
  std::unique_ptr<disk::Store> open_store(const Options& options, const input::Source& source) try {
    return store_of(options, source, parts_ > 1 ? part_ : group_->rank());
  } catch (const Error& error) {
    group_->abort(error.what());
    throw;
  }
  void plan(const input::Step& step);
  void exchange_lengths(const std::string& step);
  void fill(Parcels& out, Counters& row);
  void take(const Item& item, input::Record& into, Counters& row);
  void take_direct(const Item& item, input::Record& into, Counters& row);
  void unpack(Parcels& in, std::vector<input::Record>& records, Counters& row);
  void count(const Counters& step);

  std::unique_ptr<Group> group_;
  const input::Source& source_;
  input::Order order_;
  const int part_, parts_;
  Partition partition_;
  std::optional<LocalTiers> tiers_;
  Decoded decoded_;
  std::vector<std::uint64_t> most_decoded_;  ///< bytes of decoded forms that each rank may keep
  StepPlan plan_;                            ///< of the present step; its memory is kept for the next one
  Parcels out_, in_;
  base::Guarded<std::map<std::uint64_t, Counters>> rows_;
};

void Cache::Impl::plan(const input::Step& step) {
  const int ranks = group_->size(), me = group_->rank();
  plan_.clear();
  const std::vector<std::uint32_t> all = order_.share(step.at, step.batch, part_, parts_).mine;
  for (int taker = 0; taker < ranks; ++taker) {
    const Range part = even_part(all.size(), static_cast<std::size_t>(ranks), static_cast<std::size_t>(taker));
    const auto share = std::span(all).subspan(part.begin, part.size());
    for (std::size_t place = 0; place < share.size(); ++place) {
      const Item item{share[place], place, source_.bytes(share[place])};
      const int holder = partition_.holder_of(item.sample, item.bytes, taker);
      plan_.moves += holder != taker && holder != kNobody;
      if (taker != me && holder == me) plan_.out[static_cast<std::size_t>(taker)].push_back(item);
      if (taker != me) continue;
      if (holder == kNobody)
        plan_.direct.push_back(item);
      else
        (holder == me ? plan_.here : plan_.in[static_cast<std::size_t>(holder)]).push_back(item);
    }
    if (taker == me) plan_.mine.assign(share.begin(), share.end());
  }
}

/// Which forms a rank keeps depends on its decoding threads, so the others do not know the lengths that it sends.
void Cache::Impl::exchange_lengths(const std::string& step) {
  if (std::ranges::all_of(most_decoded_, [](std::uint64_t bytes) { return bytes == 0; })) return;
  std::vector<std::uint64_t> ours, theirs;
  std::vector<std::size_t> to, from;
  for (std::vector<Item>& items : plan_.out) {
    for (Item& item : items) {
      item.decoded = decoded_.find(item.sample);
      if (!item.decoded.empty()) item.bytes = item.decoded.size();
      ours.push_back(item.bytes);
    }
    to.push_back(items.size() * sizeof(std::uint64_t));
  }
  for (const std::vector<Item>& items : plan_.in) {
    from.push_back(items.size() * sizeof(std::uint64_t));
    theirs.resize(theirs.size() + items.size());
  }
  alltoall_v(*group_, {std::as_bytes(std::span(ours)), to}, {std::as_writable_bytes(std::span(theirs)), from},
             {.name = "lengths of " + step});
  auto length = theirs.begin();
  for (std::size_t rank = 0; rank < plan_.in.size(); ++rank)
    for (Item& item : plan_.in[rank]) {
      const std::uint64_t most = std::max<std::uint64_t>(item.bytes, most_decoded_[rank]);
      if (*length > most)
        throw Corrupt(fmt::format("rank {} announces {} bytes of {}; allowed: at most {}", rank, *length,
                                  source_.name(item.sample), most));
      item.bytes = *length++;
    }
}

/// Marks a record that this rank cannot read as lost. The rank that uses it then reads it itself and receives the
/// error.
void Cache::Impl::fill(Parcels& out, Counters& row) {
  out.each([&](const Item& item, std::byte& tier, base::Bytes record) {
    const base::Time begin = now();
    Tier from = Tier::lost;
    if (!item.decoded.empty()) {
      std::ranges::copy(item.decoded, record.begin());
      from = Tier::decoded;
    } else {
      try {
        from = tiers_->read(item.sample, record);
      } catch (const std::exception&) {
      }
    }
    tier = static_cast<std::byte>(from);
    tally_of(row, from).seconds += base::seconds(now() - begin);
  });
}

void Cache::Impl::take(const Item& item, input::Record& into, Counters& row) {
  const base::Time begin = now();
  Tier from = Tier::decoded;
  if (const base::ConstBytes decoded = decoded_.find(item.sample); !decoded.empty()) {
    into.bytes.assign(decoded.begin(), decoded.end());
    into.form = input::Form::decoded;
    ++row.decoded;
  } else {
    from = tiers_->read(item.sample, into.bytes);
    if (decoded_.has_room()) into.form = input::Form::wanted;
  }
  Tally& tally = tally_of(row, from);
  tally.seconds += base::seconds(now() - begin);
  ++tally.records;
  tally.bytes += into.bytes.size();
}

void Cache::Impl::take_direct(const Item& item, input::Record& into, Counters& row) {
  const base::Time begin = now();
  source_.read(item.sample, into.bytes);
  row.origin.seconds += base::seconds(now() - begin);
  add(row.origin, item);
}

void Cache::Impl::unpack(Parcels& in, std::vector<input::Record>& records, Counters& row) {
  in.each([&](const Item& item, std::byte& tier, base::Bytes record) {
    const auto from = static_cast<Tier>(tier);
    input::Record& into = records[item.place];
    if (from == Tier::lost) return take_direct({item.sample, item.place, into.bytes.size()}, into, row);
    if (from == Tier::decoded) {
      into.form = input::Form::decoded;
      ++row.decoded;
    } else if (record.size() != into.bytes.size()) {
      throw Corrupt(fmt::format("{} has {} bytes, of which another rank sent {}", source_.name(item.sample),
                                into.bytes.size(), record.size()));
    }
    into.bytes.assign(record.begin(), record.end());
    add(from == Tier::origin ? row.origin : row.peers, item);
  });
}

std::vector<input::Record> Cache::Impl::read(const input::Step& step) {
  base::require(step.at.sample < source_.records() && step.batch > 0,
                "a step of {} samples from sample {} of {}; allowed: at least one sample, from one within the set",
                step.batch, step.at.sample, source_.records());
  plan(step);
  std::vector<input::Record> records;
  for (const std::uint32_t sample : plan_.mine)
    records.push_back({sample, std::vector<std::byte>(source_.bytes(sample))});

  Counters row;
  row.epoch = step.at.epoch;
  const std::uint64_t damaged = tiers_->damaged();
  for (const std::uint32_t sample : decoded_.fresh()) tiers_->forget(sample);
  const std::string name = fmt::format("records of epoch {} from {} by {}", step.at.epoch, step.at.sample, step.batch);
  if (plan_.moves > 0) exchange_lengths(name);
  out_.lay_out(plan_.out);
  in_.lay_out(plan_.in);
  fill(out_, row);
  if (plan_.moves > 0) {  // otherwise no rank calls it
    const base::Time begin = now();
    alltoall_v(*group_, {out_.bytes(), out_.lengths()}, {in_.bytes(), in_.lengths()}, {.name = name});
    row.peers.seconds += base::seconds(now() - begin);
  }
  // A failure from here on affects only this rank: the others have their records.
  for (const Item& item : plan_.here) take(item, records[item.place], row);
  unpack(in_, records, row);
  for (const Item& item : plan_.direct) take_direct(item, records[item.place], row);
  row.damaged = tiers_->damaged() - damaged;
  count(row);
  return records;
}

void Cache::Impl::count(const Counters& step) {
  rows_.with([&](auto& rows) {
    Counters& row = rows[step.epoch];
    row.epoch = step.epoch;
    for (const auto tier : {&Counters::memory, &Counters::disk, &Counters::peers, &Counters::origin}) {
      (row.*tier).records += (step.*tier).records;
      (row.*tier).bytes += (step.*tier).bytes;
      (row.*tier).seconds += (step.*tier).seconds;
    }
    row.decoded += step.decoded;
    row.damaged += step.damaged;
  });
}

Cache::Cache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cache::~Cache() = default;

std::unique_ptr<Cache> Cache::form(Group& group, const input::Source& source, std::uint64_t seed,
                                   const Options& options) {
  return std::unique_ptr<Cache>(new Cache(std::make_unique<Impl>(group.split(0, group.rank()), source, seed, options)));
}

std::vector<input::Record> Cache::read(const input::Step& step) { return impl_->read(step); }
void Cache::keep(std::uint32_t sample, std::vector<std::byte> decoded) { impl_->keep(sample, std::move(decoded)); }
std::vector<Counters> Cache::counters() const { return impl_->counters(); }
void Cache::abort(const std::string& reason) noexcept { impl_->abort(reason); }

}  // namespace syncopate::cache
