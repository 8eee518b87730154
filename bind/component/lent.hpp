// Lent: memory of the library as arrays of NumPy, for as long as one call of a component.
#pragma once

#include <nanobind/ndarray.h>

#include <span>

#include "component/component.hpp"

namespace syncopate::bind {

/// Used with the GIL.
class Lent final {
 public:
  /// A flat array of float32.
  [[nodiscard]] nb::object over(std::span<float> values) const {
    return nb::cast(nb::ndarray<nb::numpy, float, nb::ndim<1>>(values.data(), {values.size()}, owner_));
  }
  /// The same, which Python cannot write.
  [[nodiscard]] nb::object over(std::span<const float> values) const {
    return nb::cast(nb::ndarray<nb::numpy, const float, nb::ndim<1>>(values.data(), {values.size()}, owner_));
  }
  /// After the call, without references of the caller's own. Throws Misuse if an array is still used.
  void require_returned(const Component& by, const char* after) const {
    if (Py_REFCNT(owner_.ptr()) > 1)
      throw Misuse(fmt::format("{} still uses an array after its {}; allowed: copies", by.who(), after));
  }

 private:
  /// Owns no memory; its references count the arrays that are still used.
  static nb::capsule counter() {
    static constexpr int kNothing = 0;
    return {&kNothing, [](void* /*nothing*/) noexcept {}};
  }
  nb::capsule owner_ = counter();
};

}  // namespace syncopate::bind
