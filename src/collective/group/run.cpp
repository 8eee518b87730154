// Runs one collective: checks, plans, announces, and drives the engine until it is done or the group has failed.
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/require.hpp"
#include "collective/group/impl.hpp"
#include "collective/plan/program.hpp"
#include "collective/select/scope.hpp"
#include "transport/transport.hpp"

namespace syncopate {

namespace {

using collective::group::Request;

/// A failure as a call on this rank reports it, whichever rank detected it: with this rank, the rank that caused it,
/// and this rank's operation.
transport::membership::Failure seen_from(int rank, transport::membership::Failure failure, const std::string& operation,
                                         const std::string& tensor) {
  Where& where = failure.where;
  if (where.peer < 0 || where.peer == rank) where.peer = where.rank == rank ? -1 : where.rank;
  where.rank = rank;
  if (failure.message.find(operation) == std::string::npos)
    failure.message += fmt::format("; rank {} was in {}", rank, operation);
  where.operation = operation;
  if (where.tensor.empty()) where.tensor = tensor;
  return failure;
}

/// The range of this rank's part; even parts if no lengths are given.
Range part_of(const ConstBuffer& buffer, const std::vector<std::size_t>& lengths,
              const collective::group::Members& members) {
  const auto rank = static_cast<std::size_t>(members.rank);
  if (lengths.empty()) return even_part(buffer.count, members.ranks.size(), rank);
  const auto begin = std::accumulate(lengths.begin(), lengths.begin() + members.rank, std::size_t{0});
  return {begin, begin + lengths[rank]};
}

void copy_own_part(const Request& request, const collective::group::Members& members) {
  const Range from = part_of(request.data, request.parts, members);
  const Range to = part_of(request.out, request.out_parts, members);
  const std::size_t width = size_of(request.data.dtype);
  if (from.size() > 0)
    std::memcpy(request.out.bytes().data() + to.begin * width, request.data.bytes().data() + from.begin * width,
                from.size() * width);
}

std::uint64_t hash_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

void Group::Impl::raise_failure(const std::string& text, const std::string& tensor) const {
  transport::membership::raise(seen_from(endpoint_.rank, *endpoint_.control->failure(), text, tensor));
}

void Group::Impl::run_request(const Request& request) {
  if (request.is_message()) return run_message(request);
  const collective::group::Members& members = scopes_.of(request.options.scope);
  const auto size = static_cast<int>(members.ranks.size());
  if (collective::plan::swaps(request.collective) && size > 0) copy_own_part(request, members);
  if (endpoint_.size == 1) return check_alone(request);
  Prepared& call = prepare(request);
  if (endpoint_.control->failed()) raise_failure(call.record.text, request.options.name);
  call.record.number = ++operations_;  // counts all operations of the group, whatever the scope
  if (call.program == nullptr) return endpoint_.control->began(call.record);
  const bool is_barrier = request.collective == Collective::barrier;
  // The smallest all-reduce: no rank has the result before every rank has contributed.
  std::int32_t token = 0;
  const kernel::Reduction reduction{
      .dtype = is_barrier ? DType::i32 : request.data.dtype,
      .op = request.options.op,
      .divisor = request.options.op == ReduceOp::average ? size : 1,
  };
  execute(*call.program,
          {.data = is_barrier ? Buffer(&token, 1, DType::i32) : request.out,
           .source = collective::plan::swaps(request.collective) ? request.data : ConstBuffer(),
           .reduction = reduction,
           .label = {call.record.number, call.record.signature, request.collective == Collective::alltoall_v},
           .cuts = call.cuts},
          request, call.record);
}

void Group::Impl::check_alone(const Request& request) const {
  collective::group::check_choice(request, scopes_);
  if (endpoint_.control) check_health();
}

void Group::Impl::execute(const collective::plan::Program& program,
                          const collective::engine::Execution::Parameters& parameters, const Request& request,
                          const transport::membership::OperationRecord& record) {
  endpoint_.control->began(record);
  try {
    execution_->begin(program, parameters);
    drive(request, record);
  } catch (const std::exception& error) {
    give_up(error);
    raise_failure(record.text, request.options.name);
  }
}

void Group::Impl::check_health() const {
  if (endpoint_.control->failed()) transport::membership::raise(*endpoint_.control->failure());
}

void Group::Impl::give_up(const std::exception& error) {
  // The others must not wait for this rank, whatever failed here. The group's first report remains.
  endpoint_.control->report(transport::membership::failure_of(error, endpoint_.rank));
  // One poll of a failed group withdraws what was posted from the caller's memory; it always throws.
  try {
    static_cast<void>(endpoint_.links->poll(endpoint_.clock->now(), {}));
  } catch (const Error&) {  // the same failure
  }
  queues_->clear();
}

bool Group::Impl::Prepared::serves(const Request& other, Memory where) const noexcept {
  return memory == where && request.collective == other.collective &&
         request.planned_count() == other.planned_count() && request.data.dtype == other.data.dtype &&
         request.options == other.options;
}

void Group::Impl::Prepared::take_parts(const Request& call, int rank) {
  cuts = collective::group::cuts_of(call);
  record.text = text + collective::group::text_of_parts(call, rank);
  // Two ranks share only one of alltoall_v's lengths, which each frame's label carries.
  record.signature = hash_of(call.collective == Collective::allgather_v ? record.text : text);
}

Group::Impl::Prepared& Group::Impl::prepare(const Request& request) try {
  Prepared& call = prepared_for(request);
  if (request.has_parts()) call.take_parts(request, endpoint_.rank);
  return call;
} catch (const Misuse& misuse) {
  count_refused(misuse.what());
  throw;
}

void Group::Impl::count_refused(const std::string& reason) {
  if (endpoint_.size == 1) return;
  const std::uint64_t number = ++operations_;
  refusal_.with([&](Refusal& latest) { latest = {number, reason}; });
  endpoint_.control->began(
      {.number = number, .signature = hash_of("refused"), .text = "a call that was refused: " + reason});
}

Group::Impl::Prepared& Group::Impl::prepared_for(const Request& request) {
  constexpr std::size_t kRemembered = 4096;
  const Memory memory = memory_of(request);
  if (latest_ != nullptr && latest_->serves(request, memory)) return *latest_;
  const std::size_t key = request.planned_count() ^ std::hash<std::string>{}(request.options.name);
  const auto [first, last] = prepared_.equal_range(key);
  const auto known = std::find_if(first, last, [&](const auto& entry) { return entry.second.serves(request, memory); });
  if (known != last) return *(latest_ = &known->second);
  collective::group::check_choice(request, scopes_);
  Prepared made;
  made.request = request;
  made.memory = memory;
  if (!scopes_.of(request.options.scope).alone()) made.program = &program_of(request, memory);
  made.text = collective::group::text_of(request, place_);
  if (memory == Memory::group) made.text += " in the group's memory";
  made.record.text = made.text;
  made.record.signature = hash_of(made.text);
  made.record.scope = static_cast<std::uint64_t>(request.options.scope);
  if (prepared_.size() >= kRemembered) prepared_.clear();
  const auto added = prepared_.emplace(key, std::move(made));
  return *(latest_ = &added->second);
}

void Group::Impl::drive(const Request& request, const transport::membership::OperationRecord& record) {
  execution_->advance();
  const base::Time deadline = endpoint_.clock->now() + timeout();
  while (!execution_->done()) {
    const auto events = endpoint_.links->poll(next_look(deadline), request.patience);
    execution_->take(events);
    if (!events.empty()) continue;
    poll_callback();
    if (endpoint_.clock->now() >= deadline) time_out(request, record);
  }
}

void Group::Impl::time_out(const Request& request, const transport::membership::OperationRecord& record) {
  const std::string laggards = endpoint_.control->laggards(record.number);
  const int peer = execution_->awaited_peer();
  throw Timeout(
      fmt::format("{} did not finish within the timeout of {:.1f} s; rank {} waits for rank {}{}{}", record.text,
                  base::seconds(timeout()), endpoint_.rank, peer, laggards.empty() ? "" : "; ", laggards),
      Where{endpoint_.rank, peer, record.text, request.options.name});
}

Memory Group::Impl::memory_of(const Request& request) const noexcept {
  if (request.collective == Collective::alltoall_v) return Memory::own;  // a rank that sends nothing has no such memory
  const bool shares = scopes_.of(request.options.scope).shares_memory;
  const bool in_group =
      shares && endpoint_.links->lending() != nullptr && endpoint_.links->lending()->reaches(request.data.bytes());
  return in_group ? Memory::group : Memory::own;
}

const collective::plan::Program& Group::Impl::program_of(const Request& request, Memory memory) {
  const collective::group::Members& members = scopes_.of(request.options.scope);
  const PlanRequest wanted = collective::group::plan_request_of(request, members.request);
  const NetworkCost& cost = memory == Memory::group ? cost_in_group_memory_ : cost_;
  const collective::Choice choice = collective::select::choose(wanted, cost, sharing_);
  warn_about_size(wanted, cost);
  const bool tiles_well = request.collective == Collective::allreduce && choice.algorithm->tiles != nullptr &&
                          choice.algorithm->tiles(choice.shape) && members.shares_memory;
  const std::uint32_t tiles = tiles_well ? collective::plan::tiles_for(wanted.bytes, wanted.ranks) : 1;
  const auto [found, is_absent] =
      programs_.try_emplace(PlanKey{choice.algorithm->name, choice.shape, tiles, request.options.scope});
  if (is_absent) {
    const Plan plan = collective::build_plan(choice, static_cast<std::uint32_t>(members.rank));
    const collective::select::PartRanks ranks(members.ranks.begin(), members.ranks.end());
    found->second =
        collective::plan::compile(collective::select::among_all(collective::plan::tiled(plan, tiles), ranks));
  }
  return found->second;
}

/// Warns once, because a program that exceeds the measured sizes does so at every step.
void Group::Impl::warn_about_size(const PlanRequest& wanted, const NetworkCost& cost) {
  if (has_warned_ || endpoint_.rank != 0 || wanted.algorithm != "auto") return;
  const std::string warning =
      warning_about_size(cost, wanted.ranks, wanted.collective, static_cast<double>(wanted.bytes));
  has_warned_ = !warning.empty();
  if (has_warned_) options_.log.write(LogLevel::warning, fmt::format("{}: {}", options_.cluster, warning));
}

}  // namespace syncopate
