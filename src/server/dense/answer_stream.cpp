// Answers of a server: copies of its weights, or packets that lead from version to version.
#include "server/dense/answer_stream.hpp"

#include <algorithm>

#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

constexpr std::size_t kLengthBytes = 4;

}  // namespace

AnswerStream::AnswerStream(const JobRules& rules, const Block& block)
    : block_(block), elements_(block.elements.size()), rules_(rules) {
  if (!block.answers_are_coded) return;
  coder_ = compress::coder_of(rules.answers, true);
  difference_.resize(elements_);
  const compress::Tensor tensor = difference();
  wire_.resize(compress::wire_bytes_of(rules_.answers, {&tensor, 1}, true));
}

compress::Tensor AnswerStream::difference() noexcept { return tensor_of(block_, Buffer(std::span(difference_))); }

bool AnswerStream::follows(std::uint64_t version) const noexcept {
  if (!coder_ || version == 0 || version > version_ || version_ - version > packets_.size()) return false;
  std::size_t bytes = 0;
  for (std::size_t i = packets_.size() - (version_ - version); i < packets_.size(); ++i)
    bytes += kLengthBytes + packets_[i].size();
  return bytes < elements_ * sizeof(float);
}

void AnswerStream::answer(std::span<const float> weights, std::uint64_t version, Weights& message) {
  if (!coder_ || version == kExact) {
    if (!is_current_ || coder_) show(weights);
    message.values = {copy_, std::as_bytes(std::span(*copy_))};
    return;
  }
  advance(weights);
  message.version = version_;
  if (!follows(version)) {
    show(shown_);
    message.values = {copy_, std::as_bytes(std::span(*copy_))};
    return;
  }
  auto body = std::make_shared<std::vector<std::byte>>();
  for (std::size_t i = packets_.size() - (version_ - version); i < packets_.size(); ++i) {
    const std::size_t at = body->size();
    body->resize(at + kLengthBytes);
    base::put(*body, at, static_cast<std::uint32_t>(packets_[i].size()));
    body->insert(body->end(), packets_[i].begin(), packets_[i].end());
  }
  message.is_coded = true;
  const base::ConstBytes bytes(*body);
  message.values = {std::move(body), bytes};
}

void AnswerStream::advance(std::span<const float> weights) {
  if (coder_ && !is_current_) encode(weights);
}

/// A copy that no answer holds any more is reused.
void AnswerStream::show(std::span<const float> weights) {
  if (!copy_ || copy_.use_count() > 1) copy_ = std::make_shared<std::vector<float>>(elements_);
  std::ranges::copy(weights, copy_->begin());
  is_current_ = is_current_ || !coder_;
}

void AnswerStream::encode(std::span<const float> weights) {
  is_current_ = true;
  if (version_++ == 0) {
    shown_.assign(weights.begin(), weights.end());
    return;
  }
  for (std::size_t i = 0; i < elements_; ++i) difference_[i] = weights[i] - shown_[i];
  const compress::Tensor tensor = difference();
  const compress::Round round = coder_->begin({&tensor, 1}, {.step = version_, .rank = 0, .ranks = 1}, wire_);
  const base::ConstBytes packet = round.payload.bytes();
  compress::add_packet(rules_.answers, *coder_, packet, {block_.key, version_}, shown_);
  packets_.emplace_back(packet.begin(), packet.end());
  if (packets_.size() > kMostPackets) packets_.pop_front();
}

std::vector<base::ConstBytes> packets_of(base::ConstBytes body) {
  std::vector<base::ConstBytes> packets;
  while (!body.empty()) {
    const std::size_t length = body.size() < kLengthBytes ? body.size() : base::get<std::uint32_t>(body, 0);
    if (body.size() < kLengthBytes || length > body.size() - kLengthBytes)
      throw Corrupt("an answer's packet is truncated");
    packets.push_back(body.subspan(kLengthBytes, length));
    body = body.subspan(kLengthBytes + length);
  }
  return packets;
}

}  // namespace syncopate::server
