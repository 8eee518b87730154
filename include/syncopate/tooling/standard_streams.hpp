// Standard output and error of our own programs: writes that cannot throw, and one check at a program's end.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

namespace syncopate {

/// Waits until the descriptor `file` takes bytes, and returns whether it does.
using Ready = std::function<bool(int file)>;
/// Waits at most `patience`.
[[nodiscard]] Ready ready_within(std::chrono::milliseconds patience);

/// Every program calls this first. If one of the descriptors 0, 1 and 2 is closed, a file that is opened later would
/// get its number, and what is written to standard output. Afterwards reading or writing it fails, as if it were
/// closed.
void hold_standard_descriptors() noexcept;

/// Writes all of `bytes` to the descriptor `file` and waits where it is not ready. Returns false, with errno, when a
/// write fails.
bool write_all(int file, std::string_view bytes) noexcept;

/// Writes `bytes` in pieces that a pipe accepts at once, each when `ready` has returned true. Returns false where
/// `ready` does, with errno 0, and when a write fails.
bool write_when(const Ready& ready, int file, std::string_view bytes) noexcept;
/// Returns false where it would have to wait, or has no reader.
[[nodiscard]] bool write_at_once(int file, std::string_view bytes) noexcept;

/// Writes `text` to standard output, in one write where the system takes it whole. A failure is kept for finish_output.
/// With `ready` as write_when: the rest of `text` is dropped where that returns false.
void write_output(std::string_view text, const Ready& ready = {}) noexcept;
/// Writes `text` to standard error. A failure is ignored: a closed terminal or a full disk must not end a run.
void write_error(std::string_view text, const Ready& ready = {}) noexcept;

/// Every program calls this once, before it returns from main() with success. Throws SystemFailure where a write to
/// standard output has failed (stdio's writes included). Where the reader of a pipe is gone and SIGPIPE is ignored, it
/// ends the process by SIGPIPE, without a message.
void finish_output();

}  // namespace syncopate
