// A server's tables and its snapshots: images of blocks at a step, and a job that resumes from them.
#include <fmt/format.h>

#include <algorithm>

#include "server/table/server_job.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

void ServerTables::take_images(Clock every, std::function<void(Image)> take) {
  image_every_ = every;
  image_taken_ = std::move(take);
}

/// Called with the block's lock held. In lockstep no update of the next step can have come: its worker waits for the
/// answer that this change allows.
void ServerTables::take_image(std::size_t index, const ServerBlock& block) {
  const auto job = this->job();
  const Clock least = block.least(), step = least / image_every_ * image_every_;
  Clock& imaged = job->blocks[index]->imaged;
  if (step <= std::max(imaged, job->setup.first_step) || (job->rules.in_lockstep() && least != step)) return;
  imaged = step;
  image_taken_({job->setup, step, job->blocks.size(), static_cast<std::uint32_t>(index), block.image()});
}

void ServerTables::restore(const Setup& setup, Clock step, std::span<const Payload> images, const std::string& from) {
  Setup agreed = setup;
  agreed.catalogue = catalogue_;
  const auto made = create(agreed);
  if (images.size() != made->blocks.size())
    throw Corrupt(fmt::format("{} has {} blocks instead of {}", from, images.size(), made->blocks.size()));
  for (std::size_t index = 0; index < images.size(); ++index) {
    made->blocks[index]->imaged = step;
    made->blocks[index]->kept.with([&](ServerBlock& block) {
      block.restore(images[index].bytes);
      block.begin_again(step);
    });
  }
  made->restored = from;
  job_.with([&](auto& job) { job = made; });
}

/// Refuses a worker that was here before the snapshot's job restarted: it has steps that the snapshot lacks.
void ServerTables::meet(Job& job, std::size_t worker, const Message& message) const {
  if (job.restored.empty()) return;
  if (message.last == 0 && !job.met[worker])
    throw PeerLost(
        fmt::format("server {} was restarted from {}: later updates are lost; restart the workers; "
                    "they resume from there",
                    server_, job.restored));
  job.met[worker] = true;
}

}  // namespace syncopate::server
