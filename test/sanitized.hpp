// Sanitized: whether this build has a sanitizer, under which tests of values take fewer of them.
#pragma once

namespace syncopate::test {

/// Values and arithmetic are proved without sanitizers; what those look for does not change with every number of ranks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace syncopate::test
