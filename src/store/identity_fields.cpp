#include "store/identity_fields.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "models/model.h"
#include "store/field_json.h"

namespace ridgeline {
namespace {

std::string numbers_text(const NumberList& numbers) {
  std::vector<std::string> words;
  for (const double number : numbers) words.push_back(fmt::format("{:.10g}", number));
  return joined(words, ",");
}

template <typename Type>
std::string value_text(const Type& value) {
  if constexpr (std::same_as<Type, std::string>) {
    return value;
  } else if constexpr (std::same_as<Type, bool>) {
    return value ? "yes" : "";
  } else if constexpr (std::integral<Type>) {
    return value == 0 ? std::string() : fmt::format("{}", value);
  } else if constexpr (std::same_as<Type, double>) {
    return value == 0.0 ? std::string() : fmt::format("{:.10g}", value);
  } else if constexpr (std::same_as<Type, std::optional<double>>) {
    return value ? fmt::format("{:.10g}", *value) : std::string();
  } else if constexpr (std::same_as<Type, ImageShape>) {
    return value.text();
  } else if constexpr (std::same_as<Type, NameList>) {
    return joined(value, ", ");
  } else {
    static_assert(std::same_as<Type, NumberList>);
    return numbers_text(value);
  }
}

template <typename Type>
constexpr bool counts() {
  return !std::same_as<Type, bool> && (std::integral<Type> || std::same_as<Type, double> ||
                                       std::same_as<Type, std::optional<double>>);
}

template <typename Half>
const auto& half_of(const RunRecord& run) {
  if constexpr (std::same_as<Half, Work>) return run.work;
  if constexpr (std::same_as<Half, Executor>) return run.executor;
}
template <typename Half>
auto& half_of(RunRecord& run) {
  return const_cast<Half&>(half_of<Half>(std::as_const(run)));
}

template <typename Half, std::size_t index>
IdentityField entry() {
  static constexpr auto field = std::get<index>(Fields<Half>::list);
  using Type = std::remove_cvref_t<decltype(std::declval<Half>().*field.member)>;
  static constexpr std::string_view label =
      field.display.label.empty() ? field.name : field.display.label;
  static constexpr auto text = [](const RunRecord& run) -> std::string {
    if constexpr (std::same_as<Type, Settings>) {
      return settings_text(run.work);
    } else {
      return value_text(half_of<Half>(run).*field.member);
    }
  };
  IdentityField made{};
  made.name = field.name;
  made.label = label;
  made.unit = field.unit;
  made.meaning = field.meaning;
  made.pattern = field.display.phrase;
  made.usual = field.display.usual;
  made.scope = field.display.scope;
  made.of_work = std::same_as<Half, Work>;
  made.is_number = counts<Type>();
  made.is_flag = std::same_as<Type, bool>;
  made.text = text;
  made.phrase = [](const RunRecord& run) -> std::string {
    std::string value = text(run);
    if (value.empty() || value == field.display.usual) return {};
    if constexpr (std::same_as<Type, bool>) return std::string(label);
    if constexpr (std::integral<Type>) value = count_text(half_of<Half>(run).*field.member);
    std::string phrase = fmt::format(fmt::runtime(field.display.phrase), value);
    // "1 thread"
    const bool counted = value == "1" && field.display.phrase.starts_with("{} ");
    if (counted && phrase.ends_with('s') && !phrase.ends_with("ses")) phrase.pop_back();
    return phrase;
  };
  made.value = [](const RunRecord& run) -> std::optional<double> {
    const Type& value = half_of<Half>(run).*field.member;
    if constexpr (std::same_as<Type, std::optional<double>>) {
      return value;
    } else if constexpr (counts<Type>()) {
      return static_cast<double>(value);
    } else {
      (void)value;
      return std::nullopt;
    }
  };
  made.equal = [](const RunRecord& a, const RunRecord& b) {
    return half_of<Half>(a).*field.member == half_of<Half>(b).*field.member;
  };
  made.clear = [](RunRecord& run) { half_of<Half>(run).*field.member = Half{}.*field.member; };
  return made;
}

// What the fields say, one after another.
template <typename Wanted>
std::string phrases_of(const RunRecord& run, Wanted wanted) {
  std::vector<std::string> words;
  for (const IdentityField& field : identity_fields()) {
    if (!wanted(field)) continue;
    if (std::string phrase = field.phrase(run); !phrase.empty()) words.push_back(std::move(phrase));
  }
  return joined(words, ", ");
}

template <typename Half>
void add_entries(std::vector<IdentityField>& entries) {
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (entries.push_back(entry<Half, index>()), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(Fields<Half>::list)>>());
}

}  // namespace

std::string ImageShape::text() const {
  return *this == ImageShape{} ? std::string() : fmt::format("{}x{}x{}", channels, height, width);
}

double ImageShape::pixels() const {
  return static_cast<double>(channels) * static_cast<double>(height) * static_cast<double>(width);
}

std::optional<ImageShape> ImageShape::parse(std::string_view text) {
  ImageShape shape;
  if (text.empty()) return shape;
  for (std::int64_t* size : {&shape.channels, &shape.height, &shape.width}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *size);
    if (error != std::errc() || *size < 1) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const bool last = size == &shape.width;
    if (last ? !text.empty() : !text.starts_with('x')) return std::nullopt;
    if (!last) text.remove_prefix(1);
  }
  return shape;
}

std::span<const IdentityField> identity_fields() {
  static const std::vector<IdentityField> fields = [] {
    std::vector<IdentityField> entries;
    add_entries<Work>(entries);
    add_entries<Executor>(entries);
    return entries;
  }();
  return fields;
}

const IdentityField* find_identity_field(std::string_view name) {
  for (const IdentityField& field : identity_fields()) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

const IdentityField& identity_field(std::string_view name) {
  const IdentityField* found = find_identity_field(name);
  ensure(found != nullptr, "runs have no field named {}", name);
  return *found;
}

Identity identity_without(const RunRecord& run, std::span<const std::string_view> names) {
  RunRecord copy;
  copy.work = run.work;
  copy.executor = run.executor;
  for (const std::string_view name : names) identity_field(name).clear(copy);
  return {std::move(copy.work), std::move(copy.executor)};
}

std::string identity_key(const RunRecord& run, std::span<const std::string_view> names) {
  const Identity identity = identity_without(run, names);
  return json_text(to_json(identity.work)) + json_text(to_json(identity.executor));
}

void complete_settings(Work& work) {
  if (!work.model_hash.empty()) return;
  for (const ModelInfo& model : all_models()) {
    if (model.name != work.model) continue;
    for (const ModelOption& option : model.options) {
      work.settings.emplace(option.name, option.fallback);
    }
  }
}

std::string settings_text(const Work& work) {
  const auto models = all_models();
  const auto model = std::find_if(models.begin(), models.end(),
                                  [&](const ModelInfo& each) { return each.name == work.model; });
  std::vector<std::string> words;
  for (const auto& [name, value] : work.settings) {
    const bool usual =
        model != models.end() && work.model_hash.empty() &&
        std::any_of(model->options.begin(), model->options.end(), [&](const ModelOption& option) {
          return option.name == name && option.fallback == value;
        });
    if (!usual) words.push_back(name + "=" + value);
  }
  return joined(words, ", ");
}

std::string optimizer_text(const Work& work) {
  RunRecord run;
  run.work = work;
  std::vector<std::string> words;
  for (const char* name : {"optimizer", "learning_rate", "momentum", "nesterov", "weight_decay"}) {
    std::string phrase = identity_field(name).phrase(run);
    if (!phrase.empty()) words.push_back(std::move(phrase));
  }
  return joined(words, ", ");
}

std::string options_text(const Executor& executor) {
  RunRecord run;
  run.executor = executor;
  std::vector<std::string> words;
  for (const char* name :
       {"modes", "ranks", "reduce", "deterministic", "recompute", "disabled_passes"}) {
    std::string phrase = identity_field(name).phrase(run);
    if (!phrase.empty()) words.push_back(std::move(phrase));
    if (name == std::string_view("ranks") && executor.transport == kUnconnected) {
      words.emplace_back(kUnconnected);
    }
  }
  return joined(words, ", ");
}

std::string work_text(const RunRecord& run) {
  return phrases_of(run, [](const IdentityField& field) { return field.of_work; });
}

std::string executor_text(const RunRecord& run) {
  const Executor& by = run.executor;
  const std::string rest = phrases_of(run, [](const IdentityField& field) {
    return !field.of_work && field.name != "backend" && field.name != "device";
  });
  return fmt::format("{} on {}{}{}", by.backend, by.device, rest.empty() ? "" : ", ", rest);
}

std::vector<std::string_view> batch_fields(const Work& work) {
  if (work.full_batch) return {"batch", "data_samples"};
  return {"batch"};
}

nlohmann::ordered_json to_json(const Work& work) { return fields_json(work); }
nlohmann::ordered_json to_json(const Executor& executor) { return fields_json(executor); }

}  // namespace ridgeline
