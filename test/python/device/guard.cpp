// The interface by which torch uses a kind of device: streams, events, memory and random numbers.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstring>

#include "generator.hpp"
#include "memory.hpp"
#include "queue.hpp"

namespace device {
namespace {

c10::Device numbered(int index) { return {kType, static_cast<c10::DeviceIndex>(index)}; }

Queue& queue_of(const c10::Stream& stream) { return queue(stream.device_index(), stream.id()); }

// An event that torch holds as a pointer; tasks of streams hold it too.
std::shared_ptr<Mark>& held(void* event) { return *static_cast<std::shared_ptr<Mark>*>(event); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kType;
  Guard() = default;
  explicit Guard(c10::DeviceType /*type*/) {}
  c10::DeviceType type() const override { return kType; }

  static int index(c10::Device device) { return device.index() < 0 ? current_device : device.index(); }
  c10::Device exchangeDevice(c10::Device device) const override {
    return numbered(std::exchange(current_device, index(device)));
  }
  c10::Device getDevice() const override { return numbered(current_device); }
  void setDevice(c10::Device device) const override { exchangeDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { exchangeDevice(device); }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  static c10::Stream stream(int index, int64_t id) { return c10::Stream(c10::Stream::UNSAFE, numbered(index), id); }
  c10::Stream getStream(c10::Device device) const override {
    return stream(index(device), current_stream[index(device)]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(index(device), 0); }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    static std::atomic<int64_t> next{0};
    return stream(index(device), 1 + next++ % kStreams);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream to) const override {
    return stream(to.device_index(), std::exchange(current_stream[to.device_index()], to.id()));
  }
  bool queryStream(const c10::Stream& stream) const override { return queue_of(stream).idle(); }
  void synchronizeStream(const c10::Stream& stream) const override {
    ++settings.host_waits;
    queue_of(stream).drain();
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    for (int64_t id = 0; id <= kStreams; ++id) queue(device < 0 ? current_device : device, id).drain();
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex index, c10::EventFlag /*flag*/) const override {
    TORCH_CHECK(index < 0 || index == stream.device_index(), "an event of emu:", static_cast<int>(index),
                " cannot be recorded in a stream of emu:", static_cast<int>(stream.device_index()));
    if (*event == nullptr) *event = new std::shared_ptr<Mark>(std::make_shared<Mark>());
    held(*event)->record(queue_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    queue_of(stream).put([mark = held(event), version = held(event)->latest()] { mark->wait(version); });
  }
  bool queryEvent(void* event) const override { return event == nullptr || held(event)->is_reached(); }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    ++settings.host_waits;
    held(event)->wait(held(event)->latest());
  }
  void destroyEvent(void* event, c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<std::shared_ptr<Mark>*>(event);
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex /*index*/) const override {
    return std::chrono::duration<double, std::milli>(held(end)->time() - held(begin)->time()).count();
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    also_used_by(data.get(), stream.id());
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { current_device = device; }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return Guard().exchangeDevice(numbered(device)).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
  at::Device getDeviceFromPtr(void* /*address*/) const override { return numbered(current_device); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return generator(device); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto fresh = device_memory().allocate(bytes);
    const size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) device_memory().copy_data(fresh.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(fresh));
    storage.set_nbytes(bytes);
  }
};

const bool is_registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

}  // namespace

// The processor's generator, so that a device draws the numbers that the processor draws from the same seed.
at::Generator& generator(int device) {
  static auto& all =
      *new std::array<at::Generator, kDevices>{at::detail::createCPUGenerator(), at::detail::createCPUGenerator()};
  return all[device < 0 ? current_device : device];
}

}  // namespace device
