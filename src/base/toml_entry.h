#pragma once

// Reading TOML files by hand-written rules: mistakes are told with file, line and key.

#include <toml++/toml.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ridgeline {

// Throws bad_input where the text is no TOML.
[[nodiscard]] toml::table parse_toml(std::string_view text, const std::string& file);

// The tables of a list that [[key]] begins; none where there is no such key.
[[nodiscard]] std::vector<const toml::table*> toml_tables(const toml::table& document,
                                                          const std::string& key,
                                                          const std::string& file);

// A choice that values may depend on: {small = ..., full = ...} stands wherever a value can stand.
struct TomlChoice {
  std::vector<std::string_view> all;  // "small", "full"
  std::string_view chosen;
};

// One table of a file, whose keys must all be asked for.
class TomlEntry {
 public:
  // `kind` is what messages call it: "[[part]]".
  TomlEntry(const toml::table& table, std::string kind, const std::string& file,
            TomlChoice choice = {})
      : table_(table), kind_(std::move(kind)), file_(file), choice_(std::move(choice)) {}

  [[noreturn]] void refuse(const toml::node& where, const std::string& what) const;
  [[noreturn]] void refuse(const std::string& what) const { refuse(table_, what); }
  // At the line of a key that is there.
  [[noreturn]] void refuse_at(const char* key, const std::string& what) const;

  [[nodiscard]] bool has(const char* key) const { return table_.contains(key); }

  // Empty where the key is missing.
  [[nodiscard]] std::string text(const char* key);
  [[nodiscard]] std::string required_text(const char* key);
  // A list, or one value that stands for a list of one. `check` throws for a value that is wrong:
  // its message gets the line.
  using Check = std::function<void(const std::string&)>;
  [[nodiscard]] std::vector<std::string> texts(const char* key, const Check& check = {});
  // Texts and numbers, as texts: 64, "full".
  [[nodiscard]] std::vector<std::string> words(const char* key, const Check& check = {});
  [[nodiscard]] std::vector<std::int64_t> wholes(const char* key, std::int64_t least);
  [[nodiscard]] std::vector<double> numbers(const char* key);
  [[nodiscard]] std::optional<std::int64_t> whole(const char* key, std::int64_t least);
  [[nodiscard]] std::optional<double> number(const char* key, bool zero_too);
  [[nodiscard]] bool flag(const char* key);
  // A table of names and words: settings = {depth = [1, 2], activation = "relu"}.
  using NamedWords = std::pair<std::string, std::vector<std::string>>;
  [[nodiscard]] std::vector<NamedWords> words_by_name(const char* key);

  // A key that is read elsewhere.
  void allow(const char* key) { asked_.insert(key); }
  // Everything that was not asked for is a mistake.
  void finish() const;

 private:
  const toml::node* find(const char* key, bool table_allowed = false);
  // The value for what was chosen; null where it has none.
  [[nodiscard]] const toml::node* chosen(const toml::node& node, const std::string& key,
                                         bool table_allowed) const;
  [[nodiscard]] std::vector<const toml::node*> items(const char* key);
  // What `read` gives for each item, none of them twice.
  template <typename Value, typename Read>
  [[nodiscard]] std::vector<Value> list(const char* key, const Read& read);
  void check_value(const toml::node& node, const std::string& value, const Check& check) const;
  [[nodiscard]] std::string word_at(const toml::node& node, const std::string& key) const;

  const toml::table& table_;
  std::string kind_;
  const std::string& file_;
  TomlChoice choice_;
  std::set<std::string> asked_;
};

}  // namespace ridgeline
