// FrameReader: puts the bytes of a connection together to frames: a header of fixed length, then a body.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::socket {

/// A state machine without a connection: its user reads into `pieces`, states how many bytes came, and takes what is
/// whole. A body lies in the user's memory. Bytes of the frames after it are read ahead, into the tail.
template <std::size_t kHeaderBytes>
class FrameReader final {
 public:
  using Header = std::array<std::byte, kHeaderBytes>;
  enum class Part : unsigned char {
    none,    ///< bytes are missing
    header,  ///< the user checks `header` and calls `place`
    frame    ///< the body is whole, and the next header begins
  };

  explicit FrameReader(std::size_t tail_bytes) noexcept : tail_bytes_(tail_bytes) {}

  /// Where the next bytes go; call it after `next` has returned `none`. Behind an incomplete header that is `expected`,
  /// for a user who knows beforehand where it will `place` the body; else header and body come through the tail.
  [[nodiscard]] std::span<iovec> pieces(base::Bytes expected = {}) {
    tail_.resize(tail_bytes_);
    if (!is_placed_) body_ = expected;
    direct_ = body_.empty() ? 0 : kHeaderBytes + body_.size() - have_;
    std::size_t count = 0;
    for (const base::Bytes rest : {header_rest(), body_rest()})
      if (direct_ > 0 && !rest.empty()) pieces_[count++] = piece_of(rest);
    pieces_[count++] = piece_of(tail_);
    return std::span(pieces_).first(count);
  }
  /// `bytes` bytes have come into `pieces`.
  void filled(std::size_t bytes) noexcept {
    const std::size_t of_frame = std::min(bytes, direct_);
    have_ += of_frame;
    tail_begin_ = 0;
    tail_end_ = bytes - of_frame;
  }
  /// The next part that has become whole.
  [[nodiscard]] Part next() noexcept {
    have_ += take(header_rest());
    if (!is_placed_) return have_ < kHeaderBytes ? Part::none : Part::header;
    have_ += take(body_rest());
    if (missing() > 0) return Part::none;
    have_ = 0;
    is_placed_ = false;
    return Part::frame;
  }

  [[nodiscard]] const Header& header() const noexcept { return header_; }
  /// The memory of this frame's body, as long as the body.
  void place(base::Bytes body) noexcept {
    body_ = body;
    is_placed_ = true;
  }
  [[nodiscard]] bool is_in_body() const noexcept { return is_placed_; }
  /// Bytes of the header that are missing, or of the body; call it after `next` has returned `none`.
  [[nodiscard]] std::size_t missing() const noexcept { return kHeaderBytes + (is_placed_ ? body_.size() : 0) - have_; }

 private:
  [[nodiscard]] std::size_t in_header() const noexcept { return std::min(have_, kHeaderBytes); }
  [[nodiscard]] base::Bytes header_rest() noexcept { return base::Bytes(header_).subspan(in_header()); }
  [[nodiscard]] base::Bytes body_rest() const noexcept { return body_.subspan(have_ - in_header()); }
  std::size_t take(base::Bytes into) noexcept {
    const std::size_t bytes = std::min(into.size(), tail_end_ - tail_begin_);
    if (bytes > 0) std::memcpy(into.data(), tail_.data() + tail_begin_, bytes);
    tail_begin_ += bytes;
    return bytes;
  }

  Header header_{};
  base::Bytes body_;        ///< placed or expected
  std::size_t have_ = 0;    ///< bytes of the frame
  bool is_placed_ = false;  ///< `body_` is; the header is whole
  std::size_t direct_ = 0;  ///< bytes of `pieces` before the tail
  const std::size_t tail_bytes_;
  std::vector<std::byte> tail_;  ///< invariant: it holds no bytes while a body is incomplete
  std::size_t tail_begin_ = 0, tail_end_ = 0;
  std::array<iovec, 3> pieces_{};
};

}  // namespace syncopate::transport::socket
