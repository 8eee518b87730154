// Fork: detects objects that a child forked without exec has inherited.
// The child has copies of its parent's objects but none of their threads, and shares all open descriptors with it.
#pragma once

#include <string_view>

namespace syncopate::base {

/// A member of an object that a forked child must not use.
class OwnProcess final {
 public:
  OwnProcess() noexcept;
  /// Whether an ancestor of this process made the object. Costs two loads.
  [[nodiscard]] bool is_inherited() const noexcept;
  /// Throws Misuse in a forked child. `what` is the object, as "a group".
  void require(std::string_view what) const;

 private:
  unsigned born_;
};

}  // namespace syncopate::base
