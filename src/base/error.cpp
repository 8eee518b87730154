// The table of error kinds: name, exit code, and the exception.
#include "syncopate/error.hpp"

namespace syncopate {

namespace {

template <class Kind>
[[noreturn]] void throw_as(const std::string& message, Where where) {
  throw Kind(message, std::move(where));
}

struct KindRow {
  ErrorKind kind;
  std::string_view name;
  int exit_code;
  void (*raise)(const std::string& message, Where where);
};

constexpr KindRow kTable[] = {
    {ErrorKind::misuse, "Misuse", 2, throw_as<Misuse>},
    {ErrorKind::peer_lost, "PeerLost", 1, throw_as<PeerLost>},
    {ErrorKind::timeout, "Timeout", 1, throw_as<Timeout>},
    {ErrorKind::mismatch, "Mismatch", 1, throw_as<Mismatch>},
    {ErrorKind::remote_failure, "RemoteFailure", 1, throw_as<RemoteFailure>},
    {ErrorKind::corrupt, "Corrupt", 1, throw_as<Corrupt>},
    {ErrorKind::unauthorized, "Unauthorized", 1, throw_as<Unauthorized>},
    {ErrorKind::not_finite, "NotFinite", 1, throw_as<NotFinite>},
    {ErrorKind::system_failure, "SystemFailure", 1, throw_as<SystemFailure>},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<std::size_t>(kTable[i].kind) != i) return false;
  return true;
}
static_assert(is_in_order());

const KindRow& row_of(ErrorKind kind) noexcept { return kTable[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view name_of(ErrorKind kind) noexcept { return row_of(kind).name; }
int exit_code_of(ErrorKind kind) noexcept { return row_of(kind).exit_code; }

void raise_error(ErrorKind kind, const std::string& message, Where where) {
  row_of(kind).raise(message, std::move(where));
  throw SystemFailure(message);  // not reached: every row throws
}

}  // namespace syncopate
