// JPEG files by libjpeg-turbo, at its usual sampling of colours.
#include "dataset/jpeg.hpp"

#include "syncopate/error.hpp"

#ifdef SYNCOPATE_HAVE_JPEG
#include <jpeglib.h>

#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <new>

namespace syncopate::tools::dataset {

/// libjpeg's own handler of errors would end the program; into memory, of sizes that were checked, none comes.
std::string jpeg_of(const Picture& picture, int quality) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &memory, &size);
  encoder.image_width = encoder.image_height = static_cast<JDIMENSION>(picture.side);
  encoder.input_components = 3;
  encoder.in_color_space = JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, quality, TRUE);
  jpeg_start_compress(&encoder, TRUE);
  const auto side = static_cast<std::size_t>(picture.side);
  std::vector<std::uint8_t> row(3 * side);
  for (std::size_t y = 0; y < side; ++y) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = picture.planes[(i % 3 * side + y) * side + i / 3];
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&encoder, &line, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string file(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return file;
}

}  // namespace syncopate::tools::dataset
#else
namespace syncopate::tools::dataset {

std::string jpeg_of(const Picture&, int) {
  throw Misuse("this build cannot write JPEG: install libjpeg-turbo (Debian: libjpeg62-turbo-dev) and rebuild");
}

}  // namespace syncopate::tools::dataset
#endif
