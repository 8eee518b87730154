// Newcomers: streams of processes that say they are a worker, until they have its seat or are turned away.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "server/process/seats.hpp"

namespace syncopate::server {

struct Newcomer {
  std::size_t worker = 0;                 ///< as it says
  std::shared_ptr<rpc::Stream> stream{};  ///< null: it has the seat, or has left
  std::optional<std::uint64_t> life{};    ///< of the stream, once it has the seat
  Message first{};                        ///< while it waits for the seat
  base::Time deadline{};                  ///< the same
  bool is_refused = false;
};

/// Thread-safe. A process does not end the stream of another one that is alive: it waits for the seat until the other
/// has been silent for as long as makes it lost, and is refused if it is not.
class Newcomers final {
 public:
  /// `bound`: longer than it takes a stream to end whose other end is silent.
  Newcomers(Seats& seats, base::Duration bound) : seats_(seats), bound_(bound) {}

  [[nodiscard]] std::shared_ptr<Newcomer> arrive(std::size_t worker, std::unique_ptr<rpc::Stream> stream);
  [[nodiscard]] std::optional<std::uint64_t> life_of(const Newcomer& newcomer) const;
  [[nodiscard]] bool is_refused(const Newcomer& newcomer) const;
  /// Its first message fits the job: it gets the seat, and its stream's number is returned, or it waits.
  [[nodiscard]] std::optional<std::uint64_t> offer(const std::shared_ptr<Newcomer>& newcomer, const Message& first);
  /// It is sent the refusal, and its stream is closed.
  void refuse(Newcomer& newcomer, const Message& refusal);
  /// Its stream has ended. Returns the stream's number where it had the seat.
  [[nodiscard]] std::optional<std::uint64_t> leave(Newcomer& newcomer);

  struct Due {
    std::vector<std::shared_ptr<Newcomer>> seated, refused;  ///< from now on; `refused`: by who calls
  };
  /// To be called again and again.
  [[nodiscard]] Due due();

 private:
  [[nodiscard]] bool seat(Newcomer& newcomer);

  Seats& seats_;
  const base::Duration bound_;
  const base::SteadyClock clock_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Newcomer>> waiting_;
};

}  // namespace syncopate::server
