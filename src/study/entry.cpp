#include "study/entry.h"

#include <algorithm>
#include <cmath>

#include "base/suggest.h"
#include "base/text.h"

namespace ridgeline::study {
namespace {

bool is_scale(std::string_view key) { return key == "small" || key == "full"; }

}  // namespace

void Entry::refuse(const toml::node& where, const std::string& what) const {
  bad_input("{}, line {}: {}: {}", file_, where.source().begin.line, kind_, what);
}

void Entry::refuse_at(const char* key, const std::string& what) const {
  const toml::node* node = table_.get(key);
  refuse(node != nullptr ? *node : table_, what);
}

const toml::node* Entry::at_scale(const toml::node& node, const std::string& key,
                                  bool table_allowed) const {
  const toml::table* table = node.as_table();
  if (table == nullptr) return &node;
  std::size_t scales = 0;
  for (const auto& [name, value] : *table) scales += is_scale(name.str()) ? 1 : 0;
  if (scales == 0 && table_allowed) return &node;
  if (scales != table->size() || scales == 0) {
    refuse(node,
           fmt::format("'{}': a value that differs by scale has the keys small and full, and no "
                       "others",
                       key));
  }
  return table->get(name_of(scale_));
}

const toml::node* Entry::find(const char* key) {
  asked_.insert(key);
  const toml::node* node = table_.get(key);
  return node == nullptr ? nullptr : at_scale(*node, key, std::string_view(key) == "settings");
}

std::vector<const toml::node*> Entry::items(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr) return {node};
  if (list->empty()) refuse(*node, fmt::format("'{}': the list is empty", key));
  std::vector<const toml::node*> all;
  for (const toml::node& item : *list) all.push_back(&item);
  return all;
}

void Entry::check_value(const toml::node& node, const std::string& value,
                        const Check& check) const {
  if (!check) return;
  try {
    check(value);
  } catch (const Error& error) {
    refuse(node, error.what());
  }
}

std::string Entry::text(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const std::optional<std::string> value = node->value_exact<std::string>();
  if (!value) refuse(*node, fmt::format("'{}' must be a text", key));
  return *value;
}

std::string Entry::required_text(const char* key) {
  const std::string value = text(key);
  if (value.empty()) refuse_at(key, fmt::format("'{}' is missing or empty", key));
  return value;
}

template <typename Value, typename Read>
std::vector<Value> Entry::list(const char* key, const Read& read) {
  std::vector<Value> values;
  for (const toml::node* node : items(key)) {
    Value value = read(*node);
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      refuse(*node, fmt::format("'{}': {} is named twice", key, value));
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<std::string> Entry::texts(const char* key, const Check& check) {
  return list<std::string>(key, [&](const toml::node& node) {
    const std::optional<std::string> value = node.value_exact<std::string>();
    if (!value || value->empty()) refuse(node, fmt::format("'{}' must be a list of texts", key));
    check_value(node, *value, check);
    return *value;
  });
}

std::string Entry::word_at(const toml::node& node, const std::string& key) const {
  if (const auto text = node.value_exact<std::string>(); text && !text->empty()) return *text;
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto number = node.value_exact<double>(); number && std::isfinite(*number)) {
    return fmt::format("{}", *number);
  }
  refuse(node, fmt::format("'{}' must be a list of texts and numbers", key));
}

std::vector<std::string> Entry::words(const char* key, const Check& check) {
  return list<std::string>(key, [&](const toml::node& node) {
    std::string word = word_at(node, key);
    check_value(node, word, check);
    return word;
  });
}

std::vector<std::int64_t> Entry::wholes(const char* key, std::int64_t least) {
  return list<std::int64_t>(key, [&](const toml::node& node) {
    const std::optional<std::int64_t> value = node.value_exact<std::int64_t>();
    if (!value || *value < least) {
      refuse(node, fmt::format("'{}' must be a list of whole numbers from {}", key, least));
    }
    return *value;
  });
}

std::vector<double> Entry::numbers(const char* key) {
  return list<double>(key, [&](const toml::node& node) {
    const std::optional<double> value = node.value<double>();
    if (!node.is_number() || !value || !(*value > 0.0) || !std::isfinite(*value)) {
      refuse(node, fmt::format("'{}' must be a list of numbers above 0", key));
    }
    return *value;
  });
}

std::optional<std::int64_t> Entry::whole(const char* key, std::int64_t least) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
  if (!value || *value < least) {
    refuse(*node, fmt::format("'{}' must be a whole number from {}", key, least));
  }
  return value;
}

std::optional<double> Entry::number(const char* key, bool zero_too) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<double> value = node->value<double>();
  const bool fits = node->is_number() && value && std::isfinite(*value) &&
                    (zero_too ? *value >= 0.0 : *value > 0.0);
  if (!fits) {
    refuse(*node, fmt::format("'{}' must be a number {}", key, zero_too ? "from 0" : "above 0"));
  }
  return value;
}

bool Entry::flag(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return false;
  const std::optional<bool> value = node->value_exact<bool>();
  if (!value) refuse(*node, fmt::format("'{}' must be true or false", key));
  return *value;
}

std::vector<SettingAxis> Entry::settings(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) {
    refuse(*node, fmt::format("'{}' must be a table such as {{depth = [1, 2]}}", key));
  }
  std::vector<SettingAxis> axes;
  for (const auto& [name, node_of] : *table) {
    SettingAxis axis{std::string(name.str()), {}};
    const toml::node* value = at_scale(node_of, axis.name, false);
    if (value == nullptr) continue;
    if (const toml::array* list = value->as_array()) {
      if (list->empty()) refuse(*value, fmt::format("'{}': the list is empty", axis.name));
      for (const toml::node& item : *list) axis.values.push_back(word_at(item, axis.name));
    } else {
      axis.values.push_back(word_at(*value, axis.name));
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

void Entry::finish() const {
  const std::vector<std::string_view> known(asked_.begin(), asked_.end());
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (asked_.contains(name)) continue;
    refuse(node, fmt::format("unknown key '{}'{}{} Known: {}", name, did_you_mean(name, known),
                             nearest(name, known) ? "" : ".", joined(asked_, ", ")));
  }
}

}  // namespace ridgeline::study
