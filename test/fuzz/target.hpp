// Target: a function that passes untrusted bytes to one decoder; any exception except a refusal is a finding.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>

#include "base/bytes.hpp"
#include "syncopate/error.hpp"

namespace syncopate::fuzz {

using Input = base::ConstBytes;

struct Target {
  std::string_view name;
  void (*run)(Input input);
};

/// Every target, by name (generated: each source file in a folder below is one, named as its function in `target`).
[[nodiscard]] std::span<const Target> targets();

[[nodiscard]] inline std::string_view text_of(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

/// Runs `decode`, which may throw these exceptions to refuse. Any other exception reaches the caller.
template <class Refusal, class... Others, class Decode>
void may_refuse(const Decode& decode) {
  try {
    if constexpr (sizeof...(Others) == 0)
      decode();
    else
      may_refuse<Others...>(decode);
  } catch (const Refusal&) {
  }
}

/// States a law that holds for every input.
inline void hold(bool law, const char* what) {
  if (!law) throw std::logic_error(what);
}

/// Numbers and bytes from the front of an input; zeros when it is used up.
class Fields final {
 public:
  explicit Fields(Input input) noexcept : rest_(input) {}

  template <std::integral T>
  [[nodiscard]] T take() noexcept {
    T value = 0;
    const Input bytes = take_bytes(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  /// At most `most` bytes.
  [[nodiscard]] Input take_bytes(std::size_t most) noexcept {
    const Input taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  [[nodiscard]] Input rest() const noexcept { return rest_; }
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

 private:
  Input rest_;
};

}  // namespace syncopate::fuzz
