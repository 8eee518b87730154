// Messages between workers and servers as bytes.
#include "server/message_bytes.hpp"

#include "server/message_fields.hpp"

namespace syncopate::server {

namespace {
constexpr std::uint64_t kOfWorker = 1, kOfServer = 101;  // the first kinds
}  // namespace

MessageBytes bytes_of(const WorkerMessage& message) { return written(kOfWorker, message); }
MessageBytes bytes_of(const ServerMessage& message) { return written(kOfServer, message); }

WorkerMessage worker_message_of(Payload bytes) { return read_as<WorkerMessage>(kOfWorker, std::move(bytes), "worker"); }
ServerMessage server_message_of(Payload bytes) { return read_as<ServerMessage>(kOfServer, std::move(bytes), "server"); }

}  // namespace syncopate::server
