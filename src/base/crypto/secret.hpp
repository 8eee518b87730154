// Secret: the bytes that the ranks of one job share, and the codes that only who knows them can make.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::base::crypto {

/// 32 bytes of SHA-256 or HMAC-SHA256.
using Digest = std::array<std::byte, 32>;

/// The job's secret from its file; throws Misuse (missing, shorter than 16 bytes). Empty for an empty path.
[[nodiscard]] std::string read_secret(const std::string& path);

/// HMAC-SHA256 (RFC 2104). Law: the first byte of `text` says what the code is for, and no two purposes share one, so
/// that no code can stand for another. Throws SystemFailure.
[[nodiscard]] Digest mac_of(const std::string& secret, ConstBytes text);
/// Compares in a time that does not depend on the bytes. False where the sizes differ.
[[nodiscard]] bool is_same(ConstBytes one, ConstBytes other) noexcept;

/// SHA-256 over the texts with their lengths. Throws SystemFailure.
[[nodiscard]] Digest digest_of(const std::vector<std::string>& texts);

}  // namespace syncopate::base::crypto
