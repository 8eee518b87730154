// Prepares pictures on one core, in alternation with plain libjpeg-turbo.
#include <fmt/format.h>
#include <jpeglib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>  // jpeglib.h needs it
#include <string>
#include <vector>

#include "input/picture/cut.hpp"
#include "syncopate/error.hpp"
#include "syncopate/pipeline.hpp"

namespace {

using Bytes = std::vector<std::byte>;
using syncopate::input::PictureTransform;

/// The whole picture at the scale that the cut of `look` allows, into memory that is kept; nothing else.
std::size_t bare_decode(const Bytes& file, const PictureTransform& look, std::vector<unsigned char>& pixels) {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  decoder.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&decoder, TRUE);
  const auto box = box_of({static_cast<int>(decoder.image_width), static_cast<int>(decoder.image_height)}, look);
  decoder.scale_num = static_cast<unsigned>(eighths_for(box, look.side));
  decoder.scale_denom = 8;
  decoder.out_color_space = JCS_RGB;
  jpeg_start_decompress(&decoder);
  const std::size_t pitch = std::size_t{3} * decoder.output_width;
  pixels.resize(pitch * decoder.output_height);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW line = &pixels[pitch * decoder.output_scanline];
    jpeg_read_scanlines(&decoder, &line, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  return pixels.size();
}

double seconds(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

/// bench_input FOLDER [SIDE [ROUNDS]]: rounds over the training part, the two in turn.
int main(int argc, char** argv) try {
  if (argc < 2) throw syncopate::Misuse("bench_input FOLDER [SIDE [ROUNDS]]");
  const int side = argc > 2 ? std::stoi(argv[2]) : 224, rounds = argc > 3 ? std::stoi(argv[3]) : 15;
  const syncopate::input::Dataset set = syncopate::input::open_dataset(argv[1]);
  std::vector<Bytes> files;
  for (std::size_t i = 0; i < set.training->records(); ++i)
    set.training->read(i, files.emplace_back(set.training->bytes(i)));
  const auto decoder = set.decoder();
  std::vector<float> out(3 * static_cast<std::size_t>(side) * static_cast<std::size_t>(side));
  std::vector<unsigned char> pixels;
  for (const bool augment : {true, false}) {
    std::vector<double> ours, bare;
    const auto each = [&](const auto& work) {
      for (std::uint32_t i = 0; i < files.size(); ++i)
        work(files[i], PictureTransform{.side = side, .augment = augment, .seed = 1, .sample = i});
    };
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(seconds([&] {
        each([&](const Bytes& file, const PictureTransform& look) { decoder->decode(file, look, out.data()); });
      }));
      bare.push_back(seconds(
          [&] { each([&](const Bytes& file, const PictureTransform& look) { bare_decode(file, look, pixels); }); }));
    }
    const auto n = static_cast<double>(files.size());
    fmt::print("{} at {}: {:.0f} pictures/s, bare decoding {:.0f}/s, share {:.3f} (medians of {} rounds in turn)\n",
               augment ? "training" : "evaluation", side, n / median(ours), n / median(bare),
               median(bare) / median(ours), rounds);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_input: {}\n", error.what());
  return 1;
}
