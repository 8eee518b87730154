// Pictures for Python: JPEG and PNG files become arrays of float32, without the GIL and on any number of threads.
#include <nanobind/stl/array.h>

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "array.hpp"
#include "bind.hpp"
#include "syncopate/error.hpp"
#include "syncopate/pipeline.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

constexpr const char* kDoc =
    "Decodes JPEG and PNG files to arrays of float32 [3, size, size], as `syncopate train` does. augment: a random "
    "crop, and with mirror a mirror image of every second picture; otherwise the middle. Colours from 0 to 1 become "
    "(colour - mean) / std, for red, green and blue. Used by any number of threads.";
constexpr const char* kDecodeDoc =
    "The picture in these bytes. Random changes depend on seed, epoch and sample only. Raises Corrupt, and Misuse if "
    "this build lacks the library that reads the file.";
constexpr const char* kDecodedDoc =
    "The same picture before any random change, as bytes from which `decode` gives the same results in less time; the "
    "file itself if it has no such form: a JPEG whose shorter side is twice `size` or more. Raises as decode.";

using Colours = std::array<float, 3>;

class Pictures final {
 public:
  Pictures(const input::PictureTransform& look, const input::Normalisation& normalisation)
      : look_(look), normalisation_(normalisation) {
    if (look.side < 1) throw Misuse("pictures of " + std::to_string(look.side) + " pixels; allowed: at least 1");
    put_back(input::picture_decoder(normalisation_));
  }

  [[nodiscard]] OwnArray decode(const nb::bytes& file, std::uint64_t seed, std::uint64_t epoch, std::uint32_t sample) {
    const auto side = static_cast<std::size_t>(look_.side);
    auto pixels = std::make_unique_for_overwrite<float[]>(3 * side * side);  // NOLINT: the length is not a constant
    {
      const nb::gil_scoped_release release;
      auto decoder = taken();
      input::PictureTransform look = look_;
      look.seed = seed, look.epoch = epoch, look.sample = sample;
      decoder->decode({static_cast<const std::byte*>(file.data()), file.size()}, look, pixels.get());
      put_back(std::move(decoder));
    }
    float* const data = pixels.get();
    return array_over(data, {{3, side, side}}, owner_of(std::move(pixels)));
  }

  [[nodiscard]] nb::bytes decoded(const nb::bytes& file) {
    std::vector<std::byte> form;
    {
      const nb::gil_scoped_release release;
      auto decoder = taken();
      form = decoder->whole({static_cast<const std::byte*>(file.data()), file.size()}, look_.side);
      put_back(std::move(decoder));
    }
    return form.empty() ? file : nb::bytes(form.data(), form.size());
  }

 private:
  /// A decoder serves one thread at a time.
  std::unique_ptr<input::Decoder> taken() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return input::picture_decoder(normalisation_);
    auto decoder = std::move(idle_.back());
    idle_.pop_back();
    return decoder;
  }
  void put_back(std::unique_ptr<input::Decoder> decoder) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(decoder));
  }

  const input::PictureTransform look_;
  const input::Normalisation normalisation_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<input::Decoder>> idle_;  ///< guarded by mutex_
};

}  // namespace

void bind_picture(nb::module_& module) {
  const input::Normalisation usual;
  nb::class_<Pictures>(module, "PictureDecoder", kDoc)
      .def(
          "__init__",
          [](Pictures* self, int size, bool augment, bool mirror, const Colours& mean, const Colours& deviation) {
            new (self) Pictures({.side = size, .augment = augment, .mirror = mirror}, {mean, deviation});
          },
          "size"_a, nb::kw_only(), "augment"_a = false, "mirror"_a = true, "mean"_a = usual.mean,
          "std"_a = usual.deviation)
      .def("decode", &Pictures::decode, "file"_a, nb::kw_only(), "seed"_a = 0, "epoch"_a = 0, "sample"_a = 0,
           kDecodeDoc)
      .def("decoded", &Pictures::decoded, "file"_a, kDecodedDoc);
}

}  // namespace syncopate::bind
