// ServerTables::Job: a server's state of a job that is set up, each block under its own lock.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/rows/row_table.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate::server {

struct ServerTables::Job {
  struct Kept {
    Kept(const Block& of, ServerBlock made) : block(of), kept(std::move(made)) {}
    const Block block;
    base::Guarded<ServerBlock> kept;
    std::atomic<bool> is_missing = false;
    Clock imaged = 0;  ///< its number of steps when its last image was taken; under the lock of `kept`
  };

  struct KeptRows {
    base::Guarded<std::unique_ptr<RowTable>> table;
    std::atomic<bool> is_missing = false;
    std::atomic<Clock> imaged =
        0;  ///< its number of steps when its last image was taken; set under the lock of `table`
  };

  Job(const Setup& agreed, std::optional<NoValues> no_values)
      : setup(agreed),
        rules(agreed, no_values),
        row_rules(row_rules_of(agreed.rows, agreed.catalogue)),
        told(agreed.workers),
        met(agreed.workers),
        origin_step(agreed.first_step) {}

  const Setup setup;
  const JobRules rules;
  const std::vector<RowRules> row_rules;
  std::vector<std::unique_ptr<Kept>> blocks;
  std::map<std::size_t, std::vector<std::size_t>> joint;  ///< the blocks of every table whose blocks step together
  std::optional<RowMemory> row_memory;
  std::vector<std::unique_ptr<KeptRows>> rows;  ///< destroyed before their memory
  std::atomic<std::size_t> missing = 0;         ///< blocks and tables of rows of a replica whose image has not come
  std::vector<std::atomic<Clock>> told;         ///< the largest `wanted` that was sent to each worker
  std::string restored;                         ///< the source of a restored job; empty: not restored
  std::vector<std::atomic<bool>> met;           ///< workers that have come since then
  Clock origin_step = 0;                        ///< at which it was created or restored
  std::atomic<std::uint64_t> origin = 0;        ///< identifies it since then; 0: no worker has come
  std::atomic<std::uint32_t> origins = 0;       ///< of all servers' tables, from a worker; 0: not known
};

}  // namespace syncopate::server
