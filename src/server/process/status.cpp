// Status: requests a server's status, and its bytes.
#include "server/process/status.hpp"

#include <fmt/format.h>
#include <time.h>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/wire.hpp"
#include "server/message_bytes.hpp"
#include "server/process/access.hpp"
#include "server/streams/streams.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

std::string bytes_of(const ServerStatus& status) {
  base::WireWriter writer;
  for (const std::uint64_t number :
       {std::uint64_t{status.workers}, std::uint64_t{status.connected}, std::uint64_t{status.finished},
        status.kept_bytes, status.replica_bytes, status.received_bytes, status.sent_bytes,
        std::uint64_t{status.keeps_replica}, std::uint64_t{status.serves},
        static_cast<std::uint64_t>(status.processor_seconds * 1e6)})
    writer.number(number);
  return writer.take();
}

ServerStatus status_from(std::string_view bytes) {
  base::WireReader reader(bytes);
  ServerStatus status;
  for (std::size_t* number : {&status.workers, &status.connected, &status.finished})
    *number = reader.number<std::uint64_t>();
  for (std::uint64_t* number : {&status.kept_bytes, &status.replica_bytes, &status.received_bytes, &status.sent_bytes})
    *number = reader.number<std::uint64_t>();
  status.keeps_replica = reader.number<std::uint64_t>() != 0;
  status.serves = reader.number<std::uint64_t>() != 0;
  status.processor_seconds = static_cast<double>(reader.number<std::uint64_t>()) * 1e-6;
  reader.end();
  return status;
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

namespace {

ServerStatus requested_status(const std::string& address, const JobAccess& access) {
  base::Guarded<std::optional<ServerStatus>> answer;
  base::Guarded<bool> has_ended{false};
  streams::Streams streams(end_options(access, {.role = streams::Identity::Role::observer}, {}));
  const auto stream =
      streams.dial({.address = address},
                   {.received =
                        [&](Payload bytes) {
                          const ServerMessage message = server_message_of(std::move(bytes));
                          if (const auto* const report = std::get_if<StatusReport>(&message))
                            answer.with([&](auto& status) { status = status_from(text_of(report->status)); });
                        },
                    .ended = [&](const streams::Ending&) { has_ended.change([](bool& ended) { ended = true; }); }});
  const base::Time deadline = base::SteadyClock().now() + std::chrono::seconds(10);
  has_ended.wait_until(
      deadline, [](bool ended) { return ended; }, [](bool) {});
  const auto status = answer.with([](const auto& told) { return told; });
  if (!status) throw Timeout(fmt::format("no status reply from the server at {}", address));
  return *status;
}

}  // namespace
}  // namespace syncopate::server

syncopate::ServerStatus syncopate::status_of(const std::string& address, const JobAccess& access) {
  return server::requested_status(address, access);
}
