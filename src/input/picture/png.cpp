// PNG files by libpng's simplified interface, which checks bounds and returns errors as text.
#include "input/picture/photograph.hpp"
#include "syncopate/error.hpp"

#ifdef SYNCOPATE_HAVE_PNG
#include <png.h>

namespace syncopate::input {
namespace {

class Png final {
 public:
  explicit Png(std::span<const std::byte> file) {
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image_, file.data(), file.size()) == 0) throw Corrupt(image_.message);
  }
  ~Png() { png_image_free(&image_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  [[nodiscard]] const png_image& image() const { return image_; }
  void read(std::uint8_t* to) {
    image_.format = PNG_FORMAT_RGBA;
    if (png_image_finish_read(&image_, nullptr, to, 0, nullptr) == 0 || PNG_IMAGE_FAILED(image_))
      throw Corrupt(image_.message);
  }

 private:
  png_image image_{};
};

void put_over_white(std::vector<std::uint8_t>& pixels) {
  for (std::size_t i = 0; i + 4 <= pixels.size(); i += 4) {
    const int alpha = pixels[i + 3];
    if (alpha == 255) continue;
    for (std::size_t c = 0; c < 3; ++c)
      pixels[i + c] = static_cast<std::uint8_t>((pixels[i + c] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
}

}  // namespace

void read_png(std::span<const std::byte> file, const PictureTransform& look, Cut& cut) {
  Png png(file);
  require_reasonable(png.image().width, png.image().height);
  cut.size = {static_cast<int>(png.image().width), static_cast<int>(png.image().height)};
  cut.box = box_of(cut.size, look);
  cut.pixels.resize(std::size_t{4} * png.image().width * png.image().height);
  png.read(cut.pixels.data());
  put_over_white(cut.pixels);
}

}  // namespace syncopate::input
#else
namespace syncopate::input {

void read_png(std::span<const std::byte>, const PictureTransform&, Cut&) {
  throw Misuse("this build cannot read PNG: install libpng (Debian: libpng-dev) and rebuild");
}

}  // namespace syncopate::input
#endif
