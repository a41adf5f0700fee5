#include "audit/context.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "analysis/stats/summary.h"
#include "base/parse.h"
#include "base/text.h"
#include "report/table.h"

namespace ridgeline::audit {
namespace {

// The last number in the text: 224 of "3x224x224".
std::optional<std::int64_t> last_number(std::string_view text) {
  const std::size_t end = text.find_last_of("0123456789");
  if (end == std::string_view::npos) return std::nullopt;
  const std::size_t before = text.find_last_not_of("0123456789", end);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return number_in<std::int64_t>(text.substr(begin, end - begin + 1));
}

bool holds(const std::string& text, std::string_view part) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find(part) != std::string::npos;
}

// Neither a hash nor a whole text.
bool is_readable(const std::string& word) {
  const bool hash = word.size() >= 16 && word.find_first_not_of("0123456789abcdef-") == word.npos;
  return !hash && word.size() <= 60;
}

// "3.2", not "3.200".
std::string without_zeros(double number, int digits) {
  std::string text = report::number_text(number, digits);
  if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
  text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// A code for each value of a key column.
std::uint64_t code_of(const Column& column, std::size_t row) {
  if (column.is_words()) return column.codes[row];
  return column.has(row) ? std::bit_cast<std::uint64_t>(column.value(row)) : 0;
}

}  // namespace

std::string_view name_of(Severity severity) {
  if (severity == Severity::error) return "error";
  return severity == Severity::warning ? "warning" : "note";
}

std::string_view name_of(Confidence confidence) {
  if (confidence == Confidence::certain) return "certain";
  return confidence == Confidence::likely ? "likely" : "possible";
}

Context::Context(const Table& table, const Defaults& defaults, Facts& facts)
    : table_(table), defaults_(defaults), facts_(facts) {
  make_groups();
}

// Column by column: rows with the same number so far and the same cell get the same new number.
void Context::make_groups() {
  std::vector<std::uint32_t> group(table_.rows(), 0);
  for (const Column& column : table_.columns) {
    if (!info_of(column.role).key) continue;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    std::uint64_t last_key = 0;
    std::uint32_t last_number = 0, next = 0;
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      const std::uint64_t code = code_of(column, row) * 0x9E3779B97F4A7C15ULL;
      const std::uint64_t key = (code ^ (code >> 31U)) + group[row] * 0xBF58476D1CE4E5B9ULL;
      if (row == 0 || key != last_key) {
        const auto [found, fresh] = numbers.emplace(key, next);
        if (fresh) ++next;
        last_key = key;
        last_number = found->second;
      }
      group[row] = last_number;
    }
  }
  // By first appearance.
  std::unordered_map<std::uint32_t, std::size_t> places;
  for (std::size_t row = 0; row < table_.rows(); ++row) {
    const auto [found, fresh] = places.emplace(group[row], groups_.size());
    if (fresh) groups_.emplace_back();
    groups_[found->second].rows.push_back(row);
  }
}

std::string Context::label(std::size_t row) const {
  std::vector<std::string> parts;
  if (std::string name = model(row); !name.empty()) parts.push_back(std::move(name));
  if (const auto size = batch(row)) parts.push_back(fmt::format("batch {}", *size));
  for (const Role role : {Role::device, Role::backend, Role::precision, Role::operation}) {
    for (const Column* column : table_.all(role)) {
      if (column->has(row) && is_readable(column->word(row))) parts.push_back(column->word(row));
    }
  }
  return parts.empty() ? fmt::format("line {}", table_.lines[row]) : joined(parts, ", ");
}

std::optional<double> Context::batch(std::size_t row) const {
  if (const auto value = table_.number(Role::batch, row)) return value;
  if (defaults_.batch) return static_cast<double>(*defaults_.batch);
  return std::nullopt;
}

std::string Context::precision(std::size_t row) const { return table_.word(Role::precision, row); }

std::string Context::model(std::size_t row) const {
  std::string word = table_.word(Role::model, row);
  return word.empty() ? defaults_.model : word;
}

std::string Context::executor(std::size_t row) const {
  std::vector<std::string> words;
  for (const Role role : {Role::device, Role::backend}) {
    for (const Column* column : table_.all(role)) {
      if (column->has(row) && is_readable(column->word(row))) words.push_back(column->word(row));
    }
  }
  return joined(words, " ");
}

std::string Context::kind(std::size_t row) const {
  std::string kind = device_kind(executor(row));
  if (kind.empty() && !defaults_.hardware.empty()) kind = device_kind(defaults_.hardware);
  return kind;
}

bool Context::is_inference(std::size_t row) const {
  const std::string kind = table_.word(Role::kind, row) + table_.word(Role::phase, row);
  return holds(kind, "infer") || holds(kind, "eval") || holds(kind, "test") ||
         holds(kind, "forward");
}

bool Context::is_warmup(std::size_t row) const {
  return holds(table_.word(Role::phase, row), "warm");
}

const DatasetFacts* Context::dataset(std::size_t row) const {
  return find_dataset(table_.word(Role::dataset, row));
}

std::optional<std::int64_t> Context::classes(std::size_t row) const {
  if (const auto value = table_.number(Role::classes, row)) {
    return static_cast<std::int64_t>(*value);
  }
  if (defaults_.classes) return defaults_.classes;
  const DatasetFacts* data = dataset(row);
  return data != nullptr && data->classes > 0 ? std::optional(data->classes) : std::nullopt;
}

NetworkQuery Context::query(std::size_t row) const {
  NetworkQuery query{.model = model(row), .image = defaults_.image, .classes = classes(row)};
  if (const auto size = last_number(table_.word(Role::image, row)); size && *size > 0) {
    query.image = size;
  } else if (const DatasetFacts* data = dataset(row); !query.image && data != nullptr) {
    if (data->image > 0) query.image = data->image;
  }
  return query;
}

const NetworkFacts* Context::network(std::size_t row) {
  return has_options(row) ? nullptr : facts_.network(query(row));
}

// "hidden=64" in a column of options: another network than the name alone tells.
bool Context::has_options(std::size_t row) const {
  return std::ranges::any_of(table_.all(Role::condition), [&](const Column* column) {
    return column->is_words() && column->has(row) &&
           column->word(row).find('=') != std::string::npos;
  });
}

const HardwareFacts* Context::hardware(std::size_t row) {
  for (const Role role : {Role::device, Role::backend}) {
    for (const Column* column : table_.all(role)) {
      if (!column->has(row)) continue;
      if (const HardwareFacts* known = facts_.hardware(column->word(row))) return known;
    }
  }
  if (defaults_.hardware.empty()) return nullptr;
  // --hardware names the GPU: rows of the processor have other roofs.
  const bool other =
      device_kind(executor(row)) == "cpu" && device_kind(defaults_.hardware) != "cpu";
  return other ? nullptr : facts_.hardware(defaults_.hardware);
}

std::optional<double> Context::rate(std::size_t row) const {
  if (const auto told = table_.number(Role::throughput, row)) return told;
  const auto over = [](std::optional<double> samples, std::optional<double> seconds) {
    return samples && seconds && *seconds > 0.0 ? std::optional(*samples / *seconds) : std::nullopt;
  };
  if (const auto value = over(batch(row), table_.number(Role::batch_time, row))) return value;
  const auto samples = table_.number(Role::samples, row);
  if (const auto value = over(samples, table_.number(Role::epoch_time, row))) return value;
  const auto epochs = table_.number(Role::epochs, row);
  if (samples && epochs) {
    if (const auto value = over(*samples * *epochs, table_.number(Role::total_time, row))) {
      return value;
    }
  }
  return over(1.0, table_.number(Role::image_time, row));
}

std::optional<double> Context::seconds(std::size_t row) const {
  for (const Role role :
       {Role::batch_time, Role::time, Role::epoch_time, Role::total_time, Role::image_time}) {
    if (const auto value = table_.number(role, row)) return value;
  }
  return std::nullopt;
}

std::optional<double> Context::rate(const Group& group) const {
  std::vector<double> rates;
  for (const std::size_t row : group.rows) {
    const auto value = rate(row);
    if (value && *value > 0.0) rates.push_back(*value);
  }
  return rates.empty() ? std::nullopt : std::optional(median_of(rates));
}

std::vector<double> Context::series(const Group& group, Role role) const {
  const Column* column = table_.find(role);
  std::vector<double> values;
  if (column == nullptr) return values;
  for (const std::size_t row : group.rows) {
    if (column->has(row) && column->value(row) > 0.0) values.push_back(column->value(row));
  }
  return values;
}

Finding found(std::string_view check, Severity severity, Confidence confidence,
              std::string evidence, std::string cause, const std::vector<std::size_t>& rows) {
  constexpr std::size_t kMostRowsKept = 20;
  Finding finding{.check = std::string(check),
                  .severity = severity,
                  .confidence = confidence,
                  .evidence = std::move(evidence),
                  .cause = std::move(cause),
                  .rows = rows,
                  .row_count = rows.size()};
  if (finding.rows.size() > kMostRowsKept) finding.rows.resize(kMostRowsKept);
  return finding;
}

std::string share_text(double share) { return without_zeros(100.0 * share, 3) + '%'; }

std::string flop_rate_text(double rate) { return amount_text(rate) + "FLOP/s"; }

std::string amount_text(double amount) {
  const std::pair<double, const char*> prefixes[] = {
      {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [scale, prefix] : prefixes) {
    if (std::abs(amount) >= scale) {
      return fmt::format("{} {}", without_zeros(amount / scale, 3), prefix);
    }
  }
  return without_zeros(amount, 3) + ' ';
}

std::string plain_number(double number) {
  if (std::abs(number) < 1e15 && number == std::floor(number)) {
    return count_text(static_cast<std::int64_t>(number));
  }
  return without_zeros(number, 4);
}

bool near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace ridgeline::audit
