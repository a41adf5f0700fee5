#include "base/toml_entry.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/memory_reserve.h"
#include "base/suggest.h"
#include "base/text.h"

namespace ridgeline {
namespace {

// What toml++ says about a text without its closing quote speaks of control characters: the end of
// the line is one. Other words of it stay as they are.
std::string trouble(std::string_view description) {
  const bool in_text = description.find("string") != std::string_view::npos;
  const bool ends = description.find("control characters") != std::string_view::npos ||
                    description.find("end-of-file") != std::string_view::npos;
  if (!in_text || !ends) return std::string(description);
  return fmt::format("a text has no closing quote, or a control character in it ({})", description);
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    // A stream that finds no memory for itself reads no number.
    if (memory_ran_out()) throw std::bad_alloc();
    bad_input("{}, line {}: {}", file, error.source().begin.line, trouble(error.description()));
  }
}

std::vector<const toml::table*> toml_tables(const toml::table& document, const std::string& key,
                                            const std::string& file) {
  std::vector<const toml::table*> tables;
  const toml::node* node = document.get(key);
  if (node == nullptr) return tables;
  const toml::array* list = node->as_array();
  if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
    bad_input("{}, line {}: '{}' must be a list of tables, each begun by [[{}]]", file,
              node->source().begin.line, key, key);
  }
  for (const toml::node& item : *list) tables.push_back(item.as_table());
  return tables;
}

void TomlEntry::refuse(const toml::node& where, const std::string& what) const {
  bad_input("{}, line {}: {}: {}", file_, where.source().begin.line, kind_, what);
}

void TomlEntry::refuse_at(const char* key, const std::string& what) const {
  const toml::node* node = table_.get(key);
  refuse(node != nullptr ? *node : table_, what);
}

const toml::node* TomlEntry::chosen(const toml::node& node, const std::string& key,
                                    bool table_allowed) const {
  const toml::table* table = node.as_table();
  if (table == nullptr || choice_.all.empty()) return &node;
  std::size_t named = 0;
  for (const std::string_view name : choice_.all) named += table->contains(name) ? 1 : 0;
  if (named == 0 && table_allowed) return &node;
  if (named != table->size() || named == 0) {
    refuse(node, fmt::format("'{}': a value that differs by scale has the keys {}, and no others",
                             key, joined(choice_.all, " and ")));
  }
  return table->get(choice_.chosen);
}

const toml::node* TomlEntry::find(const char* key, bool table_allowed) {
  asked_.insert(key);
  const toml::node* node = table_.get(key);
  return node == nullptr ? nullptr : chosen(*node, key, table_allowed);
}

std::vector<const toml::node*> TomlEntry::items(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr) return {node};
  if (list->empty()) refuse(*node, fmt::format("'{}': the list is empty", key));
  std::vector<const toml::node*> all;
  for (const toml::node& item : *list) all.push_back(&item);
  return all;
}

void TomlEntry::check_value(const toml::node& node, const std::string& value,
                            const Check& check) const {
  if (!check) return;
  try {
    check(value);
  } catch (const Error& error) {
    refuse(node, error.what());
  }
}

std::string TomlEntry::text(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const std::optional<std::string> value = node->value_exact<std::string>();
  if (!value) refuse(*node, fmt::format("'{}' must be a text", key));
  return *value;
}

std::string TomlEntry::required_text(const char* key) {
  const std::string value = text(key);
  if (value.empty()) refuse_at(key, fmt::format("'{}' is missing or empty", key));
  return value;
}

template <typename Value, typename Read>
std::vector<Value> TomlEntry::list(const char* key, const Read& read) {
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

std::vector<std::string> TomlEntry::texts(const char* key, const Check& check) {
  return list<std::string>(key, [&](const toml::node& node) {
    const std::optional<std::string> value = node.value_exact<std::string>();
    if (!value || value->empty()) refuse(node, fmt::format("'{}' must be a list of texts", key));
    check_value(node, *value, check);
    return *value;
  });
}

std::string TomlEntry::word_at(const toml::node& node, const std::string& key) const {
  if (const auto text = node.value_exact<std::string>(); text && !text->empty()) return *text;
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto number = node.value_exact<double>(); number && std::isfinite(*number)) {
    return fmt::format("{}", *number);
  }
  refuse(node, fmt::format("'{}' must be a list of texts and numbers", key));
}

std::vector<std::string> TomlEntry::words(const char* key, const Check& check) {
  return list<std::string>(key, [&](const toml::node& node) {
    std::string word = word_at(node, key);
    check_value(node, word, check);
    return word;
  });
}

std::vector<std::int64_t> TomlEntry::wholes(const char* key, std::int64_t least) {
  return list<std::int64_t>(key, [&](const toml::node& node) {
    const std::optional<std::int64_t> value = node.value_exact<std::int64_t>();
    if (!value || *value < least) {
      refuse(node, fmt::format("'{}' must be a list of whole numbers from {}", key, least));
    }
    return *value;
  });
}

std::vector<double> TomlEntry::numbers(const char* key) {
  return list<double>(key, [&](const toml::node& node) {
    const std::optional<double> value = node.value<double>();
    if (!node.is_number() || !value || !(*value > 0.0) || !std::isfinite(*value)) {
      refuse(node, fmt::format("'{}' must be a list of numbers above 0", key));
    }
    return *value;
  });
}

std::optional<std::int64_t> TomlEntry::whole(const char* key, std::int64_t least) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
  if (!value || *value < least) {
    refuse(*node, fmt::format("'{}' must be a whole number from {}", key, least));
  }
  return value;
}

std::optional<double> TomlEntry::number(const char* key, bool zero_too) {
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

bool TomlEntry::flag(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return false;
  const std::optional<bool> value = node->value_exact<bool>();
  if (!value) refuse(*node, fmt::format("'{}' must be true or false", key));
  return *value;
}

std::vector<TomlEntry::NamedWords> TomlEntry::words_by_name(const char* key) {
  const toml::node* node = find(key, true);
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) {
    refuse(*node, fmt::format("'{}' must be a table such as {{depth = [1, 2]}}", key));
  }
  std::vector<NamedWords> all;
  for (const auto& [key_of, node_of] : *table) {
    const std::string name(key_of.str());
    const toml::node* value = chosen(node_of, name, false);
    if (value == nullptr) continue;
    std::vector<std::string> words;
    if (const toml::array* list = value->as_array()) {
      if (list->empty()) refuse(*value, fmt::format("'{}': the list is empty", name));
      for (const toml::node& item : *list) words.push_back(word_at(item, name));
    } else {
      words.push_back(word_at(*value, name));
    }
    all.emplace_back(name, std::move(words));
  }
  return all;
}

void TomlEntry::finish() const {
  const std::vector<std::string_view> known(asked_.begin(), asked_.end());
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (asked_.contains(name)) continue;
    refuse(node, fmt::format("unknown key '{}'{}{} Known: {}", name, did_you_mean(name, known),
                             nearest(name, known) ? "" : ".", joined(asked_, ", ")));
  }
}

}  // namespace ridgeline
