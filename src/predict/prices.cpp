#include "predict/prices.h"

#include <algorithm>
#include <cctype>

#include "base/toml_entry.h"

namespace ridgeline::predict {
namespace {

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

Prices::Prices(std::string_view text, const std::string& file) {
  const toml::table document = parse_toml(text, file);
  for (const auto& [key, node] : document) {
    if (key == "price") continue;
    if (key == "currency" && node.is_string()) {
      currency_ = *node.value<std::string>();
      continue;
    }
    bad_input("{}, line {}: unknown key '{}'; known: currency, [[price]]", file,
              node.source().begin.line, key.str());
  }
  for (const toml::table* table : toml_tables(document, "price", file)) {
    TomlEntry entry(*table, "[[price]]", file);
    const std::string name = entry.required_text("name");
    const std::optional<double> price = entry.number("per_hour", false);
    if (!price) entry.refuse("needs 'per_hour', a number above 0");
    entry.finish();
    per_hour_[lower_case(name)] = *price;
  }
  if (per_hour_.empty()) bad_input("{}: has no [[price]]", file);
}

std::optional<double> Prices::per_hour(const std::string& device) const {
  const std::string wanted = lower_case(device);
  std::optional<double> found;
  std::size_t longest = 0;
  for (const auto& [name, price] : per_hour_) {
    if (name.size() <= longest || wanted.find(name) == std::string::npos) continue;
    found = price;
    longest = name.size();
  }
  return found;
}

}  // namespace ridgeline::predict
