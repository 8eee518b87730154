// A server's tables and its snapshots: images at a step, and a job that resumes from them.
#include <fmt/format.h>

#include <algorithm>

#include "server/snapshot/round_step.hpp"
#include "server/table/server_job.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

void ServerTables::take_images(Clock every, std::function<void(Image)> take, std::function<void(Clock)> begun) {
  image_every_ = every;
  image_taken_ = std::move(take);
  begun_ = std::move(begun);
}

/// The step of the image that is due; 0: none is. Without lockstep a clock passes several steps at once, and an image
/// contains at least its step.
Clock ServerTables::step_of_image(const Job& job, Clock imaged, Clock now) const {
  const Clock after = std::max(imaged, job.setup.first_step), last = now / image_every_ * image_every_;
  if (!job.rules.in_lockstep()) return roundest(after, last, image_every_);
  return last > after ? last : 0;
}

/// Called with the block's lock held. In lockstep no update of the next step can have come: its worker waits for the
/// answer that this change allows.
void ServerTables::take_image(std::size_t index, const ServerBlock& block) {
  const auto job = this->job();
  const Clock least = block.least(), step = step_of_image(*job, job->blocks[index]->imaged, least);
  if (step == 0 || (job->rules.in_lockstep() && least != step)) return;
  job->blocks[index]->imaged = least;
  image_taken_({job->setup, step, job->blocks.size() + job->rows.size(), index, {block.image()}});
}

/// Called with the table's lock held. In lockstep no push of the next step can have come: its worker waits for the
/// acknowledgement of its mark.
void ServerTables::take_image(Job& job, std::uint32_t index, RowTable& table) {
  const Clock ended = table.marks().ended().value_or(0), step = step_of_image(job, job.rows[index]->imaged, ended);
  if (step == 0) return;
  job.rows[index]->imaged = ended;
  Image image{job.setup, step, job.blocks.size() + job.rows.size(), job.blocks.size() + index};
  table.image([&](Payload part, std::uint64_t, bool) { image.parts.push_back(std::move(part)); });
  image_taken_(std::move(image));
}

void ServerTables::restore(const Setup& setup, Clock step, std::span<const Payload> images, const std::string& from) {
  Setup agreed = setup;
  agreed.catalogue = catalogue_;
  const auto made = create(agreed);
  std::size_t at = 0;
  const auto next = [&] {
    if (at == images.size()) throw Corrupt(fmt::format("{} has only {} images", from, images.size()));
    return images[at++].bytes;
  };
  for (const auto& kept : made->blocks) {
    kept->imaged = step;
    kept->kept.with([&](ServerBlock& block) {
      block.restore(next());
      block.begin_again(step);
    });
  }
  for (const auto& kept : made->rows) {
    kept->imaged = step;
    kept->table.with([&](auto& table) {
      std::uint64_t part = 0;
      do table->restore(next(), part++);
      while (!table->is_whole());
      table->begin_again(step);
    });
  }
  if (at != images.size()) throw Corrupt(fmt::format("{} has {} images instead of {}", from, images.size(), at));
  made->restored = from;
  made->origin_step = step;
  job_.with([&](auto& job) { job = made; });
}

}  // namespace syncopate::server
