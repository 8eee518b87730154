// Fork: what a child that was forked without exec must know.
// It has copies of its parent's objects, but none of the threads that serve them, and it shares with its parent
// whatever they have open.
#pragma once

#include <string_view>

namespace syncopate::base {

/// A member of an object that a forked child must leave alone.
class OwnProcess final {
 public:
  OwnProcess() noexcept;
  /// Whether the object was made by this process's parent, or its parent's. Costs two loads.
  [[nodiscard]] bool is_inherited() const noexcept;
  /// Throws Misuse in a forked child. `what` is the object, as "a group".
  void require(std::string_view what) const;

 private:
  unsigned born_;
};

}  // namespace syncopate::base
