// Layer tables: reading rows, joining those of a layer.
#include "profile/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "syncopate/error.hpp"

namespace syncopate::tools::profile {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  if (!cells.empty() && cells.back().ends_with('\r')) cells.back().pop_back();
  return cells;
}

struct TableLine {
  const std::string& file;
  int number = 0;
  std::vector<std::string> cells;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Corrupt(fmt::format("{}:{}: {}", file, number, what));
  }
  [[nodiscard]] std::size_t column(const std::string& name) const {
    const auto found = std::ranges::find(cells, name);
    if (found == cells.end()) refuse(fmt::format("no column \"{}\"; a table has name, elements, flops", name));
    return static_cast<std::size_t>(found - cells.begin());
  }
  [[nodiscard]] double amount(std::size_t column) const {
    double value = 0;
    const std::string& cell = cells[column];
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool whole = error == std::errc{} && end == cell.data() + cell.size();
    if (!whole || !std::isfinite(value) || value < 0 || value > 1e18)
      refuse(fmt::format("'{}' is not a number of at least 0", cell));
    return value;
  }
};

std::string layer_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

bool joins(const LayerWork& layer, const std::string& name) {
  return name.rfind('.') != std::string::npos && layer.name == layer_of(name);
}

}  // namespace

std::vector<LayerWork> read_table(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw SystemFailure(fmt::format("cannot read {}: {}", file, std::strerror(errno)));
  std::vector<LayerWork> layers;
  std::size_t name = 0, elements = 0, flops = 0, columns = 0;
  int number = 0;
  for (std::string text; std::getline(stream, text);) {
    const TableLine line{file, ++number, cells_of(text)};
    if (line.cells.empty() || text.starts_with('#')) continue;
    if (columns == 0) {
      name = line.column("name"), elements = line.column("elements"), flops = line.column("flops");
      columns = line.cells.size();
      continue;
    }
    if (line.cells.size() != columns)
      line.refuse(fmt::format("{} cells; the header has {}", line.cells.size(), columns));
    const std::string& tensor = line.cells[name];
    const auto count = static_cast<std::uint64_t>(line.amount(elements));
    if (count == 0) line.refuse("a layer without elements");
    if (layers.empty() || !joins(layers.back(), tensor)) layers.push_back({layer_of(tensor), 0, 0});
    layers.back().elements += count;
    layers.back().flops += line.amount(flops);
  }
  if (layers.empty())
    throw Corrupt(fmt::format("{}: no layers; a table has a header name,elements,flops and rows", file));
  return layers;
}

}  // namespace syncopate::tools::profile
