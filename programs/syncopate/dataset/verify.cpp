// Decoding every record of a set, on several threads.
#include "dataset/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "syncopate/error.hpp"
#include "syncopate/pipeline.hpp"

namespace syncopate::tools::dataset {
namespace {

constexpr int kSide = 32;  ///< every byte is looked at whatever the size of the result

/// The records that cannot be decoded, and why.
class Check final {
 public:
  Check(const input::Dataset& set, const input::Source& source) : set_(set), source_(source) {}

  void run(int threads) {
    std::vector<std::jthread> others;
    for (int i = 0; i < threads; ++i) others.emplace_back([this] { work(); });
    others.clear();  // joins them
    if (failure_) std::rethrow_exception(failure_);
  }
  void append_to(std::vector<std::string>& texts) const {
    for (const auto& [record, why] : corrupt_) texts.push_back(why);
  }

 private:
  void work() {
    try {
      const auto decoder = set_.decoder();
      std::vector<std::byte> bytes;
      std::vector<float> pixels(3 * kSide * kSide);
      for (std::size_t i = next_++; i < source_.records(); i = next_++) try {
          bytes.resize(source_.bytes(i));
          source_.read(i, bytes);
          decoder->decode(bytes, {.side = kSide}, pixels.data());
        } catch (const Corrupt& why) {
          const std::lock_guard lock(mutex_);
          corrupt_[i] = fmt::format("{}: {}", source_.name(i), why.what());
        }
    } catch (...) {
      next_ = source_.records();
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  const input::Dataset& set_;
  const input::Source& source_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::map<std::size_t, std::string> corrupt_;
  std::exception_ptr failure_;
};

}  // namespace

Verdict verify(const std::string& folder, int threads) {
  const input::Dataset set = input::open_dataset(folder);
  Verdict verdict{
      std::string(set.format), set.classes.size(), set.training->records(), set.evaluation->records(), 0, {}};
  for (const auto& source : {set.training, set.evaluation}) {
    for (std::size_t i = 0; i < source->records(); ++i) verdict.bytes += source->bytes(i);
    Check check(set, *source);
    check.run(threads);
    check.append_to(verdict.corrupt);
  }
  return verdict;
}

}  // namespace syncopate::tools::dataset
