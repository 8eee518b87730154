// Started operations: their thread, the messages that share a ticket, waiting for the end, and callbacks.
#include "collective/group/work.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "collective/group/impl.hpp"
#include "syncopate/error.hpp"

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

namespace {

std::string text_of(const std::exception_ptr& thrown) try {
  std::rethrow_exception(thrown);
} catch (const std::exception& error) {
  return error.what();
} catch (...) {
  return "something that is not a std::exception";
}

}  // namespace

Work Group::Impl::start(Request request) {
  process_.require("a group");
  try {
    collective::group::validate(request, scopes_);
    collective::group::check_choice(request, scopes_);
  } catch (const Misuse& misuse) {
    if (request.is_message())
      refuse_message(request, misuse.what());
    else
      static_cast<void>(enqueue({std::move(request), std::make_shared<Work::State>(), misuse.what()}));
    throw;
  }
  return enqueue({std::move(request), std::make_shared<Work::State>(), {}});
}

Work Group::Impl::enqueue(Started call) {
  const bool is_message = call.request.is_message();
  Work work(call.work);
  bool joins = false;
  pending_.change([&](Queue& queue) {
    joins = is_message && queue.messages && queue.messages->ticket + 1 == next_ticket_;
    if (joins) return queue.messages->calls.push_back(std::move(call));
    // Steps that may fail come first: a ticket that no thread serves would stop all later calls.
    if (!worker_.joinable()) begin_worker();
    const auto batch = std::make_shared<Batch>(is_message);
    batch->calls.push_back(std::move(call));
    queue.batches.push_back(batch);
    batch->ticket = next_ticket_++;
    if (is_message) queue.messages = batch;
  });
  if (joins) endpoint_.links->wake();  // the waiting thread must notice the new message
  return work;
}

void Group::Impl::begin_worker() try {
  worker_ = std::jthread([this](const std::stop_token& stop) { this->work(stop); });
} catch (const std::system_error& error) {
  throw SystemFailure(fmt::format("rank {} cannot create a thread for started operations: {}; raise the limit of "
                                  "threads, or call them without `start`",
                                  endpoint_.rank, error.what()),
                      {endpoint_.rank, -1, "", ""});
}

bool Group::Impl::has_started_messages() {
  return pending_.with([](const Queue& queue) { return queue.messages != nullptr; });
}

void Group::Impl::work(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<Batch> batch;
    pending_.wait_until(
        base::kNever, [&](const Queue& queue) { return stop.stop_requested() || !queue.batches.empty(); },
        [&](Queue& queue) {
          if (queue.batches.empty()) return;
          batch = std::move(queue.batches.front());
          queue.batches.pop_front();
        });
    if (!batch) return;
    if (batch->of_messages)
      run_messages(*batch);
    else
      run_started(batch->ticket, batch->calls.front());
  }
}

void Group::Impl::run_started(std::uint64_t ticket, const Started& call) {
  std::exception_ptr error;
  try {
    const Turn turn(*this, ticket);
    if (call.refusal.empty())
      run_request(call.request);
    else
      count_refused(call.refusal);
  } catch (...) {
    error = std::current_exception();
  }
  end(call, error);
}

void Group::Impl::end(const Started& call, const std::exception_ptr& error) {
  const std::exception_ptr thrown = call.work->finish(error);
  if (thrown) abort(fmt::format("a callback threw: {}", text_of(thrown)), call.request.options.name);
}

}  // namespace syncopate
