// Pictures for tests: drawn by formula, written by the libraries that the decoders read with.
#pragma once

// jpeglib.h takes size_t and FILE from what stands before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <png.h>
// clang-format on

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace syncopate::input::test {

using Bytes = std::vector<std::byte>;

struct Drawing {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

/// A smooth picture: red grows to the right, green downwards, blue is the class's.
inline Drawing drawing(int width, int height, int blue = 128) {
  Drawing drawn{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (const int value : {255 * (2 * x + 1) / (2 * width), 255 * (2 * y + 1) / (2 * height), blue})
        drawn.rgb.push_back(static_cast<std::uint8_t>(value));
  return drawn;
}

struct JpegStyle {
  int quality = 95;
  int channels = 3;  ///< 1: grey, 4: CMYK as Adobe writes it, inverted
  bool progressive = false;
  Bytes exif;  ///< content of an APP1 segment
};

inline Bytes jpeg_of(const Drawing& drawn, const JpegStyle& style = {}) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &memory, &size);
  encoder.image_width = static_cast<JDIMENSION>(drawn.width);
  encoder.image_height = static_cast<JDIMENSION>(drawn.height);
  encoder.input_components = style.channels;
  encoder.in_color_space = style.channels == 1 ? JCS_GRAYSCALE : style.channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, style.quality, TRUE);
  if (style.channels == 4) jpeg_set_colorspace(&encoder, JCS_YCCK);
  if (style.progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  if (!style.exif.empty())
    jpeg_write_marker(&encoder, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(style.exif.data()),
                      static_cast<unsigned>(style.exif.size()));
  std::vector<std::uint8_t> row;
  for (int y = 0; y < drawn.height; ++y) {
    row.clear();
    for (int x = 0; x < drawn.width; ++x) {
      const std::uint8_t* p = &drawn.rgb[3 * static_cast<std::size_t>(y * drawn.width + x)];
      if (style.channels == 1)
        row.push_back(p[0]);
      else
        row.insert(row.end(), p, p + 3);
      if (style.channels == 4) row.push_back(255);  // no black ink; inverted inks are the colours
    }
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&encoder, &line, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  const auto bytes = std::as_bytes(std::span(memory, size));
  Bytes result(bytes.begin(), bytes.end());
  std::free(memory);
  return result;
}

struct PngStyle {
  png_uint_32 format = PNG_FORMAT_RGB;
  int width = 0, height = 0;
  const void* palette = nullptr;
};

inline Bytes png_of(const PngStyle& style, const void* pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(style.width);
  image.height = static_cast<png_uint_32>(style.height);
  image.format = style.format;
  if (style.palette) image.colormap_entries = 256;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  Bytes result(size);
  if (png_image_write_to_memory(&image, result.data(), &size, 0, pixels, 0, style.palette) == 0)
    throw std::runtime_error(image.message);
  result.resize(size);
  return result;
}

/// An APP1 segment that states an orientation.
inline Bytes exif_of(std::uint8_t orientation, bool big = false) {
  std::vector<std::uint8_t> b{'E', 'x', 'i', 'f', 0, 0};
  const std::vector<std::uint8_t> tiff =
      big ? std::vector<std::uint8_t>{'M', 'M', 0, 42, 0, 0, 0,           8, 0, 1, 1, 0x12, 0,
                                      3,   0,   0, 0,  1, 0, orientation, 0, 0, 0, 0, 0,    0}
          : std::vector<std::uint8_t>{'I', 'I', 42, 0, 8, 0,           0, 0, 1, 0, 0x12, 1, 3,
                                      0,   1,   0,  0, 0, orientation, 0, 0, 0, 0, 0,    0, 0};
  b.insert(b.end(), tiff.begin(), tiff.end());
  const auto bytes = std::as_bytes(std::span(b));
  return {bytes.begin(), bytes.end()};
}

inline void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace syncopate::input::test
