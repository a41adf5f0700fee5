#pragma once

// One table of a study's file, whose keys must all be asked for. A value may differ by scale:
// {small = ..., full = ...} stands wherever a value can stand.

#include <toml++/toml.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "study/part.h"

namespace ridgeline::study {

class Entry {
 public:
  // `kind` is what messages call it: "[[part]]".
  Entry(const toml::table& table, std::string kind, const std::string& file, Scale scale)
      : table_(table), kind_(std::move(kind)), file_(file), scale_(scale) {}

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
  // A table of names and lists: settings = {depth = [1, 2], activation = "relu"}.
  [[nodiscard]] std::vector<SettingAxis> settings(const char* key);

  // A key that is read elsewhere.
  void allow(const char* key) { asked_.insert(key); }
  // Everything that was not asked for is a mistake.
  void finish() const;

 private:
  const toml::node* find(const char* key);
  // The value at this scale; null where it has none.
  [[nodiscard]] const toml::node* at_scale(const toml::node& node, const std::string& key,
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
  Scale scale_;
  std::set<std::string> asked_;
};

}  // namespace ridgeline::study
