#pragma once

// Values of fields as JSON and back.

#include <nlohmann/json.hpp>

#include "store/fields.h"

namespace ridgeline {

template <typename Type>
[[nodiscard]] nlohmann::ordered_json value_json(const Type& value) {
  if constexpr (std::is_enum_v<Type>) {
    return std::string(name_of(value));
  } else if constexpr (std::same_as<Type, std::optional<double>>) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  } else if constexpr (std::same_as<Type, ImageShape>) {
    return value.text();
  } else {
    return value;
  }
}

template <typename Record>
[[nodiscard]] nlohmann::ordered_json fields_json(const Record& record) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  visit_fields(record, [&](std::string_view name, const auto& value) {
    object[std::string(name)] = value_json(value);
  });
  return object;
}

// Lists and maps; false when the document is something else.
template <typename Type>
[[nodiscard]] bool read_composite(const nlohmann::ordered_json& document, Type& value) {
  const bool shape = std::same_as<Type, Settings> ? document.is_object() : document.is_array();
  if (!shape) return false;
  for (const auto& element : document) {
    if (std::same_as<Type, NumberList> ? !element.is_number() : !element.is_string()) return false;
  }
  value = document.get<Type>();
  return true;
}

template <typename Type>
void read_value(const nlohmann::ordered_json& document, Type& value) {
  if constexpr (std::is_enum_v<Type>) {
    value = parse_name<Type>(document.get_ref<const std::string&>()).value();
  } else if constexpr (std::same_as<Type, std::optional<double>>) {
    value = document.is_null() ? std::nullopt : std::optional(document.get<double>());
  } else if constexpr (std::same_as<Type, ImageShape>) {
    value = ImageShape::parse(document.get_ref<const std::string&>()).value();
  } else {
    value = document.get<Type>();
  }
}

// What fields_json made. Throws an exception of the library, or bad_optional_access, for anything
// else.
template <typename Record>
[[nodiscard]] Record read_fields(const nlohmann::ordered_json& object) {
  Record record;
  visit_fields(record, [&](std::string_view name, auto& value) {
    read_value(object.at(std::string(name)), value);
  });
  return record;
}

// The same for lists.
template <typename List>
[[nodiscard]] nlohmann::ordered_json list_json(const List& records) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& record : records) list.push_back(fields_json(record));
  return list;
}
template <typename Record>
[[nodiscard]] std::vector<Record> read_list(const nlohmann::ordered_json& list) {
  std::vector<Record> records;
  for (const auto& object : list) records.push_back(read_fields<Record>(object));
  return records;
}

}  // namespace ridgeline
