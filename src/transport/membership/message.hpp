// Messages of the control tree: heartbeats, failures, farewells, and questions about operations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "transport/membership/control.hpp"

namespace syncopate::transport::membership {

inline constexpr std::size_t kMaxMessage = 8192;
inline constexpr std::size_t kMaxOperationText = 200;
inline constexpr std::size_t kMostSilences = 512;

/// A rank's progress: its last operation.
struct Progress {
  std::int32_t rank = -1;
  std::uint64_t number = 0;  ///< 0: none begun
  std::string text;
};

struct Heartbeat {
  Progress mine;
  std::uint64_t rolling = 0;  ///< hash over the signatures of operations 1..mine.number
  Progress behind;            ///< the rank with the least progress on the sender's side of the edge
};

/// The time since a rank has sent anything.
struct Silence {
  std::int32_t rank = -1;
  std::uint32_t milliseconds = 0;
};

/// `rank` leaves in order after operation `number`. The ranks that watch its neighbours from now on continue from the
/// silences that it has measured.
struct Goodbye {
  std::int32_t rank = -1;
  std::uint64_t number = 0;
  std::vector<Silence> silences{};  ///< at most kMostSilences
};

/// `from` asks `to` for its call of operation `number`.
struct Question {
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::uint64_t number = 0;
};

/// The answer of `from` to `to`; the text is empty if it has not begun the operation.
struct Reply {
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::uint64_t number = 0;
  std::string text;
  Progress last;
};

/// The sender has received a goodbye, and has all the edges that it needs without the leaving rank.
struct Regrouped {};

using Message = std::variant<Heartbeat, Failure, Goodbye, Question, Reply, Regrouped>;

/// Texts longer than their limits are cut; the result has at most kMaxMessage bytes.
[[nodiscard]] std::string encode(const Message& message);
/// Throws Corrupt.
[[nodiscard]] Message decode_message(std::string_view bytes);

}  // namespace syncopate::transport::membership
