// Work::State: whether and how an operation has ended, shared by its waiters and the group's thread.
#pragma once

#include <vector>

#include "base/fork.hpp"
#include "base/guarded.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {

class Work::State final {
 public:
  /// Called once, by the thread that ran the operation. Returns what a callback threw, if one did.
  [[nodiscard]] std::exception_ptr finish(const std::exception_ptr& error);
  /// Returns whether the operation has ended by then; throws what it threw. Throws Misuse in a forked child.
  bool wait_until(base::Time deadline);
  [[nodiscard]] bool ready() const;
  void then(Callback callback);

 private:
  struct Ending {
    bool has_come = false;
    std::exception_ptr error;
    std::vector<Callback> callbacks;  ///< until the operation has ended
  };
  base::Guarded<Ending> ending_;
  base::OwnProcess process_;
};

}  // namespace syncopate
