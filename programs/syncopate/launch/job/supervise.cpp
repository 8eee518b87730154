// Supervision: runs a set of programs to their common end, with their output in whole lines and no leftovers.
#include "launch/job/supervise.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "launch/job/lines.hpp"
#include "launch/job/rank.hpp"
#include "launch/process/guardian.hpp"
#include "launch/process/signals.hpp"
#include "syncopate/tooling/blame.hpp"

namespace syncopate::tools::launch::job {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Treatment of the other ranks after a failure, in this order.
enum class EndStage : std::uint8_t { all_well, own_error, terminated, killed };

class Supervisor final {
 public:
  Supervisor(const std::vector<process::Program>& programs, const SuperviseOptions& options, const LineSink& sink)
      : programs_(programs), options_(options), sink_(sink), guardian_(options.files) {}
  ~Supervisor();
  void start_all();
  End run();

 private:
  void start(Rank& rank);
  [[nodiscard]] End unstarted_end();
  void replace(int index, int signal);
  void poll_once(int timeout_ms);
  [[nodiscard]] int wait_ms() const;
  void read_stream(int rank, Stream stream);
  void write(Line line);
  [[nodiscard]] bool awaits_reader(int file);
  void pass_on(int rank, Stream stream, std::string_view text);
  void show_progress(int rank);
  void take_signals();
  void forward(int number);
  void send(int number, bool to_attending = true);
  void stop_with_us();
  void collect_ends();
  void report_lost_worker(int rank);
  void note_stopped();
  void dismiss();
  void escalate();
  void kill_leftovers();
  void finish_output();
  void name_the_first();

  const std::vector<process::Program>& programs_;
  const SuperviseOptions& options_;
  const LineSink& sink_;
  process::SignalQueue signals_;
  process::Guardian guardian_;
  std::vector<Rank> ranks_;
  EndStage stage_ = EndStage::all_well;
  SteadyTime next_stage_ = SteadyTime::max();
  int interrupts_ = 0;
  bool is_dismissed_ = false;
  bool is_unread_ = false;     ///< the reader of the output took nothing after a signal
  std::optional<int> blamed_;  ///< by the first of the ranks whose group failed
  End end_;
};

/// Nothing is started where a signal has come before: `run` holds signals from its first instruction on.
void Supervisor::start_all() {
  take_signals();
  if (end_.forwarded_signal != 0) return;
  for (const process::Program& program : programs_) {
    Rank rank(program);
    start(rank);
    ranks_.push_back(std::move(rank));
  }
}

void Supervisor::start(Rank& rank) {
  rank.start();
  if (!rank.program.signals_by_input) guardian_.watch(rank.process.pid);
}

/// Starts another process in place of one that a signal has killed; first it prints the remaining output of that one.
void Supervisor::replace(int index, int signal) {
  Rank& rank = ranks_[index];
  for (const Stream stream : {Stream::output, Stream::error, Stream::blame}) {
    const auto pass = [&](std::string_view text) { pass_on(index, stream, text); };
    while (rank.read(stream, pass)) {
    }
    (stream == Stream::output ? rank.output : stream == Stream::error ? rank.error : rank.blame).finish(pass);
  }
  rank.kill_group();
  rank.reap();
  pass_on(index, Stream::error, fmt::format("killed by {}; started again", process::signal_name(signal)));
  start(rank);
}

/// Kills what is left of each rank's process group. Ended ranks are not reaped before, so that no other process can
/// have got their ids. Behind ssh the other side cleans up when its input ends.
void Supervisor::kill_leftovers() {
  for (Rank& rank : ranks_) {
    rank.process.input.close();
    if (!rank.end || !rank.program.signals_by_input) rank.kill_group();
  }
}

Supervisor::~Supervisor() {
  kill_leftovers();
  for (Rank& rank : ranks_) rank.reap();
}

/// The end of a job whose ranks were never started.
End Supervisor::unstarted_end() {
  const int number = end_.forwarded_signal;
  end_.ranks.assign(1, {"rank 0", 128 + number, number});
  end_.first_failure = 0;
  return end_;
}

End Supervisor::run() {
  if (ranks_.empty()) return unstarted_end();
  end_.ranks.resize(ranks_.size());
  while (std::ranges::any_of(ranks_, [](const Rank& rank) { return !rank.end; })) {
    poll_once(wait_ms());
    take_signals();
    collect_ends();
    dismiss();
    escalate();
  }
  finish_output();
  name_the_first();
  return end_;
}

/// The first to end need not be the first that failed: that one may still have been busy ending.
void Supervisor::name_the_first() {
  if (end_.first_failure < 0 || !blamed_) return;
  const auto index = static_cast<std::size_t>(*blamed_);
  if (end_.ranks[index].code == 0 || ranks_[index].was_asked) return;
  end_.first_failure = *blamed_;
  end_.is_blamed = true;
}

int Supervisor::wait_ms() const {
  if (next_stage_ == SteadyTime::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_stage_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<long>(0, left.count()));
}

void Supervisor::poll_once(int timeout_ms) {
  std::vector<pollfd> files{{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
  for (const Rank& rank : ranks_)  // poll skips the closed ones: -1
    for (const int file : {rank.process.output.get(), rank.process.error.get(), rank.process.blame.get()})
      files.push_back({.fd = file, .events = POLLIN, .revents = 0});
  if (poll(files.data(), files.size(), timeout_ms) <= 0) return;
  constexpr std::array kStreams{Stream::output, Stream::error, Stream::blame};  // in the order of `files`
  for (std::size_t i = 1; i < files.size(); ++i)
    if (files[i].revents != 0) read_stream(static_cast<int>((i - 1) / 3), kStreams[(i - 1) % 3]);
}

void Supervisor::read_stream(int index, Stream stream) {
  ranks_[index].read(stream, [&](std::string_view text) { pass_on(index, stream, text); });
  if (stream == Stream::error) show_progress(index);
}

void Supervisor::write(Line line) {
  line.ready = [this](int file) { return awaits_reader(file); };
  sink_(line);
}

/// Signals are forwarded meanwhile. After one a reader that takes nothing must not keep the job from its end.
bool Supervisor::awaits_reader(int file) {
  for (;;) {
    std::array<pollfd, 2> files{pollfd{.fd = file, .events = POLLOUT, .revents = 0},
                                pollfd{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
    const bool hurries = is_unread_ || stage_ == EndStage::killed;
    const int patience = hurries ? 0 : end_.forwarded_signal != 0 ? static_cast<int>(options_.reader.count()) : -1;
    const int found = poll(files.data(), files.size(), patience);
    if (found == 0) is_unread_ = true;
    if (found == 0 || files[0].revents != 0) return found > 0;
    take_signals();
  }
}

void Supervisor::pass_on(int rank, Stream stream, std::string_view text) {
  const std::string_view name = ranks_[static_cast<std::size_t>(rank)].program.name;
  if (stream == Stream::output) return write({rank, name, stream, text});
  const std::string_view shown = as_overwritten(text);
  // Descriptors do not pass through ssh: a rank on another host reports on its standard error.
  const bool may_blame = stream == Stream::blame || ranks_[static_cast<std::size_t>(rank)].program.signals_by_input;
  if (const std::optional<int> culprit = may_blame ? blamed_in(shown) : std::nullopt) {
    if (!blamed_ && static_cast<std::size_t>(*culprit) < ranks_.size()) blamed_ = culprit;
    return;
  }
  const bool is_erased = shown.size() < text.size() && shown.find_first_not_of(' ') == std::string_view::npos;
  if (stream == Stream::error && !is_erased) write({rank, name, stream, shown});  // no blanks over a progress line
}

/// An unfinished line with a carriage return is an update in place: only its newest text matters.
void Supervisor::show_progress(int index) {
  LineSplitter& lines = ranks_[index].error;
  if (lines.unfinished().find('\r') == std::string_view::npos) return;
  const std::string_view text = as_overwritten(lines.unfinished());
  const std::size_t kept = lines.unfinished().data() + lines.unfinished().size() - text.data();
  if (options_.progress && index == 0) write({index, {}, Stream::progress, text});
  if (kept + 1 < lines.unfinished().size()) lines.keep_last(kept + 1);
}

void Supervisor::take_signals() {
  while (const auto number = signals_.next()) {
    if (*number == SIGTSTP) stop_with_us();
    if (*number == SIGINT || *number == SIGTERM || *number == SIGHUP) forward(*number);
  }
}

/// An attending program stays until the others have ended: they may need it to end in order.
void Supervisor::forward(int number) {
  if (end_.forwarded_signal == 0) end_.forwarded_signal = number;
  end_.interrupted = end_.interrupted || end_.first_failure < 0;
  interrupts_ += number == SIGINT ? 1 : 0;
  if (interrupts_ < 2) return send(number, false);
  stage_ = EndStage::killed;
  next_stage_ = SteadyTime::max();
  send(SIGKILL);
}

void Supervisor::send(int number, bool to_attending) {
  for (Rank& rank : ranks_) {
    if (rank.end || (rank.program.attends && !to_attending)) continue;
    rank.was_asked = true;
    const bool by_input = rank.program.signals_by_input && rank.process.input.open() && number != SIGKILL;
    if (by_input) {
      process::write_to_program(rank.process.input.get(), process::signal_name(number).substr(3) + "\n");
    } else {
      kill(-rank.process.pid, number);
    }
  }
}

/// Ctrl-Z: the ranks are in process groups of their own, so the terminal's SIGTSTP reaches only us.
void Supervisor::stop_with_us() {
  for (const Rank& rank : ranks_)
    if (!rank.end) kill(-rank.process.pid, SIGSTOP);
  raise(SIGSTOP);  // returns after SIGCONT
  for (const Rank& rank : ranks_)
    if (!rank.end) kill(-rank.process.pid, SIGCONT);
}

void Supervisor::collect_ends() {
  std::vector<int> ended;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    siginfo_t about{};
    if (ranks_[i].end) continue;
    if (waitid(P_PID, static_cast<id_t>(ranks_[i].process.pid), &about, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    if (about.si_pid == 0) continue;
    const bool is_killed = about.si_code != CLD_EXITED;
    if (is_killed && stage_ == EndStage::all_well && !is_dismissed_ && ranks_[i].may_start_again()) {
      replace(static_cast<int>(i), about.si_status);
      continue;
    }
    const bool exited = about.si_code == CLD_EXITED, dismissed = is_dismissed_ && about.si_status == SIGTERM;
    const std::string name = ranks_[i].program.name.empty() ? fmt::format("rank {}", i) : ranks_[i].program.name;
    ranks_[i].end = exited || dismissed ? RankEnd{name, exited ? about.si_status : 0, 0}
                                        : RankEnd{name, 128 + about.si_status, about.si_status};
    end_.ranks[i] = *ranks_[i].end;
    ended.push_back(static_cast<int>(i));
  }
  // Among ranks found dead at the same time, one killed by a signal did not die of the others' failure.
  std::stable_partition(ended.begin(), ended.end(), [this](int rank) { return end_.ranks[rank].signal != 0; });
  bool ends_others = false;
  for (const int rank : ended) {
    if (end_.ranks[rank].code == 0) continue;
    if (end_.first_failure < 0) end_.first_failure = rank;
    const bool go_on = options_.others_go_on && !ranks_[static_cast<std::size_t>(rank)].program.attends;
    if (go_on) report_lost_worker(rank);
    ends_others = ends_others || !go_on || end_.forwarded_signal != 0;
  }
  if (!ends_others || stage_ != EndStage::all_well) return;
  note_stopped();
  stage_ = EndStage::own_error;
  next_stage_ = std::chrono::steady_clock::now() + options_.own_error;
}

/// The others may train for hours after it: the user reads at once that the job has one worker less.
void Supervisor::report_lost_worker(int rank) {
  const bool is_last =
      std::ranges::all_of(ranks_, [](const Rank& other) { return other.program.attends || other.end; });
  if (is_last || end_.interrupted) return;
  const std::string text = end_.ranks[static_cast<std::size_t>(rank)].description() + "; the others are not stopped";
  write({rank, {}, Stream::error, text});
}

/// A stopped rank does not end: the first to end is then one that missed it.
void Supervisor::note_stopped() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    siginfo_t about{};
    const auto pid = static_cast<id_t>(ranks_[i].process.pid);
    if (ranks_[i].end || waitid(P_PID, pid, &about, WSTOPPED | WNOHANG | WNOWAIT) != 0) continue;
    if (about.si_pid != 0) end_.stopped.push_back(static_cast<int>(i));
  }
}

/// Ends attending programs when all others have ended.
void Supervisor::dismiss() {
  if (is_dismissed_ || std::ranges::any_of(ranks_, [](const Rank& rank) { return !rank.program.attends && !rank.end; }))
    return;
  is_dismissed_ = true;
  send(SIGTERM);
}

void Supervisor::escalate() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_stage_) return;
  const bool ask = stage_ == EndStage::own_error;
  stage_ = ask ? EndStage::terminated : EndStage::killed;
  next_stage_ = ask ? now + options_.termination : SteadyTime::max();
  send(ask ? SIGTERM : SIGKILL);
}

/// A process that a rank has left behind may still hold its pipes: what is in them is read, their end is not awaited.
void Supervisor::finish_output() {
  kill_leftovers();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const auto open = [&] {
    for (const Rank& rank : ranks_)
      if (rank.process.output.open() || rank.process.error.open()) return true;
    return false;
  };
  while (open() && std::chrono::steady_clock::now() < deadline) poll_once(50);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const int rank = static_cast<int>(i);
    while (ranks_[i].process.blame.open() &&
           ranks_[i].read(Stream::blame, [&](std::string_view text) { pass_on(rank, Stream::blame, text); })) {
    }
    ranks_[i].output.finish([&](std::string_view text) { pass_on(rank, Stream::output, text); });
    ranks_[i].error.finish([&](std::string_view text) { pass_on(rank, Stream::error, text); });
  }
}

}  // namespace

End supervise(const std::vector<process::Program>& programs, const SuperviseOptions& options, const LineSink& sink) {
  for (const process::Program& program : programs)
    (void)process::resolve_program(program.argv.at(0));  // before anything is started
  Supervisor supervisor(programs, options, sink);
  supervisor.start_all();
  return supervisor.run();
}

}  // namespace syncopate::tools::launch::job
