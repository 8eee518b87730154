// The group: joining, and the order in which its operations run.
#include "syncopate/group.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/require.hpp"
#include "collective/group/impl.hpp"
#include "transport/connect/launch.hpp"
#include "transport/transport.hpp"

namespace syncopate {

namespace {

std::vector<int> host_numbers(const std::vector<std::string>& hosts) {
  std::vector<int> numbers;
  std::map<std::string_view, int> known;
  for (const std::string& host : hosts)
    numbers.push_back(known.try_emplace(host, static_cast<int>(known.size())).first->second);
  return numbers;
}

}  // namespace

Group::Group(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Group::~Group() {
  // A forked child must not touch anything here: locks may be held by, and waits may depend on, threads that it does
  // not have.
  if (impl_->process().is_inherited()) {
    static_cast<void>(impl_.release());
    return;
  }
  // Otherwise the other ranks would take it for a rank that left cleanly, and could not name the cause.
  if (impl_->unwinds()) abort(impl_->reason_to_unwind());
}

std::unique_ptr<Group> Group::join(const GroupOptions& options) {
  const transport::connect::Launch launch =
      transport::connect::resolve_launch(options, base::Environment::of_process());
  auto impl = std::make_unique<Impl>(transport::join_processes(launch), launch.options);
  impl->learn_costs();
  return std::unique_ptr<Group>(new Group(std::move(impl)));
}

std::vector<std::unique_ptr<Group>> Group::threads(int size, const GroupOptions& given) {
  base::require(size >= 1 && size <= 1024, "a group of threads has {} ranks; allowed: 1 to 1024", size);
  GroupOptions options = given;
  options.log = with_environment_level(std::move(options.log));
  std::optional<Cluster> cluster;
  if (!options.cluster.empty()) cluster = read_cluster(options.cluster);
  std::vector<std::unique_ptr<Group>> groups;
  for (transport::Endpoint& endpoint : transport::join_threads(size, options)) {
    auto impl = std::make_unique<Impl>(std::move(endpoint), options);
    if (cluster) impl->use_costs_of(*cluster);
    groups.push_back(std::unique_ptr<Group>(new Group(std::move(impl))));
  }
  return groups;
}

int Group::rank() const noexcept { return impl_->endpoint().rank; }
int Group::size() const noexcept { return impl_->endpoint().size; }
const std::string& Group::transport() const noexcept { return impl_->endpoint().kind; }

const std::vector<int>& Group::hosts() const noexcept { return impl_->hosts(); }
const std::vector<int>& Group::scope_ranks(Scope scope) const noexcept { return impl_->scopes().of(scope).ranks; }
int Group::scope_rank(Scope scope) const noexcept { return impl_->scopes().of(scope).rank; }

Traffic Group::traffic() const noexcept {
  if (!impl_->endpoint().links) return {};
  const auto [sent, received] = impl_->endpoint().links->traffic();
  return {sent, received};
}

void Group::set_timeout(std::chrono::milliseconds timeout) {
  base::require(timeout.count() > 0, "timeout is {} ms; allowed: above 0", timeout.count());
  impl_->set_timeout(timeout);
}

std::shared_ptr<std::byte[]> Group::allocate_bytes(std::size_t elements, std::size_t width) try {
  constexpr std::size_t kMost = PTRDIFF_MAX;
  impl_->process().require("a group");
  base::require(elements <= kMost / width, "memory for {} elements of {} bytes; allowed: {} bytes in total", elements,
                width, kMost);
  const std::size_t bytes = elements * width;
  const auto& links = impl_->endpoint().links;
  transport::Lending* const lending = links ? links->lending() : nullptr;
  return lending != nullptr ? lending->allocate(bytes) : base::zeroed_pages(bytes);
} catch (const std::bad_alloc&) {
  throw SystemFailure(fmt::format("there is not enough memory for {} elements of {} bytes", elements, width),
                      {impl_->endpoint().rank, -1, "", ""});
}

void Group::abort(const std::string& reason, const std::string& tensor) noexcept { impl_->abort(reason, tensor); }

Group::Impl::Impl(transport::Endpoint endpoint, const GroupOptions& options)
    : endpoint_(std::move(endpoint)),
      options_(options),
      timeout_(std::min(options.timeout.value_or(transport::connect::kTimeout), transport::connect::kLongestBound)),
      hosts_(host_numbers(endpoint_.hosts)),
      cost_(usual_cost(endpoint_.kind)),
      cost_in_group_memory_(usual_cost(collective::group::kind_in_memory(endpoint_), Memory::group)),
      caller_{options.spin.value_or(transport::connect::kSpin)} {
  base::require(options.ranks_per_host >= 0, "ranks_per_host is {}; allowed: 0 (detect hosts) or more",
                options.ranks_per_host);
  place_.ranks = endpoint_.size;
  place_.ranks_per_host = static_cast<std::uint32_t>(options.ranks_per_host);
  const bool is_spread = std::ranges::any_of(hosts_, [](int host) { return host > 0; });
  if (is_spread && place_.ranks_per_host == 0) place_.hosts = {hosts_.begin(), hosts_.end()};
  scopes_ = collective::group::Scopes(endpoint_, place_);
  if (!endpoint_.links) return;
  execution_.emplace(*endpoint_.links, scratch_);
  queues_.emplace(collective::group::MessageQueues::Options{endpoint_.rank, &timeout_, endpoint_.clock},
                  *endpoint_.links, *endpoint_.control);
}

Group::Impl::~Impl() {
  if (!worker_.joinable()) return;
  worker_.request_stop();
  pending_.change([](Queue&) {});
}

void Group::Impl::abort(const std::string& reason, const std::string& tensor) noexcept try {
  if (!endpoint_.control || process_.is_inherited()) return;
  endpoint_.control->report({ErrorKind::remote_failure, fmt::format("rank {} gave up: {}", endpoint_.rank, reason),
                             Where{endpoint_.rank, endpoint_.rank, "", tensor}});
  if (endpoint_.links) endpoint_.links->wake();
} catch (...) {  // out of memory during the report: the others will see this process end
}

std::string Group::Impl::reason_to_unwind() const {
  const std::string refused = refusal_.with([&](const Refusal& latest) {
    return latest.operation > 0 && latest.operation == operations_ ? ": " + latest.reason : std::string();
  });
  return "its program threw an exception" + refused;
}

base::Time Group::Impl::next_look(base::Time deadline) const {
  constexpr base::Duration kBetweenLooks = std::chrono::milliseconds(100);
  return options_.while_waiting ? std::min(deadline, endpoint_.clock->now() + kBetweenLooks) : deadline;
}

void Group::Impl::poll_callback() const {
  if (options_.while_waiting) options_.while_waiting();
}

Group::Impl::Turn::Turn(Impl& group, std::uint64_t ticket) : group_(group) {
  for (std::uint64_t now = group.serving_; now != ticket; now = group.serving_) group.serving_.wait(now);
}

Group::Impl::Turn::~Turn() {
  ++group_.serving_;
  group_.serving_.notify_all();
}

void Group::Impl::refuse(const std::string& reason) {
  process_.require("a group");
  {
    const Turn turn(*this, next_ticket_++);
    count_refused(reason);
  }
  throw Misuse(reason, Where{endpoint_.rank, -1, "", ""});
}

void Group::Impl::run(const Request& request) {
  process_.require("a group");
  try {
    collective::group::validate(request, scopes_);
  } catch (const Misuse& misuse) {
    if (request.is_message()) {
      refuse_message(request, misuse.what());
    } else {
      const Turn turn(*this, next_ticket_++);
      count_refused(misuse.what());
    }
    throw;
  }
  // A message queued after started ones could deadlock, because its peer may send only later; so it joins their batch.
  if (request.is_message() && has_started_messages()) return start(request).wait();
  const Turn turn(*this, next_ticket_++);
  run_request(request);
}

}  // namespace syncopate
