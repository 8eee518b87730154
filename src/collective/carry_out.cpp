// Carrying out one collective: check, plan, announce, drive the engine until it is done or the world has failed.
#include <xxhash.h>

#include "base/require.hpp"
#include "collective/algorithm.hpp"
#include "collective/state.hpp"
#include "collective/tile.hpp"

namespace syncopate {

namespace {

/// Everything all ranks must agree on, for people. Its hash travels in every frame.
std::string text_of(Collective collective, const Buffer& data, const CollectiveOptions& options) {
  if (collective == Collective::barrier) return "barrier";
  std::string text = fmt::format("{} {} x {}", name_of(collective), name_of(data.dtype), data.count);
  const bool reduces = collective == Collective::allreduce || collective == Collective::reduce ||
                       collective == Collective::reduce_scatter;
  if (reduces) fmt::format_to(std::back_inserter(text), " {}", name_of(options.op));
  if (collective == Collective::broadcast || collective == Collective::reduce)
    fmt::format_to(std::back_inserter(text), " root {}", options.root);
  if (options.algorithm != "auto") fmt::format_to(std::back_inserter(text), " by {}", options.algorithm);
  if (!options.name.empty()) fmt::format_to(std::back_inserter(text), " '{}'", options.name);
  return text;
}

/// A failure as a call on this rank tells it, whichever rank met it first: this rank, whom to blame, and what this
/// rank was about.
transport::Failure seen_from(int rank, transport::Failure failure, const std::string& operation,
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

}  // namespace

void Group::Impl::validate(const Request& request) const {
  const int size = endpoint_.size;
  base::require(request.options.root >= 0 && request.options.root < size, "{}: root is {}; allowed: 0 to {}",
                name_of(request.collective), request.options.root, size - 1);
  base::require(request.data.count == 0 || request.data.data != nullptr, "{}: {} elements at a null address",
                name_of(request.collective), request.data.count);
  if (request.options.algorithm != "auto")
    static_cast<void>(collective::algorithm_named(request.options.algorithm, request.collective));
}

void Group::Impl::carry_out(const Request& request) {
  const kernel::Reduction reduction{
      .dtype = request.data.dtype,
      .op = request.options.op,
      .divisor = request.options.op == ReduceOp::average ? endpoint_.size : 1,
  };
  if (endpoint_.size == 1) return;
  Prepared& call = prepare(request);
  transport::OperationRecord& record = call.record;
  const auto raise_failure = [&] {
    transport::raise(seen_from(endpoint_.rank, *endpoint_.control->failure(), record.text, request.options.name));
  };
  if (endpoint_.control->failed()) raise_failure();
  record.number = ++operations_;
  endpoint_.control->began(record);
  try {
    execution_->begin(*call.program, {request.data, reduction, {record.number, record.signature}});
    drive(request, record);
  } catch (const std::exception& error) {
    // Whatever failed here, the others must not wait for this rank; the first report of the group stays.
    endpoint_.control->report(transport::failure_of(error, endpoint_.rank));
    // One poll of a failed group withdraws what was posted from the caller's memory; it always throws.
    try {
      static_cast<void>(endpoint_.links->poll(base::SteadyClock{}.now(), {}));
    } catch (const Error&) {  // the same failure
    }
    raise_failure();
  }
}

bool Group::Impl::Prepared::serves(const Request& other) const noexcept {
  return program != nullptr && request.collective == other.collective && request.data.count == other.data.count &&
         request.data.dtype == other.data.dtype && request.options == other.options;
}

Group::Impl::Prepared& Group::Impl::prepare(const Request& request) {
  if (prepared_.serves(request)) return prepared_;
  std::string text = text_of(request.collective, request.data, request.options);
  const std::uint64_t signature = XXH3_64bits(text.data(), text.size());
  const collective::Program& program = program_of(request, request.options.algorithm);
  prepared_ = {request, {0, signature, std::move(text)}, &program};
  return prepared_;
}

void Group::Impl::drive(const Request& request, const transport::OperationRecord& record) {
  const base::SteadyClock clock;
  const base::Time deadline = clock.now() + timeout_;
  execution_->advance();
  while (!execution_->done()) {
    const auto events = endpoint_.links->poll(deadline, request.patience);
    for (const transport::Event& event : events) execution_->take(event);
    if (events.empty() && clock.now() >= deadline) time_out(request, record);
  }
}

void Group::Impl::time_out(const Request& request, const transport::OperationRecord& record) {
  const std::string laggards = endpoint_.control->laggards(record.number);
  const int peer = execution_->awaited_peer();
  throw Timeout(fmt::format("{} did not finish within {:.1f} s; rank {} waits for rank {}{}{}", record.text,
                            base::seconds(timeout_), endpoint_.rank, peer, laggards.empty() ? "" : "; ", laggards),
                Where{endpoint_.rank, peer, record.text, request.options.name});
}

const collective::Program& Group::Impl::program_of(const Request& request, const std::string& algorithm) {
  PlanRequest wanted{.collective = request.collective,
                     .algorithm = algorithm,
                     .ranks = endpoint_.size,
                     .root = request.options.root,
                     .bytes = request.data.count * size_of(request.data.dtype)};
  const collective::Algorithm& chosen = collective::select(algorithm, wanted, LinkCost{});
  collective::Shape shape = collective::shape_of(wanted, chosen, LinkCost{});
  shape.rank = static_cast<std::uint32_t>(endpoint_.rank);
  const bool tiles_well =
      request.collective == Collective::allreduce && chosen.name == "ring" && endpoint_.kind == "shm";
  const std::uint32_t tiles = tiles_well ? collective::tiles_for(wanted.bytes, endpoint_.size) : 1;
  const auto [found, is_absent] =
      programs_.try_emplace(PlanKey{request.collective, chosen.name, request.options.root, shape.blocks, tiles});
  if (is_absent) found->second = collective::compile(collective::tiled(chosen.build(shape), tiles));
  return found->second;
}

}  // namespace syncopate
