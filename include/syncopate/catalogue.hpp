// Catalogue: the components that can be chosen by name: the library's, and those that a program adds.
#pragma once

#include <vector>

namespace syncopate {

namespace compress {
struct Codec;
}
namespace schedule {
struct Policy;
}
namespace optim {
struct Rule;
}
namespace server {
struct Placement;
struct Consistency;
struct Storage;
}  // namespace server

/// A value that is passed in options; nothing is registered, and nothing is global. Every rank, worker and server of a
/// job needs the entries that the job names: a name that differs, or that one of them lacks, is a Mismatch.
class Catalogue final {
 public:
  /// The library's own entries (`syncopate info` lists them). A default-constructed catalogue is the same.
  [[nodiscard]] static Catalogue standard() { return {}; }

  /// This catalogue with one more entry. The entry is not copied: it must outlive everything that uses the catalogue.
  /// Throws Misuse for a name that the catalogue has already, or that is not made of a-z, 0-9 and _.
  [[nodiscard]] Catalogue with(const compress::Codec& mine) const;
  [[nodiscard]] Catalogue with(const schedule::Policy& mine) const;
  [[nodiscard]] Catalogue with(const optim::Rule& mine) const;
  [[nodiscard]] Catalogue with(const server::Placement& mine) const;
  [[nodiscard]] Catalogue with(const server::Consistency& mine) const;
  [[nodiscard]] Catalogue with(const server::Storage& mine) const;
  template <class Entry>
  Catalogue with(const Entry&& temporary) const = delete;

  /// All entries: the library's by name, then the added ones.
  [[nodiscard]] std::vector<const compress::Codec*> codecs() const;
  [[nodiscard]] std::vector<const schedule::Policy*> policies() const;
  [[nodiscard]] std::vector<const optim::Rule*> rules() const;
  [[nodiscard]] std::vector<const server::Placement*> placements() const;
  [[nodiscard]] std::vector<const server::Consistency*> consistencies() const;
  [[nodiscard]] std::vector<const server::Storage*> storages() const;

 private:
  std::vector<const compress::Codec*> codecs_;  ///< the added ones
  std::vector<const schedule::Policy*> policies_;
  std::vector<const optim::Rule*> rules_;
  std::vector<const server::Placement*> placements_;
  std::vector<const server::Consistency*> consistencies_;
  std::vector<const server::Storage*> storages_;
};

}  // namespace syncopate
