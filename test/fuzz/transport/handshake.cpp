// Both sides of the handshake: before noise, before a peer that knows the secret, and through altered bytes.
#include "transport/connect/handshake.hpp"

#include <tuple>

#include "fuzz/target.hpp"
#include "fuzz/transport/ends.hpp"

namespace syncopate::fuzz::target {

using namespace transport::connect;

namespace {

const std::string kSecret = "sixteen bytes at least";

void face_noise(bool is_caller, Input noise) {
  Ends ends;
  auto tested = is_caller ? Handshake::call(std::move(ends.tested), {.to = 1}, kSecret)
                          : Handshake::answer(std::move(ends.tested), {.from = 0}, kSecret);
  if (!ends.send(noise)) return;
  tested.advance();
  ends.peer.close();
  tested.advance();
  hold(tested.state() == Handshake::State::refused, "noise never proves a secret");
}

Hello hello_of(Fields& fields) {
  Hello hello{
      .version = {}, .purpose = static_cast<Purpose>(fields.take<std::uint8_t>()), .group = 77, .from = 1, .to = 0};
  const auto wrong = fields.take<std::uint8_t>();
  if ((wrong & 1) != 0) hello.protocol = fields.take<std::uint16_t>();
  if ((wrong & 2) != 0) hello.version = text_of(fields.take_bytes(fields.take<std::uint8_t>()));
  if ((wrong & 4) != 0) hello.group = fields.take<std::uint64_t>();
  if ((wrong & 8) != 0) hello.from = fields.take<std::int32_t>();
  if ((wrong & 16) != 0) hello.to = fields.take<std::int32_t>();
  hello.stream = fields.take<std::uint8_t>();
  return hello;
}

/// Forwards bytes between two connections and alters the byte at position `at` of the far end's bytes.
class Wire final {
 public:
  Wire(transport::socket::Channel& near, transport::socket::Channel& far, std::uint8_t change, std::uint8_t at)
      : near_(near), far_(far), change_(change), at_(at) {}
  void carry() {
    std::array<std::byte, 512> bytes;
    const auto back = near_.read(std::span<std::byte>(bytes)).bytes;
    std::ignore = far_.write(base::ConstBytes(bytes).first(back));
    const auto forth = far_.read(std::span<std::byte>(bytes)).bytes;
    const bool is_there = at_ >= carried_ && at_ < carried_ + forth;
    if (is_there) bytes[at_ - carried_] ^= std::byte{change_};
    altered_ = altered_ || (is_there && change_ != 0);
    carried_ += forth;
    std::ignore = near_.write(base::ConstBytes(bytes).first(forth));
  }
  [[nodiscard]] bool altered() const noexcept { return altered_; }

 private:
  transport::socket::Channel &near_, &far_;
  std::uint8_t change_;
  std::size_t at_, carried_ = 0;
  bool altered_ = false;
};

}  // namespace

void handshake(Input input) {
  Fields fields(input);
  const auto choice = fields.take<std::uint8_t>();
  if (choice % 3 == 0) return face_noise(choice >= 128, fields.rest());
  const Hello theirs = hello_of(fields);
  const Hello mine{.version = {}, .purpose = Purpose::control, .group = 77, .from = 0, .to = 1};
  Ends near, far;
  auto tested = choice >= 128 ? Handshake::call(std::move(near.tested), mine, kSecret)
                              : Handshake::answer(std::move(near.tested), mine, kSecret);
  auto peer = choice >= 128 ? Handshake::answer(std::move(far.tested), theirs, kSecret)
                            : Handshake::call(std::move(far.tested), theirs, kSecret);
  Wire wire{near.peer, far.peer, choice % 3 == 1 ? std::uint8_t{0} : fields.take<std::uint8_t>(),
            fields.take<std::uint8_t>()};
  for (int turns = 0; turns < 8; ++turns) {
    tested.advance();
    peer.advance();
    wire.carry();
  }
  if (tested.state() != Handshake::State::done) return;
  hold(!wire.altered(), "no side is content with altered bytes");
  hold(tested.peer().group == 77 && (choice >= 128 ? tested.peer().from == 1 : tested.peer().to == 0),
       "who is let in is of this group, and meant this rank");
}

}  // namespace syncopate::fuzz::target
