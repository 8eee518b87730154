// Messages of the control tree: heartbeats, failures, farewells, and questions about operations.
#include "transport/membership/message.hpp"

#include <algorithm>
#include <span>

#include "base/wire.hpp"

namespace syncopate::transport::membership {

namespace {

constexpr std::size_t kMaxFailureText = 4096, kMaxWhereText = 1024;

void write(base::WireWriter& out, const Progress& progress) {
  out.number(progress.rank);
  out.number(progress.number);
  out.text(progress.text, kMaxOperationText);
}

void write(base::WireWriter& out, const Heartbeat& beat) {
  write(out, beat.mine);
  out.number(beat.rolling);
  write(out, beat.behind);
}

void write(base::WireWriter& out, const Failure& failure) {
  out.error_kind(failure.kind);
  out.text(failure.message, kMaxFailureText);
  out.number(static_cast<std::int32_t>(failure.where.rank));
  out.number(static_cast<std::int32_t>(failure.where.peer));
  out.text(failure.where.operation, kMaxWhereText);
  out.text(failure.where.tensor, kMaxWhereText);
}

void write(base::WireWriter& out, const Goodbye& goodbye) {
  out.number(goodbye.rank);
  out.number(goodbye.number);
  const auto count = std::min(goodbye.silences.size(), kMostSilences);
  out.number(static_cast<std::uint32_t>(count));
  for (const Silence& silence : std::span(goodbye.silences).first(count)) {
    out.number(silence.rank);
    out.number(silence.milliseconds);
  }
}

void write(base::WireWriter& out, const Question& question) {
  out.number(question.from);
  out.number(question.to);
  out.number(question.number);
}

void write(base::WireWriter& out, const Reply& reply) {
  out.number(reply.from);
  out.number(reply.to);
  out.number(reply.number);
  out.text(reply.text, kMaxOperationText);
  write(out, reply.last);
}

void write(base::WireWriter& /*out*/, const Regrouped& /*nothing*/) {}

void read(base::WireReader& in, Progress& progress) {
  progress.rank = in.number<std::int32_t>();
  progress.number = in.number<std::uint64_t>();
  progress.text = in.text(kMaxOperationText);
}

void read(base::WireReader& in, Heartbeat& beat) {
  read(in, beat.mine);
  beat.rolling = in.number<std::uint64_t>();
  read(in, beat.behind);
}

void read(base::WireReader& in, Failure& failure) {
  failure.kind = in.error_kind();
  failure.message = in.text(kMaxFailureText);
  failure.where.rank = in.number<std::int32_t>();
  failure.where.peer = in.number<std::int32_t>();
  failure.where.operation = in.text(kMaxWhereText);
  failure.where.tensor = in.text(kMaxWhereText);
}

void read(base::WireReader& in, Goodbye& goodbye) {
  goodbye.rank = in.number<std::int32_t>();
  goodbye.number = in.number<std::uint64_t>();
  const auto count = in.number<std::uint32_t>();
  if (count > kMostSilences) in.refuse("it has too many silences");
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto rank = in.number<std::int32_t>();
    goodbye.silences.push_back({rank, in.number<std::uint32_t>()});
  }
}

void read(base::WireReader& in, Question& question) {
  question.from = in.number<std::int32_t>();
  question.to = in.number<std::int32_t>();
  question.number = in.number<std::uint64_t>();
}

void read(base::WireReader& in, Reply& reply) {
  reply.from = in.number<std::int32_t>();
  reply.to = in.number<std::int32_t>();
  reply.number = in.number<std::uint64_t>();
  reply.text = in.text(kMaxOperationText);
  read(in, reply.last);
}

void read(base::WireReader& /*in*/, Regrouped& /*nothing*/) {}

template <class T>
Message body_of(base::WireReader& in) {
  T body;
  read(in, body);
  in.end();
  return body;
}

}  // namespace

std::string encode(const Message& message) {
  base::WireWriter out;
  out.number(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& body) { write(out, body); }, message);
  return out.take();
}

Message decode_message(std::string_view bytes) {
  base::WireReader in(bytes);
  switch (in.number<std::uint8_t>()) {
    case 0:
      return body_of<Heartbeat>(in);
    case 1:
      return body_of<Failure>(in);
    case 2:
      return body_of<Goodbye>(in);
    case 3:
      return body_of<Question>(in);
    case 4:
      return body_of<Reply>(in);
    case 5:
      return body_of<Regrouped>(in);
    default:
      in.refuse("its type is unknown");
  }
}

}  // namespace syncopate::transport::membership
