// Hub: state shared by the ranks of one process: a mailbox each, and the group's first failure.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "transport/membership/control.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::inproc {

/// A frame whose bytes still lie in the sender's memory.
struct Offer {
  Label label;
  base::ConstBytes bytes;
  std::uint64_t token = 0;  ///< of the sender
};

/// The inbox of one rank, filled by the others. `signals` grows with every change, so that its owner can spin without a
/// lock.
struct Mailbox {
  base::Mutex mutex;
  base::Condition changed;
  std::atomic<std::uint64_t> signals{0};
  std::vector<std::deque<Offer>> offers SYNCOPATE_GUARDED_BY(mutex);  ///< by sender
  /// Tokens of this rank's frames whose bytes were given back.
  std::vector<std::uint64_t> sent SYNCOPATE_GUARDED_BY(mutex);

  /// `f` is called with the lock held, which clang cannot relate to the argument of `f`.
  template <class F>
  void change(F&& f) SYNCOPATE_UNCHECKED {
    {
      const base::Lock lock(mutex);
      f(*this);
      signals.fetch_add(1, std::memory_order_release);
    }
    changed.notify_one();
  }
};

/// The operations of one number, as called by the first rank that began it.
struct Agreement {
  membership::OperationRecord record;
  int rank = -1;
};

/// Shared by all ranks of the group.
struct Hub {
  explicit Hub(int size)
      : mailboxes(static_cast<std::size_t>(size)),
        left(static_cast<std::size_t>(size)),
        begun(static_cast<std::size_t>(size)),
        messages(static_cast<std::size_t>(size)) {
    for (Mailbox& mailbox : mailboxes) mailbox.offers.resize(static_cast<std::size_t>(size));
  }

  std::vector<Mailbox> mailboxes;
  std::atomic<bool> failed{false};
  std::atomic<bool> is_incomplete{false};  ///< a rank has left
  mutable base::Mutex mutex;
  std::optional<membership::Failure> failure SYNCOPATE_GUARDED_BY(mutex);
  std::vector<bool> left SYNCOPATE_GUARDED_BY(mutex);                          ///< by rank
  std::map<std::uint64_t, Agreement> agreements SYNCOPATE_GUARDED_BY(mutex);   ///< a limited number of the latest
  std::vector<membership::OperationRecord> begun SYNCOPATE_GUARDED_BY(mutex);  ///< by rank: the last operation it began
  /// By rank: a limited number of its latest.
  std::vector<std::deque<membership::OperationRecord>> messages SYNCOPATE_GUARDED_BY(mutex);
  /// Hubs of sub-groups that wait for their members, by number, with the number of members that have not fetched
  /// theirs.
  std::map<std::uint64_t, std::pair<std::shared_ptr<Hub>, int>> branches SYNCOPATE_GUARDED_BY(mutex);
  std::uint64_t next_branch SYNCOPATE_GUARDED_BY(mutex) = 0;
};

}  // namespace syncopate::transport::inproc
