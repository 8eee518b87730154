// Messages between two ranks: a plan of one or two steps, with numbers of their own.
#include <xxhash.h>

#include "collective/group/impl.hpp"

namespace syncopate {

/// Messages are counted by sender and receiver, on both ranks: what one rank calls between collectives is no business
/// of the others.
transport::membership::OperationRecord Group::Impl::message_record(const Request& request, bool arrives) {
  const int from = arrives ? request.from : endpoint_.rank, to = arrives ? endpoint_.rank : request.to;
  const Buffer& data = arrives && request.to >= 0 ? request.out : request.data;
  const std::string text = collective::group::text_of_message(request, from, to, data);
  return {transport::membership::message_number(from, to, ++messages_[{from, to}]),
          XXH3_64bits(text.data(), text.size()), text};
}

void Group::Impl::run_message(const Request& request) {
  const bool sends = request.to >= 0, receives = request.from >= 0;
  if (endpoint_.control->failed())
    raise_failure(collective::group::text_of_message(request, sends ? endpoint_.rank : request.from,
                                                     sends ? request.to : endpoint_.rank, request.data),
                  request.options.name);
  Plan plan{.chunks = 0, .steps = {}};
  collective::engine::Execution::Parameters parameters{.data = request.data, .second = request.out};
  std::vector<std::size_t> cuts{0};
  transport::membership::OperationRecord record;
  if (receives) {
    record = message_record(request, true);
    parameters.arrivals = {record.number, record.signature, true};
    if (sends) endpoint_.control->began(record);
  }
  if (sends) {
    plan.steps.push_back({Act::send, static_cast<std::uint32_t>(request.to), plan.chunks++, 1, false});
    cuts.push_back(request.data.count);
    record = message_record(request, false);
    parameters.label = {record.number, record.signature, true};
  }
  if (receives) {
    plan.steps.push_back({Act::receive, static_cast<std::uint32_t>(request.from), plan.chunks++, 1, false});
    cuts.push_back(request.data.count + request.out.count);
  }
  parameters.cuts = cuts;
  execute(collective::plan::compile(std::move(plan)), parameters, request, record);
}

}  // namespace syncopate
