// Stranger: a caller that sends arbitrary metadata and bytes over a plain gRPC call.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <map>
#include <optional>
#include <string>

#include "server/rpc/proof.hpp"
#include "server/rpc/setting.hpp"
#include "service/ends.hpp"

namespace syncopate::server::rpc::test {

using Metadata = std::multimap<std::string, std::string>;

inline std::string text_in(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : std::string(found->second.data(), found->second.size());
}

inline HelloBytes hello_in(const std::string& text) {
  HelloBytes bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size()));
  return bytes;
}

inline grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

/// One call. Each function waits for its end, so that the stranger's state is certain.
class Stranger final {
 public:
  explicit Stranger(const std::string& address, const Metadata& metadata = {}, const char* method = kMethod)
      : channel_(
            grpc::CreateCustomChannel(parse_address(address).target, grpc::InsecureChannelCredentials(), separate())),
        stub_(channel_) {
    for (const auto& [key, value] : metadata) context_.AddMetadata(key, value);
    context_.set_deadline(std::chrono::system_clock::now() + 60s);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    await();
  }
  ~Stranger() {
    context_.TryCancel();
    if (!status_) std::ignore = finish();
    queue_.Shutdown();
    void* tag = nullptr;
    bool is_right = false;
    while (queue_.Next(&tag, &is_right)) {
    }
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// The listener's proof, if it accepted the stranger.
  [[nodiscard]] std::optional<std::string> proof() {
    call_->ReadInitialMetadata(this);
    if (!await() || context_.GetServerInitialMetadata().count(kProofKey) == 0) return std::nullopt;
    return text_in(context_.GetServerInitialMetadata(), kProofKey);
  }
  /// False once the call has ended.
  bool write(const std::string& bytes) {
    call_->Write(buffer_of(bytes), this);
    return await();
  }
  /// One message that repeats the same bytes `count` times, which are in memory once.
  bool write_repeated(const std::string& bytes, std::size_t count) {
    const std::vector<grpc::Slice> slices(count, grpc::Slice(bytes));
    call_->Write(grpc::ByteBuffer(slices.data(), count), this);
    return await();
  }
  /// The next message; empty at the end.
  [[nodiscard]] std::optional<std::string> read() {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!await()) return std::nullopt;
    grpc::Slice slice;
    std::ignore = buffer.DumpToSingleSlice(&slice);
    return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  void end_writes() {
    call_->WritesDone(this);
    await();
  }
  [[nodiscard]] grpc::StatusCode finish() {
    grpc::Status status;
    call_->Finish(&status, this);
    await();
    status_ = status;
    return status.error_code();
  }
  /// Call it after `finish`.
  [[nodiscard]] std::string challenge() const { return text_in(context_.GetServerTrailingMetadata(), kChallengeKey); }

 private:
  static grpc::ChannelArguments separate() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }
  bool await() {
    void* tag = nullptr;
    bool is_right = false;
    EXPECT_TRUE(queue_.Next(&tag, &is_right));
    return is_right;
  }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  std::optional<grpc::Status> status_;
};

inline std::string text_of(const HelloBytes& bytes) { return text_of(base::ConstBytes(bytes)); }
inline std::string text_of(const base::crypto::Digest& bytes) { return text_of(base::ConstBytes(bytes)); }

/// The metadata of a caller of that name: with a challenge by `address` and the proof that `secret` makes.
inline Metadata proven_metadata(const std::string& address, const EndOptions& options) {
  const HelloBytes hello =
      say_hello({.version = {}, .silence = options.silence, .identity = options.identity, .job = options.job});
  Stranger first(address, {{kHelloKey, text_of(hello)}});
  EXPECT_EQ(first.finish(), grpc::StatusCode::UNAUTHENTICATED);
  const std::string challenge = first.challenge();
  return {{kHelloKey, text_of(hello)},
          {kChallengeKey, challenge},
          {kProofKey, text_of(prove(options.secret, Role::caller, hello, hello_in(challenge)))}};
}

}  // namespace syncopate::server::rpc::test
