// Operations that were started, for Python: they keep their arrays, and can be waited for, awaited, or call back.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "array.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::bind {

/// Where an operation was started.
struct Origin {
  std::weak_ptr<Group> group;  ///< to be aborted if a handler of signals raises while the operation is waited for
  /// The thread on which a callback runs now: the group's own, which must not leave the group, for it would wait for
  /// itself.
  std::shared_ptr<std::atomic<std::thread::id>> calling;
};

/// Created, used and destroyed with the GIL.
class StartedWork final {
 public:
  StartedWork(Work work, Origin origin, std::vector<Array> arrays);
  /// Arrays of an operation that has not ended stay until it has.
  ~StartedWork();
  StartedWork(StartedWork&&) noexcept = default;
  StartedWork& operator=(StartedWork&&) = delete;

  void wait() const;
  [[nodiscard]] bool wait_for(double bound_s) const;
  [[nodiscard]] bool ready() const { return work_.ready(); }
  void then(nb::callable callback) const;

 private:
  /// wait_in_pieces, after which an exception of a signal handler is reported to the other ranks.
  void wait_until_over(const std::function<bool(std::chrono::milliseconds bound)>& is_over) const;

  Work work_;
  Origin origin_;
  std::vector<Array> arrays_;
};

}  // namespace syncopate::bind
