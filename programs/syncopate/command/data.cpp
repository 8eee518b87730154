// `syncopate data`: makes data sets to train on where none is at hand, and checks those that are.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "arguments.hpp"
#include "command.hpp"
#include "dataset/files.hpp"
#include "dataset/folder.hpp"
#include "dataset/shape.hpp"
#include "dataset/verify.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::command {

namespace {

struct Drawing {
  dataset::DatasetOptions set;
  dataset::FolderOptions folder;
  std::string format = "cifar10", size = "96";
};

/// "96" or "96..288".
void read_size(const std::string& text, dataset::FolderOptions& folder) {
  int used = 0;
  const int fields = std::sscanf(text.c_str(), "%d%n..%d%n", &folder.least_side, &used, &folder.most_side, &used);
  if (fields < 2) folder.most_side = folder.least_side;
  if (fields < 1 || used != static_cast<int>(text.size()))
    throw Misuse(fmt::format("--size {}; allowed: PIXELS, or LEAST..MOST", text));
}

int draw_images(const Session& session, Drawing& drawing) {
  const dataset::DatasetOptions& set = drawing.set;
  const bool shows = isatty(STDERR_FILENO) == 1, folder = drawing.format == "folder";
  const int total = set.train + set.test;
  const auto progress = [&](int drawn) {
    if (shows) print_error("\r\x1b[Kdrawing: {} of {} images", drawn, total);
  };
  read_size(drawing.size, drawing.folder);
  if (folder)
    dataset::write_folder(set, drawing.folder, progress);
  else
    dataset::write_dataset(set, progress);
  if (shows) print_error("\r\x1b[K");
  if (session.json)
    print_row({{"out", set.folder},
               {"format", drawing.format},
               {"train", set.train},
               {"test", set.test},
               {"seed", set.seed},
               {"difficulty", set.difficulty},
               {"classes", dataset::kClasses}});
  else
    print_text("{}: {} images to train on, {} to test, 10 classes, {}\n", set.folder, set.train, set.test,
               folder ? "as JPEG in a folder for each class" : "in CIFAR-10's binary format");
  return 0;
}

void define_draw(CLI::App& app, Session& session) {
  const auto drawing = std::make_shared<Drawing>();
  CLI::App* child = app.add_subcommand("draw", "Drawn images of ten shapes");
  child->add_flag("--json", session.json, "One row for programs");
  child->add_option("-o,--out,--output", drawing->set.folder, "Folder, new or empty")->type_name("DIR")->required();
  child
      ->add_option("--format", drawing->format, "cifar10 (32 x 32 pixels), or folder (JPEG in a folder for each class)")
      ->check(one_of("format", {"cifar10", "folder"}))
      ->capture_default_str();
  child->add_option("--size", drawing->size, "folder: pixels each way, or LEAST..MOST")->capture_default_str();
  child->add_option("--quality", drawing->folder.quality, "folder: of JPEG")
      ->check(between(1, 100))
      ->capture_default_str();
  child->add_option("--train", drawing->set.train, "Images to train on")->check(at_least(1))->capture_default_str();
  child->add_option("--test", drawing->set.test, "Images to test with")->check(at_least(1))->capture_default_str();
  child->add_option("--seed", drawing->set.seed, "Same seed, same images, on any machine")
      ->check(at_least(std::uint64_t{0}))
      ->capture_default_str();
  child->add_option("--difficulty", drawing->set.difficulty, "Smaller, paler shapes, more clutter and noise")
      ->check(between(0.0, 1.0))
      ->capture_default_str();
  child->add_flag("--force", drawing->set.overwrite, "Write into a folder that is not empty");
  child->footer(
      "A shape (disc, ring, square, frame, triangle, cross, star, crescent, arrow, bars) of random size, place,\n"
      "colour and rotation, on a random background with clutter and noise.");
  child->callback(
      [&session, drawing] { session.action = [&session, drawing] { return draw_images(session, *drawing); }; });
}

int verify_images(const Session& session, const std::string& folder, int threads) {
  const dataset::Verdict verdict = dataset::verify(folder, threads);
  if (session.json)
    print_row({{"data", folder},
               {"format", verdict.format},
               {"classes", verdict.classes},
               {"train", verdict.train},
               {"test", verdict.test},
               {"bytes", verdict.bytes},
               {"corrupt", verdict.corrupt}});
  for (const std::string& corrupt : verdict.corrupt)
    if (!session.json) print_text("{}\n", corrupt);
  if (!session.json)
    print_text("{}: {}, {} classes, {} images to train on, {} to test, {} corrupt\n", folder, verdict.format,
               verdict.classes, verdict.train, verdict.test, verdict.corrupt.size());
  return verdict.corrupt.empty() ? 0 : 1;
}

void define_verify(CLI::App& app, Session& session) {
  const auto folder = std::make_shared<std::string>();
  const auto threads = std::make_shared<int>(1);
  CLI::App* child = app.add_subcommand("verify", "Decode every image of a set, and name those that are corrupt");
  child->add_flag("--json", session.json, "One row for programs");
  child->add_option("folder", *folder, "A set to train on")->type_name("DIR")->required();
  child->add_option("--threads", *threads, "That decode")->check(between(1, 1024))->capture_default_str();
  child->footer("Ends with 1 where an image is corrupt.");
  child->callback([&session, folder, threads] {
    session.action = [&session, folder, threads] { return verify_images(session, *folder, *threads); };
  });
}

void define(CLI::App& app, Session& session) {
  app.require_subcommand(1);
  define_draw(app, session);
  define_verify(app, session);
}

}  // namespace

extern constinit const Command data{
    .name = "data",
    .summary = "Make data to train on, and check them: draw, verify",
    .define = define,
};

}  // namespace syncopate::tools::command
