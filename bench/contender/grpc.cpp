// Contender gRPC: a bare bidirectional stream for each worker and server, of raw buffers of 1 MiB and nothing else.
//
// A worker streams its share to each server and gets as many bytes back when the last one has come. Both ends copy what
// comes out of gRPC's slices, as a program has to; neither computes. Each process is a worker, and a child of it each
// server of its place. Arguments, key=value: bytes (of the vector), servers, untimed, timed; store (an empty folder,
// for unix sockets) or hosts (numeric addresses by worker, separated by commas).
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "push_pull.hpp"

namespace {

using Bytes = std::span<std::byte>;
constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr int kFirstPort = 29'800;

grpc::ByteBuffer chunk_at(Bytes memory, std::size_t at) {
  const grpc::Slice slice(memory.data() + at, std::min(kChunk, memory.size() - at), grpc::Slice::STATIC_SLICE);
  return {&slice, 1};
}

/// Copies a message to `at`; returns where it ends.
std::size_t take(const grpc::ByteBuffer& message, Bytes memory, std::size_t at) {
  std::vector<grpc::Slice> slices;
  if (message.Length() > memory.size() - at || !message.Dump(&slices).ok()) throw std::runtime_error("too many bytes");
  for (const grpc::Slice& slice : slices) {
    std::memcpy(memory.data() + at, slice.begin(), slice.size());
    at += slice.size();
  }
  return at;
}

/// A server's end: reads a share, returns it, and so on.
class ShareReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit ShareReactor(std::size_t bytes) : memory_(bytes) { StartRead(&message_); }
  void OnReadDone(bool is_right) override {
    if (!is_right) return Finish(grpc::Status::OK);
    at_ = take(message_, memory_, at_);
    if (at_ < memory_.size()) return StartRead(&message_);
    at_ = 0;
    write();
  }
  void OnWriteDone(bool is_right) override {
    if (!is_right) return Finish(grpc::Status::OK);
    at_ = std::min(at_ + kChunk, memory_.size());
    if (at_ < memory_.size()) return write();
    at_ = 0;
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  void write() {
    message_ = chunk_at(memory_, at_);
    StartWrite(&message_);
  }
  std::vector<std::byte> memory_;
  std::size_t at_ = 0;
  grpc::ByteBuffer message_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(std::size_t bytes) : bytes_(bytes) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new ShareReactor(bytes_);
  }

 private:
  const std::size_t bytes_;
};

/// Serves in a child process, which ends with its worker.
[[noreturn]] void serve(const std::string& address, std::size_t bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Service service(bytes);
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) _exit(1);
  for (;;) pause();
}

/// A worker's end.
class Call final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Call(const std::string& address, Bytes to, Bytes from) : to_(to), from_(from) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel);
    context_.set_wait_for_ready(true);
    stub_->PrepareBidiStreamingCall(&context_, "/contender/exchange", {}, this);
    AddHold();
    StartCall();
  }
  ~Call() override {
    context_.TryCancel();
    RemoveHold();
    wait_for([this] { return is_over_; });
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void begin() {
    sent_ = got_ = 0;
    StartRead(&incoming_);
    write();
  }
  void wait() {
    wait_for([this] { return is_over_ || (sent_ >= to_.size() && got_ == from_.size()); });
    if (is_over_) throw std::runtime_error("the stream to a server broke");
  }

  void OnReadDone(bool is_right) override {
    if (!is_right) return;
    const std::size_t got = take(incoming_, from_, got_);
    if (set(got_, got) < from_.size()) StartRead(&incoming_);
  }
  void OnWriteDone(bool is_right) override {
    if (is_right && set(sent_, sent_ + kChunk) < to_.size()) write();
  }
  void OnDone(const grpc::Status&) override { set(is_over_, true); }

 private:
  void write() {
    outgoing_ = chunk_at(to_, sent_);
    StartWrite(&outgoing_);
  }
  template <class T>
  T set(T& field, T value) {
    const std::lock_guard lock(mutex_);
    field = value;
    changed_.notify_all();
    return value;
  }
  template <class F>
  void wait_for(F&& is_so) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, is_so);
  }

  const Bytes to_, from_;
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer outgoing_, incoming_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t sent_ = 0, got_ = 0;
  bool is_over_ = false;
};

/// The place that the arguments give.
struct ProcessPlace {
  std::map<std::string, std::string> given;
  int worker = 0, workers = 1, servers = 1;

  [[nodiscard]] std::string address(int server) const {
    if (!given.contains("hosts")) return "unix:" + given.at("store") + "/" + std::to_string(server);
    return contender::split(given.at("hosts"))[static_cast<std::size_t>(server % workers)] + ":" +
           std::to_string(kFirstPort + server);
  }
};

int number_in(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? throw std::runtime_error(std::string(name) + " is not set") : std::atoi(text);
}

/// Children that serve, begun before this process has threads. Their processor time.
std::vector<clockid_t> start_servers(const ProcessPlace& place, std::size_t elements) {
  std::vector<clockid_t> clocks;
  for (int server = place.worker; server < place.servers; server += place.workers) {
    const auto share =
        contender::even_part(elements, static_cast<std::size_t>(place.servers), static_cast<std::size_t>(server));
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no process for a server");
    if (child == 0) serve(place.address(server), (share.end - share.begin) * sizeof(float));
    clockid_t clock{};
    if (clock_getcpuclockid(child, &clock) != 0) throw std::runtime_error("no clock of a server");
    clocks.push_back(clock);
  }
  return clocks;
}

double seconds_of(const std::vector<clockid_t>& clocks) {
  double seconds = 0;
  for (const clockid_t clock : clocks) {
    timespec time{};
    clock_gettime(clock, &time);
    seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  return seconds;
}

void run(const ProcessPlace& place) {
  const std::size_t bytes = std::stoull(place.given.at("bytes")), elements = bytes / sizeof(float);
  const std::vector<clockid_t> clocks = start_servers(place, elements);
  const auto group = syncopate::Group::join();
  const contender::Updates updates(place.workers);
  std::vector<float> to(elements), from(elements);
  std::vector<std::unique_ptr<Call>> calls;
  for (int server = 0; server < place.servers; ++server) {
    const auto share =
        contender::even_part(elements, static_cast<std::size_t>(place.servers), static_cast<std::size_t>(server));
    const auto part = [&](std::vector<float>& of) {
      return std::as_writable_bytes(std::span(of).subspan(share.begin, share.end - share.begin));
    };
    calls.push_back(std::make_unique<Call>(place.address(server), part(to), part(from)));
  }
  const std::string row =
      contender::measure(*group, {.contender = "grpc",
                                  .bytes = bytes,
                                  .untimed = std::stoi(place.given.at("untimed")),
                                  .timed = std::stoi(place.given.at("timed")),
                                  .prepare = [&](int round) { updates.write(to, place.worker, round); },
                                  .run =
                                      [&] {
                                        for (const auto& call : calls) call->begin();
                                        for (const auto& call : calls) call->wait();
                                      },
                                  .is_right = [&](int round) { return updates.are_updates(from, place.worker, round); },
                                  .of_servers = [&] { return seconds_of(clocks); }});
  contender::Job job;
  job.rank = place.worker;
  contender::print_on_rank_zero(job, row);
  syncopate::barrier(*group);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    ProcessPlace place{.given = contender::arguments(argc - 1, argv + 1)};
    place.worker = number_in("SYNCOPATE_RANK");
    place.workers = number_in("SYNCOPATE_SIZE");
    place.servers = std::stoi(place.given.at("servers"));
    run(place);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "contender gRPC: %s\n", error.what());
    return 1;
  }
}
