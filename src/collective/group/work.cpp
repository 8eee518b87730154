// Work: waits for an operation's end, and calls its callbacks.
#include "collective/group/work.hpp"

#include <utility>

namespace syncopate {

std::exception_ptr Work::State::finish(const std::exception_ptr& error) {
  std::vector<Callback> callbacks;
  ending_.change([&](Ending& ending) {
    ending.has_come = true;
    ending.error = error;
    callbacks.swap(ending.callbacks);
  });
  std::exception_ptr thrown;
  for (const Callback& callback : callbacks) try {
      callback(error);
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  return thrown;
}

bool Work::State::wait_until(base::Time deadline) {
  process_.require("an operation");
  std::exception_ptr error;
  const bool has_come = ending_.wait_until(
      deadline, [](const Ending& ending) { return ending.has_come; },
      [&](const Ending& ending) { error = ending.error; });
  if (error) std::rethrow_exception(error);
  return has_come;
}

bool Work::State::ready() const {
  return ending_.with([](const Ending& ending) { return ending.has_come; });
}

void Work::State::then(Callback callback) {
  std::exception_ptr error;
  const bool has_come = ending_.with([&](Ending& ending) {
    error = ending.error;
    if (!ending.has_come) ending.callbacks.push_back(std::move(callback));
    return ending.has_come;
  });
  if (has_come) callback(error);
}

void Work::wait() const { state_->wait_until(base::kNever); }

bool Work::wait_for(std::chrono::nanoseconds bound) const {
  const base::Time now = base::SteadyClock{}.now();
  return state_->wait_until(bound < base::kNever - now ? now + bound : base::kNever);
}

bool Work::ready() const { return state_->ready(); }
void Work::then(Callback callback) const { state_->then(std::move(callback)); }

}  // namespace syncopate
