// A group for Python: its lifetime, and how calls wait in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "array.hpp"
#include "signals.hpp"
#include "syncopate/collective.hpp"
#include "work.hpp"

namespace syncopate::bind {

/// One rank's membership, as Python objects share it. Used with the GIL.
class Membership final {
 public:
  Membership(std::unique_ptr<Group> group, std::shared_ptr<Signals> signals);
  Membership(Membership&&) noexcept = default;
  Membership& operator=(Membership&&) = delete;

  /// Throws Misuse after `close`.
  [[nodiscard]] std::shared_ptr<Group> group() const;
  [[nodiscard]] const std::shared_ptr<Signals>& signals() const noexcept { return signals_; }
  [[nodiscard]] bool is_closed() const noexcept { return !group_; }
  void close() { group_.reset(); }

  /// Runs the operation on this thread, without the GIL: `blocking`, or, if started operations are still in progress,
  /// `starting` and a wait that handles signals.
  void run(const std::function<void(Group&)>& blocking, const std::function<Work(Group&)>& starting);
  /// Starts it; its arrays are kept until it has ended.
  [[nodiscard]] StartedWork start(const std::function<Work(Group&)>& starting, std::vector<Array> arrays);

 private:
  Origin origin_;
  std::shared_ptr<Group> group_;  ///< leaves the group without the GIL, when the last user lets go
  std::shared_ptr<Signals> signals_;
  std::shared_ptr<Work> latest_;  ///< that was started
};

using GroupClass = nb::class_<Membership>;
void bind_collectives(GroupClass& group);
void bind_messages(GroupClass& group);

}  // namespace syncopate::bind
