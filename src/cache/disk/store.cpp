// The store of one rank: checks its index at opening and each record's hash at every read, and tolerates write errors.
#include "cache/disk/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::cache::disk {
namespace {

/// The index, at most as many bytes as an index of `set` can have; empty if there is none.
std::vector<std::byte> index_in(const File& folder, const input::Source& set) {
  const File file(folder, "index", O_RDONLY | O_CREAT);
  std::vector<std::byte> bytes(std::min<std::uint64_t>(file.size(), kHeaderBytes + set.records() * kRowBytes));
  if (!file.read_at(0, bytes)) bytes.clear();
  return bytes;
}

}  // namespace

Store::Store(Place place, const input::Source& set, Log log)
    : place_(std::move(place)),
      set_(set),
      log_(std::move(log)),
      folder_(own_folder(place_.folder)),
      records_(folder_, "records", O_RDWR | O_CREAT) {
  const std::vector<std::byte> bytes = index_in(folder_, set_);
  ParsedIndex index = parse_index(bytes, set_, records_.size());
  if (!index.is_of_set && !bytes.empty())
    log_.write(LogLevel::warning,
               fmt::format("cannot use the cache in {} (damaged, or for other data): starting with an empty one",
                           place_.folder));
  if (index.damaged > 0)
    log_.write(LogLevel::warning,
               fmt::format("the cache in {} has lost {} index rows; their records are read from the origin again",
                           place_.folder, index.damaged));
  for (const Row& row : index.rows) {
    if (row.offset + row.length + (found_.size() + 1) * kRowBytes > place_.budget) break;
    found_.push_back(row);
  }
}

std::vector<std::uint32_t> Store::samples() const {
  std::vector<std::uint32_t> samples;
  for (const Row& row : found_) samples.push_back(row.sample);
  return samples;
}

void Store::retain(const std::function<bool(std::uint32_t)>& wanted) {
  std::erase_if(found_, [&](const Row& row) { return !wanted(row.sample); });
  free_ = FreeSpace(found_);
  for (const Row& row : found_) entries_.emplace(row.sample, Entry{row, entries_.size(), true});
  try {
    index_ = replace_file(folder_, "index", index_of(set_, found_));
    const std::uint64_t end = found_.empty() ? 0 : found_.back().offset + found_.back().length;
    if (records_.size() > end) records_.truncate(end);  // truncating to the same size would wait for the disk
  } catch (const SystemFailure& error) {                // the existing index serves the next run as it served this one
    refuse(error.what());
  }
  found_ = {};
}

void Store::refuse(const char* why) {
  refuses_ = true;
  log_.write(LogLevel::warning,
             fmt::format("cannot write to the cache in {}: {}; no more records are written there", place_.folder, why));
}

bool Store::read(std::uint32_t sample, base::Bytes into) {
  const auto found = entries_.find(sample);
  if (found == entries_.end() || !found->second.is_whole) return false;
  Entry& entry = found->second;
  entry.is_whole =
      into.size() == entry.row.length && records_.read_at(entry.row.offset, into) && hash_of(into) == entry.row.hash;
  if (entry.is_whole) return true;
  if (damaged_++ == 0)
    log_.write(LogLevel::warning,
               fmt::format("{} is damaged at record {}, offset {}; damaged records are read from the "
                           "origin again",
                           file("records"), sample, entry.row.offset));
  return false;
}

bool Store::keep(std::uint32_t sample, base::ConstBytes bytes) {
  if (refuses_) return false;
  Entry* entry = entry_for(sample, bytes.size());
  if (entry == nullptr) return false;
  entry->row.hash = hash_of(bytes);
  const int error = write(*entry, bytes);
  entry->is_whole = error == 0;
  if (entry->is_whole) return true;
  refuse(std::strerror(error));
  return false;
}

/// The entry of a record, existing or new; null if there is no room.
Store::Entry* Store::entry_for(std::uint32_t sample, std::size_t length) {
  if (const auto known = entries_.find(sample); known != entries_.end()) return &known->second;
  const std::uint64_t rows = (entries_.size() + 1) * kRowBytes;
  if (rows > place_.budget) return nullptr;
  const auto offset = free_.take(length, place_.budget - rows);
  if (!offset) return nullptr;
  const Row row{sample, static_cast<std::uint32_t>(length), *offset, 0};
  return &entries_.emplace(sample, Entry{row, entries_.size(), false}).first->second;
}

int Store::write(const Entry& entry, base::ConstBytes bytes) {
  if (const int error = records_.write_at(entry.row.offset, bytes); error != 0) return error;
  std::byte row[kRowBytes];
  write_row(row, entry.row);
  return index_->write_at(kHeaderBytes + entry.slot * kRowBytes, row);
}

}  // namespace syncopate::cache::disk
