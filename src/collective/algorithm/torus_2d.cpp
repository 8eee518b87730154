// 2D torus: reduce-scatter along the rows of a grid, all-reduce along its columns, all-gather along the rows.
// CommLib paper ("2DTAR"); Jia et al., "Highly scalable deep learning training system", 2018. If ranks are numbered
// host by host and a row is a host, only 1/columns of the bytes leave a host.
//
//   3 x 2 grid, 7 ranks:   0 1      6 is an extra rank: it sends its vector to 0 first and receives the result last
//                          2 3      rank (i, j): after the rows, column j holds part j of the vector, cut in `rows`
//                          4 5      chunks for its ring
#include "base/require.hpp"
#include "collective/algorithm.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) { return collective == Collective::allreduce; }

Plan ring(Collective collective, std::uint32_t at, std::uint32_t size) {
  Plan plan{.chunks = size, .steps = {}};
  const plan::Positions positions{.at = at, .size = size};
  if (collective != Collective::allgather) plan::add_ring_reduce_scatter(plan, positions);
  if (collective != Collective::reduce_scatter) plan::add_ring_gather(plan, positions);
  return plan;
}

void add_grid(Plan& plan, const Shape& shape) {
  const std::uint32_t row = shape.rank / shape.columns, column = shape.rank % shape.columns;
  plan::Embedding along_row{.first = 0, .scale = shape.rows, .completes = shape.rows == 1};
  for (std::uint32_t j = 0; j < shape.columns; ++j) along_row.ranks.push_back(row * shape.columns + j);
  plan::Embedding along_column{.first = column * shape.rows};
  for (std::uint32_t i = 0; i < shape.rows; ++i) along_column.ranks.push_back(i * shape.columns + column);
  plan::embed(plan, ring(Collective::reduce_scatter, column, shape.columns), along_row);
  plan::embed(plan, ring(Collective::allreduce, row, shape.rows), along_column);
  plan::embed(plan, ring(Collective::allgather, column, shape.columns), along_row);
}

Plan build(const Shape& shape) {
  const pattern::ExtraRanks extra_ranks{shape.rows * shape.columns, shape.size};
  Plan plan{.chunks = extra_ranks.room, .steps = {}};
  if (!plan::fold_extra_ranks(plan, extra_ranks, shape.rank)) add_grid(plan, shape);
  plan::unfold_extra_ranks(plan, extra_ranks, shape.rank);
  return plan;
}

/// The most square grid of all ranks: its rows are the largest divisor up to the square root.
std::uint32_t most_square(std::uint32_t size) {
  std::uint32_t rows = 1;
  for (std::uint32_t divisor = 2; divisor * divisor <= size; ++divisor)
    if (size % divisor == 0) rows = divisor;
  return rows;
}

void resolve(Shape& shape, const Tuning& tuning, const Load& /*load*/) {
  const std::uint64_t rows = tuning.rows, columns = tuning.columns;
  base::require(rows <= shape.size && columns <= shape.size && rows * columns <= shape.size,
                "torus_2d: a grid of {} x {} does not fit on {} ranks; allowed: rows x columns <= ranks", rows, columns,
                shape.size);
  shape.rows = tuning.rows;
  shape.columns = tuning.columns;
  if (rows == 0 && columns == 0) shape.rows = most_square(shape.size);
  if (shape.rows == 0) shape.rows = shape.size / shape.columns;
  if (shape.columns == 0) shape.columns = shape.size / shape.rows;
}

bool sensible(const Shape& shape) {
  return shape.rows > 1 && shape.columns > 1 && shape.rows * shape.columns == shape.size;
}

// R rows, C columns: 2 (C + R - 2) alpha + 2 (RC-1)/(RC) n beta + (RC-1)/(RC) n gamma. The rank
// with the most extra ranks, g, also receives g whole vectors and sends g.
double seconds(const Shape& shape, const Load& load) {
  const double rows = shape.rows, columns = shape.columns, room = rows * columns;
  const double share = (room - 1) / room * load.bytes, left = shape.size - room;
  const double extra_ranks = left <= 0 ? 0 : 1 + static_cast<double>(static_cast<std::uint32_t>((left - 1) / room));
  const LinkCost& link = load.link;
  return 2 * (columns + rows - 2) * link.alpha_s + 2 * share * link.beta_s_per_byte + share * link.gamma_s_per_byte +
         extra_ranks * (2 * (link.alpha_s + load.bytes * link.beta_s_per_byte) + load.bytes * link.gamma_s_per_byte);
}

}  // namespace

extern constinit const Algorithm torus_2d{
    .name = "torus_2d",
    .summary = "Rings along the rows, then along the columns of a grid: a ring's bytes with about 4 sqrt(N) latencies",
    .source = "CommLib paper (2DTAR); Jia et al. 2018",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .resolve = resolve,
    .sensible = sensible,
};

}  // namespace syncopate::collective::algorithm
