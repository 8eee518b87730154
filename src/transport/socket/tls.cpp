// Tls: TLS 1.3 over one connected socket whose two ends hold the same key; never blocking.
#include "transport/socket/tls.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::transport::socket {

namespace {

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t kMostOverhead = 64;   // of one record: header, type, tag
constexpr std::size_t kMostControl = 2048;  // handshake messages, alerts, key updates
constexpr char kIdentity[] = "syncopate";   // a key per connection needs no name

/// Copies what follows the first `from` bytes of the pieces, as far as `into` has room. Returns the number of bytes.
std::size_t gather(std::span<const iovec> pieces, std::size_t from, std::span<std::byte> into) noexcept {
  std::size_t filled = 0;
  for (const iovec& piece : pieces) {
    const std::size_t skip = std::min(from, piece.iov_len);
    from -= skip;
    const std::size_t bytes = std::min(piece.iov_len - skip, into.size() - filled);
    if (bytes > 0) std::memcpy(into.data() + filled, static_cast<const std::byte*>(piece.iov_base) + skip, bytes);
    filled += bytes;
  }
  return filled;
}

/// The next record's bytes, after the first `from` of the pieces: in place if one piece holds a whole record, else
/// gathered in `room`.
std::span<const std::byte> next_record(std::span<const iovec> pieces, std::size_t from, std::span<std::byte> room) {
  std::size_t skip = from;
  for (const iovec& piece : pieces) {
    if (skip < piece.iov_len && piece.iov_len - skip >= room.size())
      return {static_cast<const std::byte*>(piece.iov_base) + skip, room.size()};
    if (skip < piece.iov_len) break;
    skip -= piece.iov_len;
  }
  return room.first(gather(pieces, from, room));
}

[[noreturn]] void refuse(const char* what) {
  ERR_clear_error();
  throw SystemFailure(fmt::format("the cryptographic library cannot {}", what));
}

}  // namespace

/// The functions that OpenSSL calls.
struct Tls::Callbacks {
  static Tls& of(const SSL* ssl) { return *static_cast<Tls*>(SSL_get_app_data(ssl)); }
  static Tls& of(BIO* bio) { return *static_cast<Tls*>(BIO_get_data(bio)); }

  static unsigned give_key(const SSL* ssl, unsigned char* into, unsigned most) {
    const TlsKey& key = of(ssl).key_;
    if (most < key.size()) return 0;
    std::memcpy(into, key.data(), key.size());
    return key.size();
  }
  static constexpr auto client_key = [](SSL* ssl, const char* /*hint*/, char* identity, unsigned most_identity,
                                        unsigned char* into, unsigned most) -> unsigned {
    if (most_identity < sizeof kIdentity) return 0;
    std::memcpy(identity, kIdentity, sizeof kIdentity);
    return give_key(ssl, into, most);
  };
  static unsigned server_key(SSL* ssl, const char* identity, unsigned char* into, unsigned most) {
    return std::strcmp(identity, kIdentity) == 0 ? give_key(ssl, into, most) : 0;
  }
  static void note(const SSL* ssl, int where, int value) {
    if (where == SSL_CB_READ_ALERT && (value & 0xff) == SSL_AD_CLOSE_NOTIFY) of(ssl).has_farewell_ = true;
  }

  static int read(BIO* bio, char* into, int most) {
    Tls& tls = of(bio);
    BIO_clear_retry_flags(bio);
    const ssize_t got = tls.is_drained_ ? -EAGAIN : receive(tls.socket_, into, static_cast<std::size_t>(most));
    tls.is_drained_ = got < most;
    if (got > 0) return static_cast<int>(got);
    if (got == 0) {
      tls.has_end_ = true;
      return 0;
    }
    if (got == -EAGAIN) {
      tls.is_blocked_ = true;
      BIO_set_retry_read(bio);
    } else {
      tls.receive_error_ = static_cast<int>(-got);
    }
    return -1;
  }
  /// Number of received bytes, 0 at the end, or a negative errno.
  static ssize_t receive(int socket, char* into, std::size_t most) {
    ssize_t got = -1;
    do got = ::recv(socket, into, most, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got >= 0 ? got : errno == EWOULDBLOCK ? -EAGAIN : -errno;
  }
  static int write(BIO* bio, const char* bytes, int count) {
    std::vector<std::byte>& out = of(bio).out_;
    const std::span all = std::as_bytes(std::span(bytes, static_cast<std::size_t>(count)));
    if (all.size() > out.capacity() - out.size()) return -1;
    out.insert(out.end(), all.begin(), all.end());
    return count;
  }
  static long control(BIO* /*bio*/, int what, long /*number*/, void* /*pointer*/) {
    return what == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static BIO_METHOD* make_method() {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "syncopate socket");
    if (made == nullptr || BIO_meth_set_read(made, read) != 1 || BIO_meth_set_write(made, write) != 1 ||
        BIO_meth_set_ctrl(made, control) != 1)
      refuse("make a connection");
    return made;
  }
  static SSL_CTX* make_context() {
    SSL_CTX* made = SSL_CTX_new(TLS_method());
    if (made == nullptr || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") != 1 || SSL_CTX_set_num_tickets(made, 0) != 1)
      refuse("do TLS 1.3");
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    SSL_CTX_clear_options(made, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    SSL_CTX_set_psk_client_callback(made, client_key);
    SSL_CTX_set_psk_server_callback(made, server_key);
    SSL_CTX_set_info_callback(made, note);
    return made;
  }
  // Both are constant and shared by all connections; they are never freed, because connections may outlive every static
  // object.
  static BIO_METHOD* method() {
    static BIO_METHOD* const made = make_method();
    return made;
  }
  static SSL_CTX* context() {
    static SSL_CTX* const made = make_context();
    return made;
  }
};

void Tls::Free::operator()(ssl_st* ssl) const noexcept { SSL_free(ssl); }

Tls::Tls(int socket, const TlsKey& key, TlsRole role, std::uint64_t key_life_bytes)
    : socket_(socket),
      key_(key),
      key_life_bytes_(key_life_bytes),
      ssl_(SSL_new(Callbacks::context())),
      record_(kRecordBytes) {
  out_.reserve(kRecordBytes + kMostOverhead + kMostControl);
  BIO* bio = BIO_new(Callbacks::method());
  if (ssl_ == nullptr || bio == nullptr) refuse("begin TLS");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_bio(ssl_.get(), bio, bio);
  role == TlsRole::client ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
  // No certificate is accepted in place of the key. (The server offers and requests none.)
  if (role == TlsRole::client) SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
}

Tls::~Tls() {
  const bool is_alive = is_negotiated_ && !process_.is_inherited() && (!end_ || end_->error == 0);
  if (is_alive && flush() && SSL_shutdown(ssl_.get()) >= 0) static_cast<void>(flush());
  OPENSSL_cleanse(key_.data(), key_.size());
}

bool Tls::flush() noexcept {
  while (has_unsent()) {
    const ssize_t taken = ::send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) send_error_ = errno;
      return false;
    }
    sent_ += static_cast<std::size_t>(taken);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

Moved Tls::negotiate() noexcept {
  is_blocked_ = is_drained_ = false;
  const bool is_done = SSL_do_handshake(ssl_.get()) == 1;
  const bool has_flushed = flush();
  if (!is_done && !is_blocked_) return stopped(0);
  if (send_error_ != 0) return {Moved::Outcome::closed, 0, send_error_};
  if (!is_done || !has_flushed) return {};
  if (SSL_session_reused(ssl_.get()) != 1) return {Moved::Outcome::closed, 0, kForged};  // not by the key
  is_negotiated_ = true;
  return {.outcome = Moved::Outcome::some};
}

bool Tls::has_unread() const noexcept { return SSL_pending(ssl_.get()) > 0; }

void Tls::read_ahead() noexcept { SSL_set_read_ahead(ssl_.get(), 1); }

Moved Tls::read(std::span<const iovec> pieces) noexcept {
  is_drained_ = false;
  std::size_t moved = 0;
  for (const iovec& piece : pieces) {
    for (std::size_t at = 0, got = 0; at < piece.iov_len; at += got) {
      is_blocked_ = false;
      auto* into = static_cast<std::byte*>(piece.iov_base) + at;
      if (end_ || SSL_read_ex(ssl_.get(), into, piece.iov_len - at, &got) != 1) return stopped(moved);
      moved += got;
    }
  }
  return {Moved::Outcome::some, moved, 0, true};
}

/// Nothing more can be read now, or ever; bytes that came before are returned first.
Moved Tls::stopped(std::size_t moved) noexcept {
  if (!end_ && is_blocked_) return {moved > 0 ? Moved::Outcome::some : Moved::Outcome::nothing_now, moved};
  if (!end_) {
    end_ = Moved{Moved::Outcome::closed, 0, why_ended()};
    ERR_clear_error();
    static_cast<void>(flush());  // an alert, if TLS has made one
  }
  return moved > 0 ? Moved{Moved::Outcome::some, moved, 0, true} : *end_;
}

int Tls::why_ended() const noexcept {
  if (has_farewell_) return 0;
  if (receive_error_ != 0) return receive_error_;
  if (!has_end_) return kForged;
  return is_negotiated_ ? kCutOff : 0;  // an end in the handshake needs no closing message
}

Moved Tls::write(std::span<const iovec> pieces) noexcept {
  const std::size_t wanted = bytes_of(pieces);
  for (std::size_t moved = 0;;) {
    if (!flush()) {
      if (send_error_ != 0) return {Moved::Outcome::closed, 0, send_error_};
      return {moved > 0 ? Moved::Outcome::some : Moved::Outcome::nothing_now, moved};
    }
    moved += std::exchange(unreported_, 0);
    if (moved >= wanted) return {Moved::Outcome::some, moved, 0, true};
    unreported_ = encrypt(pieces, moved);
    if (unreported_ == 0) return {Moved::Outcome::closed, 0, kForged};
  }
}

/// Puts one record of what follows the first `from` bytes into `out_`. Returns its number of plain bytes, 0 if TLS has
/// failed. More records per system call are not faster (16 MiB between two ranks: 37 to 39 ms of CPU with 1, 4 and 16).
std::size_t Tls::encrypt(std::span<const iovec> pieces, std::size_t from) noexcept {
  const std::span<const std::byte> bytes = next_record(pieces, from, record_);
  std::size_t written = 0;
  if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1) {
    ERR_clear_error();
    return 0;
  }
  under_key_ += written;
  if (under_key_ >= key_life_bytes_ && SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) under_key_ = 0;
  return written;
}

}  // namespace syncopate::transport::socket
