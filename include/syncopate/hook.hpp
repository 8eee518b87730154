// Hook: a function of a catalogue's entry: a plain function, or one that is called for an object.
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

namespace syncopate {

template <class Signature>
class Hook;

/// Constants at namespace scope may contain it. Empty: there is no function, and it is equal to nullptr.
template <class Result, class... Arguments>
class Hook<Result(Arguments...)> final {
 public:
  using Plain = Result (*)(Arguments...);
  using ForObject = Result (*)(const void* object, Arguments...);

  constexpr Hook() noexcept = default;
  constexpr Hook(std::nullptr_t) noexcept {}  // NOLINT: as a pointer to a function
  /// A function, or a lambda that captures nothing.
  template <std::convertible_to<Plain> Function>
  constexpr Hook(Function function) noexcept : plain_(function) {}  // NOLINT: as a pointer to a function
  /// Calls `function(object, …)`. The object must outlive the entry.
  constexpr Hook(ForObject function, const void* object) noexcept : for_object_(function), object_(object) {}

  Result operator()(Arguments... arguments) const {
    if (for_object_ != nullptr) return for_object_(object_, std::forward<Arguments>(arguments)...);
    return plain_(std::forward<Arguments>(arguments)...);
  }
  friend constexpr bool operator==(const Hook& hook, std::nullptr_t) noexcept {
    return hook.plain_ == nullptr && hook.for_object_ == nullptr;
  }

 private:
  Plain plain_ = nullptr;
  ForObject for_object_ = nullptr;
  const void* object_ = nullptr;
};

}  // namespace syncopate
