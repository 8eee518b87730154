// Readers: the data set, optionally throttled and optionally behind a cache.
#include "data/reader.hpp"

namespace syncopate::train {
namespace {

/// Workers of a parameter server form no group: each caches what it reads itself.
cache::Options cache_options(const Group& group, const input::ReaderRank& reader, const Options& o) {
  cache::Options options{.memory_bytes = o.cache_bytes,
                         .folder = o.cache_folder,
                         .disk_bytes = o.cache_disk_bytes,
                         .decoded_bytes = o.cache_decoded_bytes,
                         .log = {}};
  if (group.size() == reader.ranks) return options;
  options.part = reader.rank;
  options.parts = reader.ranks;
  return options;
}

class Read final : public SampleReader {
 public:
  Read(Group& group, const input::Source& source, const input::ReaderRank& reader, const Options& o)
      : slow_(o.origin_rate > 0 ? cache::throttled(source, static_cast<double>(o.origin_rate)) : nullptr) {
    const input::Source& origin = slow_ ? *slow_ : source;
    if (o.cache_bytes > 0 || !o.cache_folder.empty())
      cache_ = cache::Cache::form(group, origin, reader.seed, cache_options(group, reader, o));
    else
      direct_ = input::direct_reader(origin, reader);
  }

  std::vector<input::Record> read(const input::Step& step) override {
    return cache_ ? cache_->read(step) : direct_->read(step);
  }
  void keep(std::uint32_t sample, std::vector<std::byte> decoded) override {
    if (cache_) cache_->keep(sample, std::move(decoded));
  }
  [[nodiscard]] std::vector<cache::Counters> counters() const override {
    return cache_ ? cache_->counters() : std::vector<cache::Counters>{};
  }

 private:
  const std::unique_ptr<input::Source> slow_;  ///< null: not throttled
  std::unique_ptr<cache::Cache> cache_;        ///< null: `direct_` is used
  std::unique_ptr<input::Reader> direct_;
};

}  // namespace

std::unique_ptr<SampleReader> reader_of(Group& group, const input::Source& source, const input::ReaderRank& reader,
                                        const Options& options) {
  return std::make_unique<Read>(group, source, reader, options);
}

}  // namespace syncopate::train
