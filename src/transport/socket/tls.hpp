// Tls: TLS 1.3 over one connected socket whose two ends hold the same key; never blocking.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fork.hpp"
#include "transport/socket/socket.hpp"

extern "C" {
struct bio_st;
struct ssl_st;
}

namespace syncopate::transport::socket {

/// A key that only the two ends of one connection hold.
using TlsKey = std::array<std::byte, 32>;
enum class TlsRole : unsigned char { client, server };

/// RFC 8446 with one external pre-shared key and an ephemeral exchange (psk_dhe_ke), AES-128-GCM, without certificates,
/// tickets and early data. The socket is non-blocking and outlives the object.
class Tls final {
 public:
  /// RFC 8446, 5.5: AES-GCM seals about 24 million full records under one key; this is a sixth of that.
  static constexpr std::uint64_t kKeyLifeBytes = std::uint64_t{64} << 30;

  /// Renews the encryption key after `key_life_bytes`. Throws SystemFailure.
  Tls(int socket, const TlsKey& key, TlsRole role, std::uint64_t key_life_bytes = kKeyLifeBytes);
  /// Sends TLS's closing message, if the kernel takes it at once.
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// One attempt to continue TLS's handshake: `some` once it is done and both ends have proved the key. It reads
  /// nothing after the handshake's last byte.
  [[nodiscard]] Moved negotiate() noexcept;
  [[nodiscard]] Moved read(std::span<const iovec> pieces) noexcept;
  /// Law: the caller repeats bytes that are not reported as moved, unchanged, at the front of the next write; some of
  /// them may already be encrypted.
  [[nodiscard]] Moved write(std::span<const iovec> pieces) noexcept;
  /// Saves a system call per record, see `Channel`.
  void read_ahead() noexcept;
  /// Whether decrypted bytes of a record wait to be read.
  [[nodiscard]] bool has_unread() const noexcept;
  /// Whether encrypted bytes wait for room in the kernel.
  [[nodiscard]] bool has_unsent() const noexcept { return sent_ < out_.size(); }
  /// Limit of received bytes that are kept here until their record is complete.
  static constexpr std::size_t kMostHeldBack = std::size_t{17} << 10;

 private:
  struct Callbacks;
  struct Free {
    void operator()(ssl_st* ssl) const noexcept;
  };

  [[nodiscard]] bool flush() noexcept;
  [[nodiscard]] std::size_t encrypt(std::span<const iovec> pieces, std::size_t from) noexcept;
  [[nodiscard]] Moved stopped(std::size_t moved) noexcept;
  [[nodiscard]] int why_ended() const noexcept;

  const int socket_;
  TlsKey key_;
  const std::uint64_t key_life_bytes_;
  base::OwnProcess process_;
  std::unique_ptr<ssl_st, Free> ssl_;
  std::vector<std::byte> record_;  ///< plain bytes of one record, gathered
  std::vector<std::byte> out_;     ///< encrypted; its capacity is its limit
  std::size_t sent_ = 0;           ///< of `out_`
  std::size_t unreported_ = 0;     ///< plain bytes in `out_`
  std::uint64_t under_key_ = 0;    ///< plain bytes encrypted since the key was renewed
  int send_error_ = 0;

  // State of the current attempt to read.
  bool is_drained_ = false;  ///< a short read emptied the socket
  bool is_blocked_ = false;  ///< TLS needs bytes that have not arrived

  bool is_negotiated_ = false;
  bool has_farewell_ = false;  ///< the other end sent its closing message
  bool has_end_ = false;       ///< the socket's bytes have ended
  int receive_error_ = 0;
  std::optional<Moved> end_;  ///< how reading ended
};

}  // namespace syncopate::transport::socket
