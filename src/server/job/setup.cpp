// Setups as bytes, the difference of two, and the blocks and terms that follow from one.
#include "server/job/setup.hpp"

#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "base/random.hpp"
#include "base/require.hpp"
#include "base/wire.hpp"
#include "optim/norms.hpp"
#include "server/job/settings.hpp"
#include "server/message.hpp"
#include "server/placement.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::server {

namespace {

constexpr std::size_t kMostName = 4096;
/// Clocks that begin below it cannot overflow within any job.
constexpr std::uint64_t kMostFirstStep = std::uint64_t{1} << 60;
constexpr std::size_t kMostTables = 1 << 20, kMostHyperparameters = 64;
/// Blocks of a job: about 100 bytes each on every worker and server.
constexpr double kMostBlocks = 1 << 22;
/// The elements of a block.
constexpr std::size_t kMostElements = kMostBodyBytes / sizeof(float);

constexpr std::uint8_t kSpared = 1, kMatrix = 2;  ///< properties of a table; a matrix's number of rows follows

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

std::size_t count(base::WireReader& reader, std::uint64_t most) {
  const auto value = reader.number<std::uint64_t>();
  if (value > most) reader.refuse(fmt::format("{} where at most {} are allowed", value, most));
  return value;
}

std::vector<std::string_view> names_of_codecs(const Catalogue& catalogue,
                                              const std::function<bool(const compress::Codec&)>& allowed) {
  std::vector<std::string_view> names;
  for (const compress::Codec* codec : catalogue.codecs())
    if (allowed(*codec)) names.push_back(codec->name);
  return names;
}

std::string shown(const Setup& setup, std::size_t table) {
  if (table >= setup.tables.size()) return "none";
  const auto& [name, elements, spared, rows] = setup.tables[table];
  return fmt::format("'{}' with {} elements{}{}", name, elements, rows > 0 ? fmt::format(" in {} rows", rows) : "",
                     spared ? ", spared" : "");
}

void write(base::WireWriter& writer, std::span<const std::pair<std::string, double>> hyperparameters) {
  writer.number(std::uint64_t{hyperparameters.size()});
  for (const auto& [name, value] : hyperparameters) {
    writer.text(name, kMostName);
    writer.number(bits_of(value));
  }
}

std::vector<std::pair<std::string, double>> read_hyperparameters(base::WireReader& reader) {
  std::vector<std::pair<std::string, double>> hyperparameters;
  for (std::size_t left = count(reader, kMostHyperparameters); left > 0; --left) {
    std::string name = reader.text(kMostName);
    hyperparameters.emplace_back(std::move(name), std::bit_cast<double>(reader.number<std::uint64_t>()));
  }
  return hyperparameters;
}

template <class Options>
void read(base::WireReader& reader, std::span<const Setting<std::type_identity_t<Options>>> settings,
          Options& options) try {
  for (const auto& setting : settings) setting.set(options, reader.text(kMostName));
} catch (const Misuse& misuse) {
  reader.refuse(misuse.what());
}

void write(base::WireWriter& writer, const RowOptions& rows) {
  writer.text(rows.name, kMostName);
  writer.number(std::uint64_t{rows.width});
  writer.text(rows.rule, kMostName);
  write(writer, rows.hyperparameters);
  writer.number(rows.seed);
  writer.number(bits_of(rows.scale));
}

RowOptions read_rows(base::WireReader& reader) {
  RowOptions rows{.name = reader.text(kMostName)};
  rows.width = count(reader, kMostRowWidth);
  rows.rule = reader.text(kMostName);
  rows.hyperparameters = read_hyperparameters(reader);
  rows.seed = reader.number<std::uint64_t>();
  rows.scale = std::bit_cast<double>(reader.number<std::uint64_t>());
  return rows;
}

std::string shown(std::span<const std::pair<std::string, double>> hyperparameters) {
  std::string text;
  for (const auto& [name, value] : hyperparameters)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string shown_rows(const Setup& setup, std::size_t table) {
  if (table >= setup.rows.size()) return "none";
  const RowOptions& rows = setup.rows[table];
  return fmt::format("'{}' with {} floats, rule {} ({}), seed {} and scale {}", rows.name, rows.width, rows.rule,
                     shown(rows.hyperparameters), rows.seed, rows.scale);
}

}  // namespace

std::string Setup::bytes() const {
  base::WireWriter writer;
  for (const std::uint64_t number :
       {std::uint64_t{workers}, std::uint64_t{servers}, static_cast<std::uint64_t>(first_step)})
    writer.number(number);
  for (const auto& setting : kJobSettings<Setup>) writer.text(setting.text(*this), kMostName);
  for (const auto& setting : coding_settings()) writer.text(setting.text(coding), kMostName);
  write(writer, hyperparameters);
  writer.number(std::uint64_t{tables.size()});
  for (const auto& [name, elements, is_spared, rows_of_table] : tables) {
    writer.text(name, kMostName);
    writer.number(std::uint64_t{elements});
    writer.number(static_cast<std::uint8_t>((is_spared ? kSpared : 0) | (rows_of_table > 0 ? kMatrix : 0)));
    if (rows_of_table > 0) writer.number(std::uint64_t{rows_of_table});
  }
  if (!rows.empty()) writer.number(std::uint64_t{rows.size()});
  for (const RowOptions& one : rows) write(writer, one);
  std::string result = writer.take();
  base::require(result.size() <= kMostBodyBytes,
                "the setup of this job, with the names of {} tables and {} tables of rows, takes {} bytes; allowed: at "
                "most {}; use shorter names, or fewer tables: one for several tensors",
                tables.size(), rows.size(), result.size(), kMostBodyBytes);
  return result;
}

Setup Setup::of(std::string_view bytes, const Catalogue& catalogue) {
  base::WireReader reader(bytes);
  Setup setup{.catalogue = catalogue};
  setup.workers = count(reader, kMostWorkers);
  setup.servers = count(reader, kMostWorkers);
  setup.first_step = static_cast<Clock>(count(reader, kMostFirstStep));
  read(reader, kJobSettings<Setup>, setup);
  read(reader, coding_settings(), setup.coding);
  setup.hyperparameters = read_hyperparameters(reader);
  for (std::size_t left = count(reader, kMostTables); left > 0; --left) {
    TableShape table{.name = reader.text(kMostName)};
    table.elements = count(reader, kMostTableElements);
    const auto properties = reader.number<std::uint8_t>();
    table.spared = (properties & kSpared) != 0;
    table.rows = (properties & kMatrix) != 0 ? count(reader, kMostTableElements) : 0;
    if (table.rows > 0 && table.elements % table.rows != 0)
      reader.refuse(fmt::format("{} elements in {} rows", table.elements, table.rows));
    setup.tables.push_back(std::move(table));
  }
  for (std::size_t left = reader.is_at_end() ? 0 : count(reader, kMostTables); left > 0; --left)
    setup.rows.push_back(read_rows(reader));
  reader.end();
  return setup;
}

std::string missing_name(const Setup& setup) {
  const auto missing = [](std::string_view what, const std::string& text, const auto& entries) {
    const std::string name = text.substr(0, text.find(':'));
    const bool is_there = std::ranges::any_of(entries, [&](const auto* entry) { return entry->name == name; });
    return is_there ? std::string{} : fmt::format("{} '{}'", what, name);
  };
  const Catalogue& catalogue = setup.catalogue;
  for (std::string text :
       {missing("placement", setup.placement, catalogue.placements()),
        missing("consistency", setup.consistency, catalogue.consistencies()),
        missing("storage", setup.storage, catalogue.storages()),
        missing("codec", setup.coding.codec, catalogue.codecs()), missing("codec", setup.answers, catalogue.codecs()),
        missing("optimizer", setup.optimizer, catalogue.rules())})
    if (!text.empty()) return text;
  for (const RowOptions& rows : setup.rows)
    if (std::string text = missing("optimizer", rows.rule, catalogue.rules()); !text.empty()) return text;
  return {};
}

std::string difference(const Setup& one, const Setup& other) {
  const auto differs = [](std::string_view what, const auto& a, const auto& b) {
    return a == b ? std::string{} : fmt::format("{} is {} there and {} here", what, b, a);
  };
  for (const auto& setting : coding_settings())
    if (std::string text = differs(setting.name, setting.text(one.coding), setting.text(other.coding)); !text.empty())
      return text;
  for (const auto& setting : kJobSettings<Setup>)
    if (std::string text = differs(setting.name, setting.text(one), setting.text(other)); !text.empty()) return text;
  for (std::string text :
       {differs("the number of workers", one.workers, other.workers),
        differs("the number of servers", one.servers, other.servers),
        differs("the optimizer's hyperparameters", shown(one.hyperparameters), shown(other.hyperparameters)),
        differs("the step to begin with (0, or that of the checkpoint which every worker resumes from)", one.first_step,
                other.first_step),
        differs("the number of tables", one.tables.size(), other.tables.size())})
    if (!text.empty()) return text;
  for (std::size_t table = 0; table < one.tables.size(); ++table)
    if (one.tables[table] != other.tables[table])
      return differs(fmt::format("table {}", table), shown(one, table), shown(other, table));
  for (std::size_t table = 0; table < std::max(one.rows.size(), other.rows.size()); ++table)
    if (shown_rows(one, table) != shown_rows(other, table))
      return differs(fmt::format("table {} of rows", table), shown_rows(one, table), shown_rows(other, table));
  return {};
}

namespace {

/// Shards hold a joint table as a whole.
void require_whole(const Setup& setup, std::size_t table, std::size_t elements) {
  std::vector<std::string_view> whole;
  for (const Placement* each : setup.catalogue.placements()) {
    const std::size_t bytes[] = {kMostElements * sizeof(float)};
    if (each->place({bytes, 2, sizeof(float)}).size() == 1) whole.push_back(each->name);
  }
  base::require(elements == setup.tables[table].elements,
                "optimizer {} under consistency {}: placement {} divides tables among servers, and the trust ratio "
                "needs the norms of whole ones; allowed: placement {}",
                setup.optimizer, setup.consistency, setup.placement, fmt::join(whole, ", "));
}

std::size_t columns_of(const TableShape& table) {
  return table.rows == 0 || table.elements == 0 ? 1 : table.elements / table.rows;
}

/// Elements that are not divided. A joint table is cut where its norms are, so that they have the bits of one process;
/// a matrix between its rows, unless a row exceeds a block.
std::size_t unit_of(const JobRules& rules, const TableShape& table) {
  if (rules.steps_jointly(table)) return optim::kBlock;
  const std::size_t columns = rules.keeps_rows_whole() ? columns_of(table) : 1;
  return columns <= kMostElements ? columns : 1;
}

/// The units of the elements from `begin` to `end`, which a placement gave to a server. A unit that it divided belongs
/// to the server that has its last element.
Range units_of(std::size_t begin, std::size_t end, std::size_t unit, std::size_t elements) {
  const auto cut = [&](std::size_t at) { return at == elements ? (at + unit - 1) / unit : at / unit; };
  return {cut(begin), cut(end)};
}
static_assert(kMostElements % optim::kBlock == 0);

/// Block::columns of a block with these elements.
std::size_t columns_of(const JobRules& rules, const TableShape& table, Range elements) {
  const std::size_t columns = rules.keeps_rows_whole() ? columns_of(table) : 1;
  return elements.begin % columns == 0 && elements.end % columns == 0 ? columns : 1;
}

/// Upper bound of the bytes of a packet of this block, with its number.
std::size_t most_bytes(const compress::Settings& settings, const compress::Tensor& block) {
  return compress::wire_bytes_of(settings, {&block, 1}, true) + (settings.codec->selects_alike ? kNumberBytes : 0);
}

/// Elements of a block so that its packets fit into a message. A packet of all elements may take more bytes than they
/// do, because it also has their indices.
std::size_t most_elements(const compress::Settings& settings) {
  const auto fits = [&](std::size_t elements) {
    const compress::Tensor block{.values = Buffer(nullptr, elements, DType::f32), .rows = elements};
    return settings.codec->codes != nullptr || most_bytes(settings, block) <= kMostBodyBytes;
  };
  std::size_t elements = kMostElements;
  while (!fits(elements) && elements > optim::kBlock) elements -= elements / 16;
  return elements;
}

void require_fits(const compress::Settings& settings, const Block& block) {
  const std::size_t bytes = most_bytes(settings, tensor_of(block, Buffer(nullptr, block.elements.size(), DType::f32)));
  base::require(bytes <= kMostBodyBytes, "codec {}: a packet of {} elements may take {} bytes; allowed: at most {}",
                settings.codec->name, block.elements.size(), bytes, kMostBodyBytes);
}

}  // namespace

std::vector<Block> blocks_of(const Setup& setup) {
  std::vector<std::size_t> bytes;
  double most_blocks = 0;
  for (const TableShape& table : setup.tables) {
    bytes.push_back(table.elements * sizeof(float));
    const std::size_t full = table.elements / kMostElements;
    most_blocks += static_cast<double>(full + std::min(table.elements, setup.servers));
  }
  base::require(most_blocks <= kMostBlocks,
                "{} tables on {} servers are up to {:.0f} blocks; allowed: {:.0f}: combine small tables, or use fewer "
                "servers",
                setup.tables.size(), setup.servers, most_blocks, kMostBlocks);
  const JobRules rules(setup);
  const std::size_t most = std::min(most_elements(rules.codec), most_elements(rules.answers));
  std::vector<Block> blocks;
  std::vector<std::uint32_t> next(setup.servers);
  for (const auto& [table, begin, end, server] :
       shards_of(placement_named(setup.placement, setup.catalogue), {bytes, setup.servers, sizeof(float)})) {
    const TableShape& shape = setup.tables[table];
    const bool is_joint = rules.steps_jointly(shape);
    if (is_joint) require_whole(setup, table, (end - begin) / sizeof(float));
    const std::size_t unit = unit_of(rules, shape), most_units = std::max<std::size_t>(most / unit, 1);
    const Range units = units_of(begin / sizeof(float), end / sizeof(float), unit, shape.elements);
    const std::size_t parts = (units.size() + most_units - 1) / most_units;
    for (std::size_t part = 0; part < parts; ++part) {
      const Range range = even_part(units.size(), parts, part);
      const Range elements{(units.begin + range.begin) * unit,
                           std::min((units.begin + range.end) * unit, shape.elements)};
      Block& block = blocks.emplace_back(Block{.table = table,
                                               .elements = elements,
                                               .columns = columns_of(rules, shape, elements),
                                               .server = server,
                                               .is_joint = is_joint,
                                               .key = base::mixed(setup.coding.seed ^ base::mixed(blocks.size() + 1)),
                                               .index = next[server]++});
      block.is_coded = rules.codes(shape, block);
      block.answers_are_coded = rules.codes_answers(shape, block);
      if (block.is_coded) require_fits(rules.codec, block);
      if (block.answers_are_coded) require_fits(rules.answers, block);
    }
  }
  return blocks;
}

namespace {

/// A server decodes each worker's packets separately.
compress::Settings settings_of(const CodingOptions& coding, const Catalogue& catalogue) {
  compress::Settings settings = compress::settings_of(coding, catalogue);
  const compress::Codec& codec = *settings.codec;
  base::require(compress::has_packets_alone(codec),
                "codec {} with a parameter server: its packets cannot be decoded alone{}{}; allowed: {}", codec.name,
                codec.conversation.empty() ? "" : ", because ", codec.conversation,
                fmt::join(names_of_codecs(catalogue, compress::has_packets_alone), ", "));
  settings.feedback.clip_norm = 0;
  return settings;
}

/// The coding of updates: the rule's momentum is accumulated before the selection instead.
CodingOptions coding_of(const Setup& setup, const optim::Rule& rule, const optim::Hyperparameters& with) {
  CodingOptions coding = setup.coding;
  if (coding.feedback.kind == FeedbackKind::momentum)
    syncopate::require_allowed({.rule = setup.optimizer,
                                .hyperparameters = setup.hyperparameters,
                                .corrected = true,
                                .catalogue = setup.catalogue});
  coding.feedback.momentum = with.momentum;
  coding.feedback.nesterov = rule.name == "nesterov";
  return coding;
}

/// Answers carry what earlier ones left out instead of feedback, and no other state.
bool codes_answers(const compress::Settings& settings) {
  constexpr std::size_t kRows = 64;
  std::array<float, kRows * kRows> matrix{};  // only its shape is looked at
  const compress::Tensor tensor{
      .values = Buffer(matrix.data(), matrix.size(), DType::f32), .rows = kRows, .columns = kRows};
  return compress::has_packets_alone(*settings.codec) && !settings.codec->wants_weights &&
         compress::state_bytes(settings, tensor, true, 1) == 0;
}

compress::Settings answers_of(const Setup& setup) {
  CodingOptions coding = setup.coding;
  coding.codec = setup.answers;
  coding.feedback = {.kind = FeedbackKind::none};
  const compress::Settings settings = settings_of(coding, setup.catalogue);
  const auto is_allowed = [&](const compress::Codec& codec) {
    return codes_answers(compress::settings_of(codec.name, setup.catalogue));
  };
  base::require(codes_answers(settings),
                "codec {} of answers: it keeps a state between packets or reads weights, which answers have not; "
                "allowed: {}",
                setup.answers, fmt::join(names_of_codecs(setup.catalogue, is_allowed), ", "));
  return settings;
}

}  // namespace

JobRules::JobRules(const Setup& setup, std::optional<NoValues> without)
    : workers(setup.workers),
      consistency(rule_of(setup.consistency, setup.catalogue)),
      storages(storages_of(setup.storage, setup.catalogue)),
      flow(flow_named(setup.flow)),
      optimizer(optim::rule_named(setup.optimizer, setup.catalogue)),
      with(optim::hyperparameters_of(optimizer, setup.hyperparameters)),
      codec(settings_of(coding_of(setup, optimizer, with), setup.catalogue)),
      answers(answers_of(setup)),
      local_clip(setup.coding.feedback.clip_norm),
      masks_velocity(!in_lockstep() && corrects()),
      seed(setup.coding.seed),
      first_step(setup.first_step),
      no_values(without) {
  base::require(first_step >= 0 && static_cast<std::uint64_t>(first_step) <= kMostFirstStep,
                "the first step is {}; allowed: 0 to {}", first_step, kMostFirstStep);
  if (masks_velocity) codec.feedback = {.kind = compress::Feedback::Kind::residual};
  base::require(setup.workers >= 1 && setup.workers <= kMostWorkers, "{} workers; allowed: 1 to {}", setup.workers,
                kMostWorkers);
}

/// A codec that only codes some shapes must code the table, and the block.
bool JobRules::codes(const compress::Settings& settings, const TableShape& table, const Block& block) {
  if (settings.codec->name == "none") return false;
  const auto values = [](std::size_t elements) { return Buffer(nullptr, elements, DType::f32); };
  const std::size_t columns = columns_of(table);
  const compress::Tensor whole{.values = values(table.elements), .rows = table.elements / columns, .columns = columns};
  if (!compress::is_coded(settings, whole)) return false;
  return settings.codec->codes == nullptr ||
         settings.codec->codes(settings, tensor_of(block, values(block.elements.size())));
}

namespace {

double expected_bytes(const compress::Settings& settings, const Block& block, bool is_coded) {
  const compress::Tensor tensor = tensor_of(block, Buffer(nullptr, block.elements.size(), DType::f32));
  if (!is_coded) return static_cast<double>(tensor.values.bytes().size());
  double bytes = 0;
  for (const compress::RoundBytes& round : compress::rounds_of(settings, {&tensor, 1})) bytes += round.bytes;
  return bytes;
}

}  // namespace

double JobRules::expected_update(const Block& block) const { return expected_bytes(codec, block, block.is_coded); }

double JobRules::expected_answer(const Block& block) const {
  return expected_bytes(answers, block, block.answers_are_coded);
}

compress::Tensor tensor_of(const Block& block, Buffer values) noexcept {
  return {.values = values, .rows = values.count / block.columns, .columns = block.columns, .key = block.key};
}

std::vector<Block> kept_blocks_of(const Setup& setup, const JobRules& rules) {
  std::vector<Block> blocks = blocks_of(setup);
  if (rules.no_values)
    for (Block& block : blocks) block.elements = {};
  return blocks;
}

}  // namespace syncopate::server
