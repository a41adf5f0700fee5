#pragma once

// JSON as text. File names and labels may be any bytes; what is no UTF-8 in them becomes U+FFFD,
// where nlohmann's dump() alone would throw.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace ridgeline {

// On one line where `indent` is negative.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// As commands print it: indented, with a line's end.
template <typename Json>
[[nodiscard]] std::string json_document(const Json& json) {
  return json_text(json, 2) + '\n';
}

// What is not known is null.
template <typename Value>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
[[nodiscard]] inline nlohmann::ordered_json ms_json(const std::optional<double>& seconds) {
  return seconds ? nlohmann::ordered_json(*seconds * 1e3) : nlohmann::ordered_json(nullptr);
}
// The same where an empty text means that nothing is known.
[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace ridgeline
