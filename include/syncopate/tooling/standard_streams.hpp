// Standard output and error of our own programs: writes that cannot throw, and one check at a program's end.
#pragma once

#include <string_view>

namespace syncopate {

/// Writes all of `bytes` to the descriptor `file` and waits where it is not ready. Returns false, with errno, when a
/// write fails.
bool write_all(int file, std::string_view bytes) noexcept;

/// Writes `bytes` in pieces that a pipe accepts at once. Returns false where it would have to wait, or has no reader.
[[nodiscard]] bool write_at_once(int file, std::string_view bytes) noexcept;

/// Writes `text` to standard output, in one write where the system takes it whole. A failure is kept for finish_output.
void write_output(std::string_view text) noexcept;
/// Writes `text` to standard error. A failure is ignored: a closed terminal or a full disk must not end a run.
void write_error(std::string_view text) noexcept;

/// Every program calls this once, before it returns from main() with success. Throws SystemFailure where a write to
/// standard output has failed (stdio's writes included). Where the reader of a pipe is gone and SIGPIPE is ignored, it
/// ends the process by SIGPIPE, without a message.
void finish_output();

}  // namespace syncopate
