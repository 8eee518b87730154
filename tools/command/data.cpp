// `syncopate data`: makes data sets to train on where none is at hand.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "command.hpp"
#include "dataset/files.hpp"
#include "dataset/shape.hpp"

namespace syncopate::tools::command {

namespace {

int draw_images(const Session& session, const dataset::DatasetOptions& options) {
  const bool shows = isatty(STDERR_FILENO) == 1;
  const int total = options.train + options.test;
  dataset::write_dataset(options, [&](int drawn) {
    if (shows) fmt::print(stderr, "\r\x1b[Kdrawing: {} of {} images", drawn, total);
  });
  if (shows) fmt::print(stderr, "\r\x1b[K");
  if (session.json)
    print_row({{"out", options.folder},
               {"format", "cifar10"},
               {"train", options.train},
               {"test", options.test},
               {"seed", options.seed},
               {"difficulty", options.difficulty},
               {"classes", dataset::kClasses}});
  else
    fmt::print("{}: {} images to train on, {} to test, 10 classes, in CIFAR-10's binary format\n", options.folder,
               options.train, options.test);
  return 0;
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<dataset::DatasetOptions>();
  app.require_subcommand(1);
  CLI::App* child = app.add_subcommand("draw", "Drawn images of ten shapes, in CIFAR-10's binary format");
  child->add_flag("--json", session.json, "One row for programs");
  child->add_option("--out", options->folder, "Folder, new or empty")->type_name("DIR")->required();
  child->add_option("--train", options->train, "Images to train on")->capture_default_str();
  child->add_option("--test", options->test, "Images to test with")->capture_default_str();
  child->add_option("--seed", options->seed, "Same seed, same bytes, on any machine")->capture_default_str();
  child->add_option("--difficulty", options->difficulty, "0 to 1: smaller, paler shapes, more clutter and noise")
      ->capture_default_str();
  child->add_flag("--force", options->overwrite, "Write into a folder that is not empty");
  child->footer(
      "A shape (disc, ring, square, frame, triangle, cross, star, crescent, arrow, bars) of random size, place,\n"
      "colour and rotation, on a random background with clutter and noise.");
  child->callback(
      [&session, options] { session.action = [&session, options] { return draw_images(session, *options); }; });
}

}  // namespace

extern constinit const Command data{
    .name = "data",
    .summary = "Make data to train on: draw",
    .define = define,
};

}  // namespace syncopate::tools::command
