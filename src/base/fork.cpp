// Fork: counts the forks in this process's ancestry since the library was first used.
#include "base/fork.hpp"

#include <pthread.h>

#include <atomic>

#include "base/require.hpp"

namespace syncopate::base {

namespace {

std::atomic<unsigned> generation{0};

}  // namespace

OwnProcess::OwnProcess() noexcept {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++generation; });
  static_cast<void>(registered);
  born_ = generation.load(std::memory_order_relaxed);
}

bool OwnProcess::is_inherited() const noexcept { return born_ != generation.load(std::memory_order_relaxed); }

void OwnProcess::require(std::string_view what) const {
  base::require(!is_inherited(),
                "{} is used in a process that was forked after it was made; allowed: in the process that made it. "
                "Start a child that needs one by spawn or exec, and let it make its own",
                what);
}

}  // namespace syncopate::base
