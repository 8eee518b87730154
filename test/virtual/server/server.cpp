// A virtual server: the production shell, whose turns are events.
#include <fmt/format.h>

#include "virtual/server/job.hpp"

namespace syncopate::server {

ServerProcess::ServerProcess(Job& job, std::size_t index)
    : machine(job.network, index, {.role = streams::Identity::Role::server, .index = index},
              [this](std::unique_ptr<streams::Stream> stream) { return shell.accept(std::move(stream)); }),
      process(job.world.draw(1, ~std::uint64_t{0} - 1)),
      shell(
          {.index = index,
           .servers = job.setup.servers,
           .memory_bytes = kMemory,
           .patience = kPatience,
           .losing = 3 * kSilence,
           .process = process,
           .log = machine.log(),
           .catalogue = job.setup.catalogue,
           .keeper_address = job.replicas > 0 ? machine.address_of(keeper_of(job, index)) : std::string()},
          [this, keeper = keeper_of(job, index)](streams::DialEvents events) {
            machine.dial(keeper, std::move(events));
          },
          [this] { machine.ask(); }, std::make_shared<WorldClock>(job.world)),
      job_(job),
      index_(index) {
  if (job.options.image_every > 0)
    shell.tables().take_images(job.options.image_every,
                               [this](const ServerTables::Image& image) { job_.check_image(index_, image); });
  if (job.snapshot_every > 0) use_snapshots();
  shell.begin();
  machine.listen();
  machine.run([this] { return shell.turn(); }, [this] { look(); });
}

/// As a server with a folder of snapshots begins.
void ServerProcess::use_snapshots() {
  if (job_.begun_at > 0) {
    std::vector<Payload> images;
    for (const auto& [piece, image] : job_.snapshots[job_.begun_at][index_]) images.push_back(image);
    shell.tables().restore(job_.setup, job_.begun_at, images, "a snapshot");
  }
  shell.tables().take_images(job_.snapshot_every,
                             [this](ServerTables::Image image) { job_.keep_image(index_, std::move(image)); });
}

ServerProcess::~ServerProcess() {
  shell.end();
  machine.end();
}

std::size_t ServerProcess::keeper_of(const Job& job, std::size_t index) { return (index + 1) % job.setup.servers; }

void ServerProcess::look() {
  try {
    static_cast<void>(shell.wait_for_end(0ms));
  } catch (const std::exception& error) {
    if (!std::exchange(has_failed_, true)) job_.law(fmt::format("server {} ends the job: {}", index_, error.what()));
  }
}

void ServerProcess::cut_replication() {
  if (machine.cut(keeper_of(job_, index_))) job_.world.note("replication breaks", index_);
}

}  // namespace syncopate::server
