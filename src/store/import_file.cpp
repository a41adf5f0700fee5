#include "store/import_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/suggest.h"
#include "base/text.h"
#include "store/field_json.h"
#include "store/identity_v4.h"
#include "store/rows.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFormat = 2;  // in 1, work and executor are words for people

// A value of the document and its place, "results.json: runs[2].samples[14]".
struct Place {
  const Json& value;
  std::string where;

  [[nodiscard]] const Json* find(std::string_view name) const {
    const auto found = value.find(name);
    return found == value.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] std::string at(std::string_view name) const {
    return fmt::format("{}{}{}", where, where.ends_with(' ') ? "" : ".", name);
  }
  [[noreturn]] void refuse(std::string_view name, std::string_view wanted) const {
    bad_input("{}: must be {}", at(name), wanted);
  }
};

void check_names(const Place& place, const std::vector<std::string_view>& known) {
  if (!place.value.is_object()) bad_input("{}: must be an object", place.where);
  for (const auto& [name, value] : place.value.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    bad_input("{}: is not a field of the format{}; known: {}", place.at(name),
              did_you_mean(name, known), joined(known, ", "));
  }
}

template <typename Field>
void take(const Place& place, std::string_view name, Field& field) {
  const Json* value = place.find(name);
  if (value == nullptr) return;
  if constexpr (std::same_as<Field, std::string>) {
    if (!value->is_string()) place.refuse(name, "text");
    field = value->get<std::string>();
  } else if constexpr (std::is_enum_v<Field>) {
    const auto parsed =
        value->is_string() ? parse_name<Field>(value->get_ref<const std::string&>()) : std::nullopt;
    if (!parsed) place.refuse(name, "one of " + joined(names_of<Field>(), ", "));
    field = *parsed;
  } else if constexpr (std::same_as<Field, bool>) {
    if (!value->is_boolean()) place.refuse(name, "true or false");
    field = value->get<bool>();
  } else if constexpr (std::same_as<Field, ImageShape>) {
    const auto shape =
        value->is_string() ? ImageShape::parse(value->get_ref<const std::string&>()) : std::nullopt;
    if (!shape) place.refuse(name, "channels x height x width, such as \"3x224x224\"");
    field = *shape;
  } else if constexpr (is_composite<Field>) {
    if (!read_composite(*value, field)) {
      place.refuse(name, std::same_as<Field, Settings>     ? "an object of texts"
                         : std::same_as<Field, NumberList> ? "a list of numbers"
                                                           : "a list of texts");
    }
    if constexpr (std::same_as<Field, NameList>) {
      std::sort(field.begin(), field.end());
      field.erase(std::unique(field.begin(), field.end()), field.end());
    }
  } else if constexpr (std::integral<Field>) {
    const double number = value->is_number() ? value->get<double>() : 0.5;
    if (number != std::floor(number) || std::abs(number) > 9e15 ||
        number > static_cast<double>(std::numeric_limits<Field>::max())) {
      place.refuse(name, "a whole number");
    }
    field = static_cast<Field>(number);
  } else {
    if (!value->is_number()) place.refuse(name, "a number or null");
    field = value->get<double>();
  }
}

template <typename Row>
void take_fields(const Place& place, Row& row) {
  visit_fields(row, [&](std::string_view name, auto& field) { take(place, name, field); });
}

void require(const Place& place, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (place.find(name) == nullptr) bad_input("{}: is missing", place.at(name));
  }
}

// By the table.
const std::map<std::string_view, std::vector<std::string_view>> kRequired = {
    {row_table<Sample>, {"wall_seconds"}},
    {row_table<StepTime>, {"index", "seconds"}},
    {row_table<Reading>, {"at_seconds", "device", "sensor", "value"}},
    {row_table<MemoryEntry>, {"device", "category", "source", "bytes"}},
    {row_table<Finding>, {"name", "severity", "evidence"}},
    {row_table<EpochRecord>, {"epoch", "samples", "seconds"}},
    {row_table<LiveEntry>, {"step", "category", "bytes"}},
    {row_table<TimelineEntry>, {"activity", "name", "track", "begin_seconds", "end_seconds"}}};

template <typename Row>
void take_list(const Place& run, std::vector<Row>& rows) {
  const std::string_view name = row_table<Row>;
  const Json* list = run.find(name);
  if (list == nullptr) return;
  if (!list->is_array()) run.refuse(name, "a list");
  const std::vector<std::string_view> known = field_names<Row>();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Place place{(*list)[i], fmt::format("{}[{}]", run.at(name), i)};
    check_names(place, known);
    Row row;
    require(place, kRequired.at(name));
    // A loss that is null is not a number: the training went astray.
    if constexpr (std::same_as<Row, EpochRecord>) {
      row.train_loss = row.train_accuracy = std::numeric_limits<double>::quiet_NaN();
    }
    take_fields(place, row);
    rows.push_back(std::move(row));
  }
}

template <typename Value>
void take_map(const Place& run, std::string_view name, std::map<std::string, Value>& map) {
  const Json* object = run.find(name);
  if (object == nullptr) return;
  if (!object->is_object()) run.refuse(name, "an object");
  const Place place{*object, run.at(name)};
  for (const auto& [key, value] : object->items()) {
    if (!value.is_null()) take(place, key, map[key]);
  }
}

template <typename Record>
void take_part(const Place& run, std::string_view name, Record& record) {
  const Json* object = run.find(name);
  if (object == nullptr) bad_input("{}: is missing", run.at(name));
  const Place place{*object, run.at(name)};
  check_names(place, field_names<Record>());
  take_fields(place, record);
  if constexpr (requires { record.batch; }) {
    require(place, std::array<std::string_view, 2>{"model", "batch"});
    if (record.batch < 1) place.refuse("batch", "at least 1");
  } else {
    require(place, std::array<std::string_view, 2>{"backend", "device"});
  }
}

void take_identity(const Place& place, RunRecord& run) {
  take_part(place, "work", run.work);
  take_part(place, "executor", run.executor);
  complete_settings(run.work);
}

// Of format 1, in which some of the work stood among the numbers.
void take_old_identity(const Place& place, RunRecord& run) {
  RunV4 old;
  old.command = run.command;
  old.arguments = run.arguments;
  take_part(place, "work", old.work);
  take_part(place, "executor", old.executor);
  const auto move = [&](const char* name, std::optional<double>& number) {
    const auto found = run.numbers.extract(name);
    if (found) number = found.mapped();
  };
  move("learning_rate", old.learning_rate);
  move("test_samples", old.test_samples);
  move("target_accuracy", old.target_accuracy);
  Identity identity = typed_identity(old);
  run.work = std::move(identity.work);
  run.executor = std::move(identity.executor);
}

std::string hex(std::string_view text) { return fmt::format("{:016x}", hash_of(text)); }

// The same contents, the same name: importing them twice changes nothing.
std::string uuid_of(const std::string& contents) {
  const std::string a = hex(contents), b = hex(contents + "#");
  return fmt::format("{}-{}-8{}-8{}-{}", a.substr(0, 8), a.substr(8, 4), a.substr(12, 3),
                     b.substr(0, 3), b.substr(4, 12));
}

EnvironmentRecord take_environment(const Place& document) {
  const Json* object = document.find("environment");
  if (object == nullptr) bad_input("{}: is missing", document.at("environment"));
  const Place place{*object, document.at("environment")};
  check_names(place, field_names<EnvironmentRecord>());
  EnvironmentRecord environment;
  visit_fields(environment, [&](std::string_view name, std::string& field) {
    const Json* value = place.find(name);
    if (name == "fingerprint" && value != nullptr && value->is_object()) {
      field = value->dump();
    } else {
      take(place, name, field);
    }
  });
  if (environment.key.empty()) environment.key = hex(object->dump());
  return environment;
}

RunContents take_run(const Place& place, const std::string& environment, std::int64_t format) {
  RunContents contents;
  RunRecord& run = contents.run;
  run.status = RunStatus::complete;
  run.command = "import";
  std::vector<std::string_view> known = {"work", "executor", "numbers", "notes"};
  visit_tables(contents,
               [&]<typename Row>(const std::vector<Row>&) { known.push_back(row_table<Row>); });
  // Descriptions of networks are for stores alone.
  visit_own_fields(run, [&](std::string_view name, const auto&) {
    if (name != "network") known.push_back(name);
  });
  check_names(place, known);
  visit_own_fields(run, [&](std::string_view name, auto& field) { take(place, name, field); });
  if (!run.environment.empty() && run.environment != environment) {
    place.refuse("environment", "the key of the file's environment, or left out");
  }
  run.environment = environment;
  require(place, std::array<std::string_view, 1>{"started"});
  if (run.uuid.empty()) run.uuid = uuid_of(json_text(place.value));
  take_map(place, "numbers", run.numbers);
  take_map(place, "notes", run.notes);
  format == 1 ? take_old_identity(place, run) : take_identity(place, run);
  visit_tables(contents, [&](auto& rows) { take_list(place, rows); });
  return contents;
}

std::ifstream opened(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) bad_input("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  return stream;
}

}  // namespace

bool looks_like_store(const std::filesystem::path& path) {
  constexpr std::string_view kStart = "SQLite format 3";
  std::string start(kStart.size(), '\0');
  opened(path).read(start.data(), std::ssize(start));
  return start == kStart;
}

bool looks_like_json(const std::filesystem::path& path) {
  std::ifstream file = opened(path);
  char first = 0;
  file >> first;
  return first == '{';
}

ImportFile read_import_file(const std::filesystem::path& path) {
  std::ifstream stream = opened(path);
  Json document;
  try {
    document = Json::parse(stream);
  } catch (const Json::parse_error& error) {
    bad_input("{}: is not JSON: {}", path.string(), error.what());
  }
  const Place place{document, path.string() + ": "};
  if (!document.is_object() || place.find("ridgeline_import") == nullptr) {
    bad_input("{}: is JSON, but has no results to import: 'ridgeline_import' is missing",
              path.string());
  }
  check_names(place, {"ridgeline_import", "environment", "runs"});
  std::int64_t format = 0;
  take(place, "ridgeline_import", format);
  if (format < 1 || format > kFormat) {
    bad_input("{}: is in format {} of results; this program knows 1 to {}", path.string(), format,
              kFormat);
  }
  ImportFile file;
  file.environment = take_environment(place);
  const Json* runs = place.find("runs");
  if (runs == nullptr || !runs->is_array()) place.refuse("runs", "a list");
  for (std::size_t i = 0; i < runs->size(); ++i) {
    file.runs.push_back(take_run({(*runs)[i], fmt::format("{}[{}]", place.at("runs"), i)},
                                 file.environment.key, format));
  }
  return file;
}

}  // namespace ridgeline
