// The checkpoint file: "SYNCCKP1", u64 header bytes, JSON header, f32 tensors, XXH3-64 of all before; little-endian.
#include "record/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <span>

#include "data/files.hpp"
#include "require.hpp"

namespace syncopate::train {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kMagic = "SYNCCKP1";
constexpr std::size_t kFixed = 8 + 8 + 8;  ///< magic, header length, hash

std::string header_of(const Checkpoint& checkpoint) {
  const RunState& s = checkpoint.state;
  return Json{{"model", s.model},
              {"layers", s.sizes.layers},
              {"width", s.sizes.width},
              {"heads", s.sizes.heads},
              {"context", s.sizes.context},
              {"seed", s.seed},
              {"training_samples", s.training_samples},
              {"step", s.progress.step},
              {"epoch", s.progress.epoch},
              {"sample", s.progress.sample},
              {"parameters", checkpoint.parameters.numel()},
              {"buffers", checkpoint.buffers.numel()},
              {"layout", checkpoint.layout}}
      .dump();
}

RunState state_of(const Json& header) {
  RunState s;
  s.model = header.at("model");
  s.sizes = {header.at("layers"), header.at("width"), header.at("heads"), header.at("context")};
  s.seed = header.at("seed");
  s.training_samples = header.at("training_samples");
  s.progress = {header.at("step"), header.at("epoch"), header.at("sample")};
  return s;
}

template <class T>
void append(std::string& bytes, const T* data, std::size_t count) {
  bytes.append(reinterpret_cast<const char*>(data), count * sizeof(T));
}

std::uint64_t word_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// The checkpoint whose tensors are `numbers`: parameters, velocity, buffers.
Checkpoint checkpoint_of(const Json& header, std::span<const std::uint8_t> numbers) {
  const std::uint64_t parameters = header.at("parameters"), buffers = header.at("buffers");
  const std::uint64_t held = numbers.size() / 4;
  require_intact(parameters <= held && buffers <= held && 2 * parameters + buffers == held && numbers.size() % 4 == 0,
                 "it holds {} numbers instead of 2 x {} + {}", held, parameters, buffers);
  const auto take = [&](std::uint64_t count) {
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(count)}, at::kFloat);
    std::memcpy(tensor.data_ptr<float>(), numbers.data(), 4 * count);
    numbers = numbers.subspan(4 * count);
    return tensor;
  };
  Checkpoint result;
  result.state = state_of(header);
  result.layout = header.at("layout").get<std::vector<std::string>>();
  result.parameters = take(parameters);
  result.velocity = take(parameters);
  result.buffers = take(buffers);
  return result;
}

[[noreturn]] void fail(const char* what, const std::string& file) {
  throw SystemFailure(fmt::format("cannot {} {}: {}", what, file, std::strerror(errno)));
}

/// The bytes of a file to be, beside it, under a name that no other job has. Removed unless `replace` was reached.
class Draft final {
 public:
  explicit Draft(const std::string& file)
      : file_(file),
        name_(fmt::format("{}.{:08x}.writing", file, std::random_device{}())),
        descriptor_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail("write", name_);
  }
  ~Draft() {
    ::close(descriptor_);
    if (!replaced_) ::unlink(name_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write", name_);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(descriptor_) != 0) fail("flush", name_);
  }
  void replace() {
    if (::rename(name_.c_str(), file_.c_str()) != 0) fail("replace", file_);
    replaced_ = true;
  }

 private:
  const std::string file_, name_;
  const int descriptor_;
  bool replaced_ = false;
};

/// Makes the names in a folder durable.
void flush_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", folder);
  const bool flushed = ::fsync(descriptor) == 0;
  ::close(descriptor);
  if (!flushed) fail("flush", folder);
}

}  // namespace

std::vector<std::string> layout_of(const Network& network) {
  std::vector<std::string> layout;
  for (const auto* tensors : {&network.parameters, &network.buffers})
    for (const auto& [name, value] : *tensors) layout.push_back(fmt::format("{}:{}", name, value.numel()));
  return layout;
}

void require_writable(const std::string& file) {
  std::error_code unknown;
  const auto kind = std::filesystem::status(file, unknown).type();
  require(kind != std::filesystem::file_type::directory, "--checkpoint {} is a folder: give the name of a file", file);
  require(kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found,
          "--checkpoint {} is not a regular file: give another name", file);
  const Draft probe(file);
}

void save_checkpoint(const std::string& file, const Checkpoint& checkpoint) {
  const std::string header = header_of(checkpoint);
  const std::uint64_t header_bytes = header.size();
  std::string bytes(kMagic);
  append(bytes, &header_bytes, 1);
  bytes += header;
  for (const at::Tensor& tensor : {checkpoint.parameters, checkpoint.velocity, checkpoint.buffers})
    append(bytes, tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()));
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  append(bytes, &hash, 1);

  Draft draft(file);
  draft.write(bytes);
  draft.replace();
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  flush_folder(folder.empty() ? "." : folder.string());
}

Checkpoint load_checkpoint(const std::string& file) {
  std::vector<std::uint8_t> bytes;
  append_file(file, bytes);
  require_intact(bytes.size() >= kFixed && std::memcmp(bytes.data(), kMagic.data(), 8) == 0,
                 "{} is no checkpoint of Syncopate", file);
  const std::size_t end = bytes.size() - 8;
  require_intact(XXH3_64bits(bytes.data(), end) == word_at(bytes, end),
                 "{} is damaged: its bytes do not match their hash", file);
  const std::uint64_t header_bytes = word_at(bytes, 8);
  require_intact(header_bytes <= end - 16, "{} is damaged: its header is longer than the file", file);
  try {
    const std::span<const std::uint8_t> all(bytes);
    return checkpoint_of(
        Json::parse(bytes.begin() + 16, bytes.begin() + 16 + static_cast<std::ptrdiff_t>(header_bytes)),
        all.subspan(16 + header_bytes, end - 16 - header_bytes));
  } catch (const nlohmann::json::exception& error) {
    throw Corrupt(fmt::format("{} is damaged: {}", file, error.what()));
  } catch (const Corrupt& error) {
    throw Corrupt(fmt::format("{} is damaged: {}", file, error.what()));
  }
}

void require_fits(const Checkpoint& checkpoint, const RunState& run, const Network& network) {
  require(checkpoint.state.model == run.model, "the checkpoint is of model {}, the run trains {}",
          checkpoint.state.model, run.model);
  const std::vector<std::string> layout = layout_of(network);
  for (std::size_t i = 0; i < std::max(layout.size(), checkpoint.layout.size()); ++i) {
    const std::string ours = i < layout.size() ? layout[i] : "nothing";
    const std::string theirs = i < checkpoint.layout.size() ? checkpoint.layout[i] : "nothing";
    require(ours == theirs, "the checkpoint's tensor {} is {}, the run's is {}: give the sizes it was trained with", i,
            theirs, ours);
  }
  require(checkpoint.state.training_samples == run.training_samples,
          "the checkpoint was trained on {} samples, --data holds {}", checkpoint.state.training_samples,
          run.training_samples);
}

}  // namespace syncopate::train
