#include "store/rows.h"

#include "base/json_text.h"
#include "store/field_json.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

template <typename Type>
std::string text_of(const Type& value) {
  if (value.empty()) return {};
  return json_text(Json(value));
}

template <typename Type>
bool parse(const std::string& text, Type& value) {
  value.clear();
  if (text.empty()) return true;
  return read_composite(Json::parse(text, nullptr, false), value);
}

}  // namespace

std::string composite_text(const Settings& value) { return text_of(value); }
std::string composite_text(const NameList& value) { return text_of(value); }
std::string composite_text(const NumberList& value) { return text_of(value); }
bool parse_composite(const std::string& text, Settings& value) { return parse(text, value); }
bool parse_composite(const std::string& text, NameList& value) { return parse(text, value); }
bool parse_composite(const std::string& text, NumberList& value) { return parse(text, value); }

void refuse_value(const sqlite::Statement& statement, const std::string& text,
                  std::string_view wanted) {
  bad_input("{}: the store is damaged: it has '{}' instead of {}", statement.file(), text, wanted);
}

}  // namespace ridgeline
