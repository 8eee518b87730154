// Messages between two ranks: one that its caller waits for, and batches of those that were started together.
#include "collective/group/impl.hpp"

namespace syncopate {

namespace {

std::string text_of(const collective::group::Request& request, int rank) {
  const bool sends = request.to >= 0;
  return collective::group::text_of_message(request.options.name, request.options.tag,
                                            {sends ? rank : request.from, sends ? request.to : rank},
                                            sends ? request.data : ConstBuffer(request.out));
}

}  // namespace

void Group::Impl::run_message(const collective::group::Request& request) {
  try {
    check_health();
    queues_->add(0, request);
    do {  // a message that has ended in `add` is taken as well: the queues are those of started messages too
      if (queues_->wait(request.patience, next_look(base::kNever)).empty()) poll_callback();
    } while (!queues_->empty());
  } catch (const std::exception& error) {
    give_up(error);
    raise_failure(text_of(request, endpoint_.rank), request.options.name);
  }
}

void Group::Impl::run_messages(Batch& batch) {
  const Turn turn(*this, batch.ticket);
  UnderWay under_way;
  try {
    while (take_up(batch, under_way)) {
      check_health();
      for (const std::uint64_t message : queues_->wait({}, base::kNever))
        end(under_way.extract(message).mapped(), nullptr);
    }
  } catch (const std::exception& error) {
    give_up(error);
    do fail(under_way);
    while (take_up(batch, under_way));
  }
}

void Group::Impl::refuse_message(const collective::group::Request& request, const std::string& reason) noexcept {
  const auto is_other = [&](int peer) { return peer >= 0 && peer < endpoint_.size && peer != endpoint_.rank; };
  if (is_other(request.to) || is_other(request.from)) abort(reason, request.options.name);
}

/// False when all have ended: from then on new messages form another batch.
bool Group::Impl::take_up(Batch& batch, UnderWay& under_way) {
  std::deque<Started> fresh;
  const bool goes_on = pending_.with([&](Queue& queue) {
    fresh.swap(batch.calls);
    if (!fresh.empty() || !under_way.empty()) return true;
    if (queue.messages.get() == &batch) queue.messages = nullptr;
    return false;
  });
  for (Started& call : fresh) {
    const auto added = under_way.emplace(++messages_, std::move(call)).first;
    if (!endpoint_.control->failed()) queues_->add(added->first, added->second.request);
  }
  return goes_on;
}

void Group::Impl::fail(UnderWay& under_way) {
  for (auto& [id, call] : under_way) {
    try {
      raise_failure(text_of(call.request, endpoint_.rank), call.request.options.name);
    } catch (...) {
      end(call, std::current_exception());
    }
  }
  under_way.clear();
}

}  // namespace syncopate
