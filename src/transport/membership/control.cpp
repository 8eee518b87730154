// Failures as values and as exceptions: an exception on one rank becomes the exception of every rank.
#include "transport/membership/control.hpp"

#include <fmt/format.h>

namespace syncopate::transport::membership {

namespace {

/// Errors of the other kinds concern only the rank where they happened: the others see a failed rank.
constexpr bool concerns_all(ErrorKind kind) noexcept {
  return kind != ErrorKind::misuse && kind != ErrorKind::unauthorized && kind != ErrorKind::not_finite;
}

}  // namespace

std::uint64_t message_number(int from, int to, std::uint64_t count) noexcept {
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(from) << 48 | static_cast<std::uint64_t>(to) << 32 |
         (count & 0xffffffff);
}

std::string text_of_number(std::uint64_t number) {
  if (!is_message(number)) return fmt::format("operation {}", number);
  return fmt::format("message {} from rank {} to rank {}", number & 0xffffffff, number >> 48 & 0x7fff,
                     number >> 32 & 0xffff);
}

void raise(const Failure& failure) {
  raise_error(concerns_all(failure.kind) ? failure.kind : ErrorKind::remote_failure, failure.message, failure.where);
}

Failure failure_of(const std::exception& error, int rank) {
  const auto* known = dynamic_cast<const Error*>(&error);
  Where where = known != nullptr ? known->where() : Where{};
  if (where.rank < 0) where.rank = rank;
  if (known != nullptr && concerns_all(known->kind())) return {known->kind(), error.what(), std::move(where)};
  return {ErrorKind::remote_failure, fmt::format("rank {} failed: {}", rank, error.what()), std::move(where)};
}

}  // namespace syncopate::transport::membership
