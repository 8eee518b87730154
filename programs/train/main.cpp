// syncopate-train: joins the job's group and trains; a failure prints one row and one line, and sets the exit code.
#include <malloc.h>
#include <signal.h>

#include <cstring>
#include <exception>

#include "options.hpp"
#include "profile.hpp"
#include "ranks/equal.hpp"
#include "ranks/interrupt.hpp"
#include "record/output.hpp"
#include "syncopate/group.hpp"
#include "syncopate/tooling/standard_streams.hpp"
#include "training.hpp"

namespace {

using namespace syncopate;

/// A training step frees and allocates the same large tensors. Returning their pages to the system in between costs a
/// page fault per page in every step.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
}

bool came_from_group(const Error& error) {
  const ErrorKind kind = error.kind();
  return kind == ErrorKind::peer_lost || kind == ErrorKind::timeout || kind == ErrorKind::mismatch ||
         kind == ErrorKind::remote_failure;
}

int fail(const Error& error, Group* group, bool json) {
  if (group && !came_from_group(error)) group->abort(error.what(), error.where().tensor);
  train::print_error(error, group ? group->rank() : -1, json);
  return exit_code_of(error.kind());
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_descriptors();
  bool json = false;
  for (int i = 1; i < argc; ++i) json = json || std::strcmp(argv[i], "--json") == 0;
  std::unique_ptr<Group> group;
  try {
    keep_freed_memory();
    ::signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit becomes a write error, like a full disk
    const std::optional<train::Options> options = train::parse_options(argc, argv);
    if (!options) return finish_output(), 0;
    GroupOptions joining;
    if (!options->log_level.empty()) joining.log.level = log_level_named(options->log_level);
    const bool served = options->is_served() && options->profile.empty();
    group = served ? std::move(Group::threads(1).front()) : Group::join(joining);
    const train::Place place = served ? train::place_among_workers() : train::Place{group->rank(), group->size()};
    train::require_equal(*group, options->shared, "start every rank with the same options");
    int signal = 0;
    if (options->profile.empty())
      signal = train::Training(*group, place, *options).run();
    else
      train::write_profile(*group, *options);
    group.reset();
    train::end_by(signal);
    finish_output();
    return 0;
  } catch (const Error& error) {
    return fail(error, group.get(), json);
  } catch (const std::exception& error) {
    return fail(SystemFailure(error.what()), group.get(), json);
  }
}
