// Rendezvous over TCP: rank 0 listens, gathers one text of every rank, and sends all of them to every rank.
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/connect/rendezvous/tcp_caller.hpp"
#include "transport/connect/rendezvous/tcp_host.hpp"

namespace syncopate::transport::connect::rendezvous {

namespace {

class OverTcp final : public Rendezvous {
 public:
  explicit OverTcp(TcpMeeting meeting) : meeting_(std::move(meeting)) {}

  std::vector<std::string> exchange(const Member& me, std::string mine, base::Time deadline) override {
    if (me.rank == 0) return TcpHost(meeting_, me, std::move(mine)).gather(deadline);
    return TcpCaller(meeting_, me, std::move(mine)).ask(deadline);
  }

 private:
  TcpMeeting meeting_;
};

}  // namespace

std::unique_ptr<Rendezvous> over_tcp(TcpMeeting meeting) { return std::make_unique<OverTcp>(std::move(meeting)); }

}  // namespace syncopate::transport::connect::rendezvous
