// Secret: the bytes that the ranks of one job share, and the codes that require them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::base::crypto {

/// 32 bytes of SHA-256 or HMAC-SHA256.
using Digest = std::array<std::byte, 32>;

/// Reads the job's secret from its file; empty for an empty path. Throws Misuse (missing, shorter than 16 bytes).
[[nodiscard]] std::string read_secret(const std::string& path);

/// HMAC-SHA256 (RFC 2104). Law: the first byte of `text` identifies the purpose of the code and is unique to it, so
/// that no code is valid for another purpose. Throws SystemFailure.
[[nodiscard]] Digest mac_of(const std::string& secret, ConstBytes text);
/// Compares in constant time. False if the sizes differ.
[[nodiscard]] bool is_same(ConstBytes one, ConstBytes other) noexcept;

/// SHA-256 over the texts with their lengths. Throws SystemFailure.
[[nodiscard]] Digest digest_of(const std::vector<std::string>& texts);

}  // namespace syncopate::base::crypto
