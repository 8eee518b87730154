// Arrays in the idx format, plain or gzipped: they have as many values as their sizes declare.
#include "input/idx.hpp"

#include <functional>
#include <numeric>

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

void idx(Input input) {
  for (const std::size_t dimensions : {1, 3})
    may_refuse<Corrupt>([&] {
      const auto array = input::idx::array_of({input.begin(), input.end()}, dimensions, "file");
      const auto declared =
          std::accumulate(array.sizes.begin(), array.sizes.end(), std::uint64_t{1}, std::multiplies<>());
      hold(array.sizes.size() == dimensions && array.values().size() == declared, "all declared values are there");
    });
}

}  // namespace syncopate::fuzz::target
