// The data cache for Python: steps of records, read on a thread of the caller without the GIL.
#include "syncopate/cache.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <mutex>

#include "cache/source.hpp"
#include "group.hpp"
#include "remembered.hpp"
#include "syncopate/error.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

/// The origin of one cache, whose reads throw after `close`, so that a read of a whole step ends soon.
class ClosableSource final : public input::Source {
 public:
  explicit ClosableSource(std::shared_ptr<const input::Source> source) : source_(std::move(source)) {}

  [[nodiscard]] std::size_t records() const noexcept override { return source_->records(); }
  [[nodiscard]] std::size_t bytes(std::size_t record) const override { return source_->bytes(record); }
  [[nodiscard]] std::int64_t label(std::size_t record) const override { return source_->label(record); }
  [[nodiscard]] std::string name(std::size_t record) const override { return source_->name(record); }
  [[nodiscard]] std::uint64_t version() const noexcept override { return source_->version(); }
  void read(std::size_t record, std::span<std::byte> into) const override {
    if (is_closed_) throw Misuse("the cache was closed; make another one");
    source_->read(record, into);
  }
  void close() noexcept { is_closed_ = true; }

 private:
  std::shared_ptr<const input::Source> source_;
  std::atomic<bool> is_closed_ = false;
};

constexpr const char* kCacheDoc =
    "All ranks of a group hold the records of a source together, as syncopate/cache.hpp describes it. Every rank makes "
    "it with the same source and seed. memory_bytes, folder, disk_bytes and decoded_bytes are this rank's "
    "contribution.";
constexpr const char* kReadDoc =
    "This rank's records among the next `batch` of all ranks from that position in the order of an epoch: a list of "
    "(record, bytes, form). The form is 'encoded'; 'wanted': `keep` takes the decoded form; or 'decoded': `keep` has "
    "taken these bytes. Collective; one thread calls it. Raises what the source's `read` raised; Mismatch, PeerLost, "
    "Timeout, RemoteFailure.";

/// A cache with what it must not outlive. Created and destroyed with the GIL.
class SharedCache final {
 public:
  SharedCache(const Membership& membership, const SharedSource& source, std::uint64_t seed,
              const cache::Options& options)
      : signals_(membership.signals()), origin_(source.source) {
    const auto group = membership.group();
    cache_ = signals_->without_gil([&] { return cache::Cache::form(*group, origin_, seed, options); });
  }
  /// No read is in progress: its caller has a reference.
  ~SharedCache() {
    const nb::gil_scoped_release release;
    cache_.reset();
  }
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;

  [[nodiscard]] std::vector<input::Record> read(const input::Step& step) {
    auto cache = open();
    return signals_->without_gil([&] {
      const std::scoped_lock lock(reading_);
      const auto read = std::move(cache);  // after `close` it is destroyed here, before the lock is released
      return read->read(step);
    });
  }
  void keep(std::uint32_t sample, const nb::bytes& decoded) {
    const auto* const begin = static_cast<const std::byte*>(decoded.data());
    if (const auto cache = cache_) cache->keep(sample, {begin, begin + decoded.size()});
  }
  [[nodiscard]] std::vector<cache::Counters> counters() const { return open()->counters(); }
  void abort(const std::string& reason) noexcept {
    origin_.close();
    if (const auto cache = cache_) cache->abort(reason);
  }
  [[nodiscard]] bool is_closed() const noexcept { return !cache_; }
  /// A read in progress ends first. If a handler of signals raises meanwhile, that read's thread leaves the other
  /// ranks.
  void close() {
    origin_.close();
    auto left = std::move(cache_);
    wait_in_pieces([&](std::chrono::milliseconds bound) {
      const std::unique_lock lock(reading_, bound);
      if (lock) left.reset();
      return lock.owns_lock();
    });
  }

 private:
  [[nodiscard]] std::shared_ptr<cache::Cache> open() const {
    if (cache_) return cache_;
    throw Misuse("the cache was closed; make another one");
  }

  std::shared_ptr<Signals> signals_;
  ClosableSource origin_;
  std::shared_ptr<cache::Cache> cache_;
  std::timed_mutex reading_;
};

const char* text_of(input::Form form) {
  if (form == input::Form::encoded) return "encoded";
  return form == input::Form::wanted ? "wanted" : "decoded";
}

nb::list in_python(const std::vector<input::Record>& records) {
  nb::list all;
  for (const input::Record& record : records)
    all.append(
        nb::make_tuple(record.sample, nb::bytes(record.bytes.data(), record.bytes.size()), text_of(record.form)));
  return all;
}

std::string text_of(const cache::Tally& tally) {
  return fmt::format("CacheTally(records={}, bytes={}, seconds={:.3g})", tally.records, tally.bytes, tally.seconds);
}

std::string text_of(const cache::Counters& row) {
  return fmt::format("CacheCounters(epoch={}, memory={}, disk={}, peers={}, origin={}, decoded={}, damaged={})",
                     row.epoch, text_of(row.memory), text_of(row.disk), text_of(row.peers), text_of(row.origin),
                     row.decoded, row.damaged);
}

void bind_counters(nb::module_& module) {
  nb::class_<cache::Tally>(module, "CacheTally", "Records of one epoch that came from one place.")
      .def_ro("records", &cache::Tally::records)
      .def_ro("bytes", &cache::Tally::bytes)
      .def_ro("seconds", &cache::Tally::seconds,
              "Time that this rank read there, for itself and for others; for `peers` its wait for the exchange.")
      .def("__repr__", [](const cache::Tally& self) { return text_of(self); });
  nb::class_<cache::Counters>(module, "CacheCounters",
                              "The places from which this rank's records of an epoch came; each record counts once.")
      .def_ro("epoch", &cache::Counters::epoch)
      .def_ro("memory", &cache::Counters::memory, "This rank's own.")
      .def_ro("disk", &cache::Counters::disk, "This rank's own.")
      .def_ro("peers", &cache::Counters::peers, "Memory or disk of another rank.")
      .def_ro("origin", &cache::Counters::origin,
              "The source, read by this rank or, on its behalf, by the record's holder.")
      .def_ro("decoded", &cache::Counters::decoded, "Records of `memory` and `peers` that came in their decoded form.")
      .def_ro("damaged", &cache::Counters::damaged, "Damaged records on this rank's disk, which were read again.")
      .def("__repr__", [](const cache::Counters& self) { return text_of(self); });
}

}  // namespace

void bind_cache(nb::module_& module) {
  bind_counters(module);
  nb::class_<SharedCache>(module, "Cache", nb::is_weak_referenceable(), kCacheDoc)
      .def(
          "__init__",
          [](SharedCache* self, const Membership& group, const SharedSource& source, std::uint64_t seed,
             std::uint64_t memory_bytes, const std::string& folder, std::uint64_t disk_bytes,
             std::uint64_t decoded_bytes) {
            new (self) SharedCache(group, source, seed,
                                   {.memory_bytes = memory_bytes,
                                    .folder = folder,
                                    .disk_bytes = disk_bytes,
                                    .decoded_bytes = decoded_bytes,
                                    .log = {}});
          },
          "group"_a, "source"_a, nb::kw_only(), "seed"_a = 0, "memory_bytes"_a = 0, "folder"_a = "", "disk_bytes"_a = 0,
          "decoded_bytes"_a = 0, nb::call_policy<RememberedNew>())
      .def(
          "read",
          [](SharedCache& self, std::uint64_t epoch, std::uint64_t sample, std::size_t batch) {
            return in_python(self.read({.at = {.step = 0, .epoch = epoch, .sample = sample}, .batch = batch}));
          },
          "epoch"_a, "sample"_a, "batch"_a, kReadDoc)
      .def("keep", &SharedCache::keep, "record"_a, "decoded"_a,
           "The decoded form of a record whose form was 'wanted'; any thread. Without room, or after `close`, it is "
           "dropped.")
      .def("counters", &SharedCache::counters, "One row for each started epoch, in order.")
      .def("abort", &SharedCache::abort, "reason"_a,
           "End a read in progress; from now on reads of any rank that exchange records raise RemoteFailure.")
      .def("close", &SharedCache::close, "Leave the other ranks. A read in progress ends first, without the source.")
      .def_prop_ro("closed", &SharedCache::is_closed, "Whether `close` was called.");
}

}  // namespace syncopate::bind
