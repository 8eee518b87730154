// Memory: records kept within a budget; copies of records on the disk give way to others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::cache {

class Memory final {
 public:
  explicit Memory(std::uint64_t budget) : free_(budget) {}

  [[nodiscard]] bool read(std::uint32_t sample, base::Bytes into) const {
    const auto found = records_.find(sample);
    if (found == records_.end()) return false;
    std::ranges::copy(found->second, into.begin());
    return true;
  }
  /// Keeps a record that is not here, if there is room. A copy of a record on the disk uses only free space; another
  /// record evicts copies.
  void keep(std::uint32_t sample, base::ConstBytes bytes, bool is_copy) {
    while (!is_copy && bytes.size() > free_ && !copies_.empty()) drop_a_copy();
    if (bytes.size() > free_) return;
    records_.emplace(sample, std::vector<std::byte>(bytes.begin(), bytes.end()));
    free_ -= bytes.size();
    if (is_copy) copies_.push_back(sample);
  }

 private:
  void drop_a_copy() {
    const auto found = records_.find(copies_.back());
    free_ += found->second.size();
    records_.erase(found);
    copies_.pop_back();
  }

  std::uint64_t free_;
  std::unordered_map<std::uint32_t, std::vector<std::byte>> records_;
  std::vector<std::uint32_t> copies_;
};

}  // namespace syncopate::cache
