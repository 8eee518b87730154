// The group: joining, and the order in which its operations are carried out.
#include "syncopate/group.hpp"

#include <algorithm>
#include <system_error>

#include "base/require.hpp"
#include "collective/group/impl.hpp"
#include "transport/connect/launch.hpp"

namespace syncopate {

namespace {

std::vector<int> host_numbers(const std::vector<std::string>& hosts) {
  std::vector<int> numbers;
  std::map<std::string_view, int> known;
  for (const std::string& host : hosts)
    numbers.push_back(known.try_emplace(host, static_cast<int>(known.size())).first->second);
  return numbers;
}

std::string text_of(const std::exception_ptr& thrown) try {
  std::rethrow_exception(thrown);
} catch (const std::exception& error) {
  return error.what();
} catch (...) {
  return "something that is no std::exception";
}

}  // namespace

Group::Group(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Group::~Group() = default;

std::unique_ptr<Group> Group::join(const GroupOptions& options) {
  const transport::connect::Launch launch =
      transport::connect::resolve_launch(options, base::Environment::of_process());
  auto impl = std::make_unique<Impl>(transport::join_processes(launch), launch.options);
  impl->learn_costs();
  return std::unique_ptr<Group>(new Group(std::move(impl)));
}

std::vector<std::unique_ptr<Group>> Group::threads(int size, const GroupOptions& options) {
  base::require(size >= 1 && size <= 1024, "a group of threads has {} ranks; allowed: 1 to 1024", size);
  std::optional<Cluster> cluster;
  if (!options.cluster.empty()) cluster = read_cluster(options.cluster);
  std::vector<std::unique_ptr<Group>> groups;
  for (transport::Endpoint& endpoint : transport::join_threads(size, options)) {
    auto impl = std::make_unique<Impl>(std::move(endpoint), options);
    if (cluster) impl->believe(*cluster);
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

std::shared_ptr<std::byte[]> Group::allocate_bytes(std::size_t elements, std::size_t width) try {
  constexpr std::size_t kMost = PTRDIFF_MAX;
  base::require(elements <= kMost / width, "memory for {} elements of {} bytes; allowed: {} bytes in all", elements,
                width, kMost);
  const std::size_t bytes = elements * width;
  return impl_->endpoint().links ? impl_->endpoint().links->allocate(bytes) : base::zeroed_pages(bytes);
} catch (const std::bad_alloc&) {
  throw SystemFailure(fmt::format("there is no memory for {} elements of {} bytes", elements, width),
                      {impl_->endpoint().rank, -1, "", ""});
}

void Group::abort(const std::string& reason, const std::string& tensor) noexcept { impl_->abort(reason, tensor); }

Group::Impl::Impl(transport::Endpoint endpoint, const GroupOptions& options)
    : endpoint_(std::move(endpoint)),
      options_(options),
      hosts_(host_numbers(endpoint_.hosts)),
      cost_(usual_cost(endpoint_.kind)),
      cost_in_group_memory_(usual_cost(collective::group::kind_in_memory(endpoint_), Memory::group)),
      caller_{options.spin.value_or(transport::connect::kSpin)} {
  base::require(options.ranks_per_host >= 0, "ranks_per_host is {}; allowed: 0 (as hosts tell) and more",
                options.ranks_per_host);
  place_.ranks = endpoint_.size;
  place_.ranks_per_host = static_cast<std::uint32_t>(options.ranks_per_host);
  const bool is_spread = std::ranges::any_of(hosts_, [](int host) { return host > 0; });
  if (is_spread && place_.ranks_per_host == 0) place_.hosts = {hosts_.begin(), hosts_.end()};
  scopes_ = collective::group::Scopes(endpoint_, place_);
  if (endpoint_.links) execution_.emplace(*endpoint_.links, scratch_);
}

Group::Impl::~Impl() {
  if (!worker_.joinable()) return;
  worker_.request_stop();
  pending_.change([](auto&) {});
}

void Group::Impl::abort(const std::string& reason, const std::string& tensor) noexcept try {
  if (!endpoint_.control) return;
  endpoint_.control->report({"RemoteFailure", fmt::format("rank {} gave up: {}", endpoint_.rank, reason),
                             Where{endpoint_.rank, endpoint_.rank, "", tensor}});
  endpoint_.links->wake();
} catch (...) {  // out of memory while telling others: they will see this process end
}

void Group::Impl::run(const Request& request) {
  collective::group::validate(request, scopes_);
  run_ticket(next_ticket_++, request);
}

Work Group::Impl::start(Request request) {
  collective::group::validate(request, scopes_);
  Pending pending{0, std::move(request), std::make_shared<Work::State>()};
  Work work(pending.work);
  pending_.change([&](std::deque<Pending>& queue) {
    // What may fail comes first: a ticket that nobody serves would stop all calls behind it.
    if (!worker_.joinable()) begin_worker();
    queue.push_back(std::move(pending));
    queue.back().ticket = next_ticket_++;
  });
  return work;
}

void Group::Impl::begin_worker() try {
  worker_ = std::jthread([this](const std::stop_token& stop) { this->work(stop); });
} catch (const std::system_error& error) {
  throw SystemFailure(fmt::format("rank {} got no thread for operations that are started: {}; raise the limit of "
                                  "threads, or call them without `start`",
                                  endpoint_.rank, error.what()),
                      {endpoint_.rank, -1, "", ""});
}

void Group::Impl::work(const std::stop_token& stop) {
  while (true) {
    std::optional<Pending> pending;
    pending_.wait_until(
        base::kNever, [&](const auto& queue) { return stop.stop_requested() || !queue.empty(); },
        [&](auto& queue) {
          if (queue.empty()) return;
          pending = std::move(queue.front());
          queue.pop_front();
        });
    if (!pending) return;
    work_off(*pending);
  }
}

void Group::Impl::work_off(const Pending& pending) {
  std::exception_ptr error;
  try {
    run_ticket(pending.ticket, pending.request);
  } catch (...) {
    error = std::current_exception();
  }
  const std::exception_ptr thrown = pending.work->finish(error);
  if (thrown) abort(fmt::format("a callback threw: {}", text_of(thrown)), pending.request.options.name);
}

void Group::Impl::run_ticket(std::uint64_t ticket, const Request& request) {
  const auto served = [&](const Turn&) { return serving_.load() == ticket; };
  if (!served({})) turn_.wait_until(base::kNever, served, [](Turn&) {});
  struct Next {
    Impl& group;
    ~Next() {
      group.turn_.change([this](Turn&) { ++group.serving_; });
    }
  } next{*this};
  run_request(request);
}

}  // namespace syncopate
