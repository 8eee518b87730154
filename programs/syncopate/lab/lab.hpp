// Lab: emulated hosts on one machine, each a network namespace behind a shaped cable into one bridge.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::tools::lab {

struct LabOptions {
  int hosts = 2;               ///< 1..128
  std::string rate = "1gbit";  ///< of every host's port, in each direction; "none": not shaped
  std::string name = "sync";   ///< one lab per name and user
  /// Lives until `stop`, also after this process. Otherwise it dies with the thread that started it.
  bool detached = false;
};

/// Stands for the bridge between the hosts where a host's number is asked for.
inline constexpr int kBridge = -1;

/// Traffic of one host's port; drops are those of the shaper.
struct PortCounters {
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint64_t sent_drops = 0, received_drops = 0;
};

/// Host i has the address 10.78.0.<i+1>, the interface eth0 and the hostname sync<i>, and knows the others by name.
/// Labs are apart from each other and from the machine's own network; nothing of the host system is changed.
/// Needs root, or a kernel that lets users make user namespaces, and `ip`, `tc` and `bridge` from iproute2.
class Lab final {
 public:
  /// Replaces a lab of the same name. Throws Misuse (hosts, rate, name), SystemFailure (not possible on this machine;
  /// the message has the reason and the remedy).
  [[nodiscard]] static Lab start(const LabOptions& options);
  [[nodiscard]] static std::optional<Lab> find(const std::string& name);  ///< one that runs
  [[nodiscard]] static std::vector<Lab> all();  ///< every one of this user that runs; forgets dead ones

  ~Lab();  ///< stops it, unless it is detached or was found
  Lab(Lab&&) noexcept;
  Lab& operator=(Lab&&) = delete;

  [[nodiscard]] const LabOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::string address(int host) const;
  /// Put in front of a command's argv, it runs on `host`, with the same pid: `syncopate lab exec --name N I`.
  [[nodiscard]] std::vector<std::string> exec_prefix(int host) const;
  /// Moves the calling process onto `host`; to be followed by exec. Single-threaded processes only.
  void enter(int host) const;
  void reshape(const std::string& rate);  ///< open connections stay
  [[nodiscard]] PortCounters counters(int host) const;
  void stop();  ///< SIGTERM, then SIGKILL, to what still runs inside; then the hosts are gone
  [[nodiscard]] pid_t owner() const noexcept { return owner_; }  ///< 0: detached
  [[nodiscard]] const std::string& state_file() const noexcept { return state_file_; }

 private:
  Lab() = default;
  void cable_hosts() const;
  void save() const;
  [[nodiscard]] bool alive() const;
  [[nodiscard]] static std::optional<Lab> load(const std::string& path);

  LabOptions options_;
  std::string state_file_;
  pid_t holder_ = 0;            ///< keeps the bridge's namespace; the hosts' keepers die with it
  std::string holder_started_;  ///< its start time, so that another process with its pid is not taken for it
  std::vector<pid_t> keepers_;  ///< one process per host that keeps its namespaces
  pid_t owner_ = 0;
  bool owned_ = false;  ///< this object stops it
};

}  // namespace syncopate::tools::lab
