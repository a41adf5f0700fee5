#pragma once

// Records into statements and back, through the lists of fields.h.

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "store/fields.h"
#include "store/sqlite.h"

namespace ridgeline {

template <typename Row>
[[nodiscard]] std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  Row row;
  visit_fields(row, [&](std::string_view name, const auto&) { names.push_back(name); });
  return names;
}

// "\"a\", \"b\""
template <typename Row>
[[nodiscard]] std::string quoted_fields() {
  std::string text;
  for (const std::string_view name : field_names<Row>()) {
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", name);
  }
  return text;
}

// "?, ?, ?"
[[nodiscard]] inline std::string placeholders(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += i == 0 ? "?" : ", ?";
  return text;
}

// Lists and maps are kept as JSON; empty ones as NULL.
template <typename Type>
inline constexpr bool is_composite =
    std::same_as<Type, Settings> || std::same_as<Type, NameList> || std::same_as<Type, NumberList>;
[[nodiscard]] std::string composite_text(const Settings& value);
[[nodiscard]] std::string composite_text(const NameList& value);
[[nodiscard]] std::string composite_text(const NumberList& value);
// False for what is no JSON of that type.
[[nodiscard]] bool parse_composite(const std::string& text, Settings& value);
[[nodiscard]] bool parse_composite(const std::string& text, NameList& value);
[[nodiscard]] bool parse_composite(const std::string& text, NumberList& value);

template <typename Field>
void bind_field(sqlite::Statement& statement, int parameter, const Field& field) {
  if constexpr (is_composite<Field>) {
    statement.bind_copy(parameter, composite_text(field));
  } else if constexpr (std::same_as<Field, ImageShape>) {
    statement.bind_copy(parameter, field.text());
  } else if constexpr (std::is_enum_v<Field>) {
    statement.bind(parameter, name_of(field));
  } else if constexpr (std::same_as<Field, std::optional<double>>) {
    if (field) {
      statement.bind(parameter, *field);
    } else {
      statement.bind_null(parameter);
    }
  } else if constexpr (std::integral<Field>) {
    statement.bind(parameter, std::int64_t{field});
  } else if constexpr (std::same_as<Field, std::string>) {
    statement.bind(parameter, std::string_view(field));
  } else {
    statement.bind(parameter, field);
  }
}

// Fills parameters from `first` on; gives the next free one.
template <typename Row>
int bind_row(sqlite::Statement& statement, int first, const Row& row) {
  visit_fields(row,
               [&](std::string_view, const auto& field) { bind_field(statement, first++, field); });
  return first;
}

[[noreturn]] void refuse_value(const sqlite::Statement& statement, const std::string& text,
                               std::string_view wanted);

template <typename Field>
void read_field(const sqlite::Statement& statement, int column, Field& field) {
  if constexpr (is_composite<Field>) {
    const std::string text = statement.text(column);
    if (!parse_composite(text, field)) refuse_value(statement, text, "a list or map in JSON");
  } else if constexpr (std::same_as<Field, ImageShape>) {
    const std::string text = statement.text(column);
    const std::optional<ImageShape> shape = ImageShape::parse(text);
    if (!shape) refuse_value(statement, text, "channels x height x width");
    field = *shape;
  } else if constexpr (std::is_enum_v<Field>) {
    const std::string name = statement.text(column);
    const std::optional<Field> value = parse_name<Field>(name);
    if (!value) refuse_value(statement, name, "one of " + joined(names_of<Field>(), ", "));
    field = *value;
  } else if constexpr (std::same_as<Field, std::optional<double>>) {
    field = statement.is_null(column) ? std::nullopt : std::optional(statement.real(column));
  } else if constexpr (std::integral<Field>) {
    field = static_cast<Field>(statement.integer(column));
  } else if constexpr (std::same_as<Field, std::string>) {
    field = statement.text(column);
  } else {
    field = statement.real(column);
  }
}

template <typename Row>
void read_row(const sqlite::Statement& statement, int first, Row& row) {
  visit_fields(row, [&](std::string_view, auto& field) { read_field(statement, first++, field); });
}

}  // namespace ridgeline
