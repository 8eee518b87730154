// JPEG files by libjpeg-turbo. It reports errors by longjmp; they become exceptions once no C frame is left.
#include "input/picture/photograph.hpp"
#include "syncopate/error.hpp"

#ifdef SYNCOPATE_HAVE_JPEG
#include <fmt/format.h>
#include <jpeglib.h>

#include <cmath>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <string>

// clang-format off: its codes depend on the version that jpeglib.h defines
#include <jerror.h>
// clang-format on

namespace syncopate::input {
namespace {

constexpr int kMostScans = 500;  ///< a few bytes can declare thousands of passes over a large picture

/// Warnings of libjpeg by which pixels are lost.
bool is_damage(int code) {
  return code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC || code == JWRN_BOGUS_PROGRESSION;
}

class Jpeg final {
 public:
  explicit Jpeg(std::span<const std::byte> file) : bytes_(file.size()) {
    decoder_.err = jpeg_std_error(&errors_);
    decoder_.client_data = this;
    errors_.error_exit = [](j_common_ptr c) { self(c).leave(c); };
    errors_.emit_message = [](j_common_ptr c, int level) {
      if (level < 0 && is_damage(c->err->msg_code)) self(c).leave(c);
    };
    progress_.progress_monitor = [](j_common_ptr c) { self(c).limit_scans(c); };
    guarded([&] {
      jpeg_create_decompress(&decoder_);
      decoder_.progress = &progress_;
      jpeg_mem_src(&decoder_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
      jpeg_save_markers(&decoder_, JPEG_APP0 + 1, 0xffff);
      jpeg_read_header(&decoder_, TRUE);
    });
  }
  ~Jpeg() { jpeg_destroy_decompress(&decoder_); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  [[nodiscard]] Size size() const {
    return {static_cast<int>(decoder_.image_width), static_cast<int>(decoder_.image_height)};
  }

  [[nodiscard]] int orientation() const {
    for (const jpeg_marker_struct* marker = decoder_.marker_list; marker; marker = marker->next) {
      const int found = exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
      if (found != 1) return found;
    }
    return 1;
  }

  /// Starts decoding at `eighths`/8 of the size; returns the reduced size.
  Size start(int eighths) {
    const bool inks = decoder_.jpeg_color_space == JCS_CMYK || decoder_.jpeg_color_space == JCS_YCCK;
    decoder_.out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
    decoder_.scale_num = static_cast<unsigned>(eighths);
    decoder_.scale_denom = 8;
    guarded([&] { jpeg_start_decompress(&decoder_); });
    return {static_cast<int>(decoder_.output_width), static_cast<int>(decoder_.output_height)};
  }

  /// Decodes rows [first, last) to `to`; decodes the others only as far as needed to detect damage.
  void read_rows(int first, int last, std::uint8_t* to) {
    const std::size_t pitch = std::size_t{4} * decoder_.output_width;
    spare_.resize(pitch);
    guarded([&] {
      if (first > 0) jpeg_skip_scanlines(&decoder_, static_cast<JDIMENSION>(first));
      for (int row = first; row < last; ++row, to += pitch) {
        JSAMPROW line = to;
        jpeg_read_scanlines(&decoder_, &line, 1);
      }
      const JDIMENSION rest = decoder_.output_height - decoder_.output_scanline;
      if (rest > 1) jpeg_skip_scanlines(&decoder_, rest - 1);  // skipping the last one would leave it unchecked
      JSAMPROW line = spare_.data();
      if (rest > 0) jpeg_read_scanlines(&decoder_, &line, 1);
      jpeg_finish_decompress(&decoder_);
    });
  }

  /// Converts inks, which Adobe stores inverted.
  void inks_to_colours(std::vector<std::uint8_t>& pixels) const {
    if (decoder_.out_color_space != JCS_CMYK) return;
    const int inverted = decoder_.saw_Adobe_marker ? 0 : 255;
    for (std::size_t i = 0; i + 4 <= pixels.size(); i += 4) {
      const int white = pixels[i + 3] ^ inverted;
      for (std::size_t c = 0; c < 3; ++c)
        pixels[i + c] = static_cast<std::uint8_t>(((pixels[i + c] ^ inverted) * white + 127) / 255);
    }
  }

 private:
  static Jpeg& self(j_common_ptr c) { return *static_cast<Jpeg*>(c->client_data); }

  [[noreturn]] void leave(j_common_ptr c) {
    c->err->format_message(c, text_);
    std::longjmp(escape_, 1);
  }

  void limit_scans(j_common_ptr c) {
    if (!c->is_decompressor || decoder_.input_scan_number <= kMostScans) return;
    std::snprintf(text_, sizeof text_, "more than %d scans", kMostScans);
    std::longjmp(escape_, 1);
  }

  /// Calls of libjpeg; nothing in `calls` has a destructor.
  template <class Calls>
  void guarded(const Calls& calls) {
    if (setjmp(escape_) != 0) {
      const std::size_t left = decoder_.src ? decoder_.src->bytes_in_buffer : bytes_;
      const std::string why =
          fmt::format("{} (at byte {} of {})", text_, left <= bytes_ ? bytes_ - left : bytes_, bytes_);
      jpeg_destroy_decompress(&decoder_);  // no destructor runs after a constructor that throws
      throw Corrupt(why);
    }
    calls();
  }

  const std::size_t bytes_;
  jpeg_decompress_struct decoder_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf escape_{};
  char text_[JMSG_LENGTH_MAX] = {};
  std::vector<std::uint8_t> spare_;
};

}  // namespace

void read_jpeg(std::span<const std::byte> file, const PictureTransform& look, Cut& cut) {
  Jpeg jpeg(file);
  const auto [width, height] = jpeg.size();
  require_reasonable(static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height));
  const int orientation = jpeg.orientation();
  cut.box = box_of(orientation >= 5 ? Size{height, width} : Size{width, height}, look);
  const int eighths = eighths_for(cut.box, look.side);
  const Size reduced = jpeg.start(eighths);
  const double scale = eighths / 8.0;
  cut.box = {cut.box.x * scale, cut.box.y * scale, cut.box.width * scale, cut.box.height * scale};
  int first = 0, last = reduced.height;
  if (orientation == 1) {
    first = static_cast<int>(cut.box.y);
    last = std::min(last, static_cast<int>(std::ceil(cut.box.y + cut.box.height)));
    cut.box.y -= first;
  }
  cut.size = {reduced.width, last - first};
  cut.pixels.resize(std::size_t{4} * static_cast<std::size_t>(cut.size.width) *
                    static_cast<std::size_t>(cut.size.height));
  jpeg.read_rows(first, last, cut.pixels.data());
  jpeg.inks_to_colours(cut.pixels);
  turn_upright(cut, orientation);
}

bool read_whole_jpeg(std::span<const std::byte> file, int least_side, Cut& cut, bool& is_turned) {
  Jpeg jpeg(file);
  const auto [width, height] = jpeg.size();
  require_reasonable(static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height));
  const Box largest{0, 0, static_cast<double>(width), static_cast<double>(height)};
  if (eighths_for(largest, least_side) < 8) return false;
  const int orientation = jpeg.orientation();
  cut.size = jpeg.start(8);
  cut.pixels.resize(std::size_t{4} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  jpeg.read_rows(0, height, cut.pixels.data());
  jpeg.inks_to_colours(cut.pixels);
  is_turned = orientation != 1;
  turn_upright(cut, orientation);
  return true;
}

}  // namespace syncopate::input
#else
namespace syncopate::input {

void read_jpeg(std::span<const std::byte>, const PictureTransform&, Cut&) {
  throw Misuse("this build cannot read JPEG: install libjpeg-turbo (Debian: libjpeg62-turbo-dev) and rebuild");
}

bool read_whole_jpeg(std::span<const std::byte>, int, Cut&, bool&) { return false; }

}  // namespace syncopate::input
#endif
