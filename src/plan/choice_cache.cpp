#include "plan/choice_cache.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cache_folder.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/json_text.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;

Json read_cache(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return Json::object();
  Json cache = Json::parse(stream, nullptr, false);
  return cache.is_object() ? cache : Json::object();
}

struct KnownChoices {
  PlanChoices in_use, preferred;
};
// Plans are made by one thread at a time.
KnownChoices& known() {
  static KnownChoices choices;
  return choices;
}

std::vector<std::string> choice_in(const std::filesystem::path& file, const std::string& key) {
  const Json cache = read_cache(file);
  const auto found = cache.find(key);
  if (found == cache.end() || !found->is_array()) return {};
  std::vector<std::string> names;
  for (const Json& name : *found) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

}  // namespace

const PlanChoices& choices_in_use() { return known().in_use; }

void prefer_choices(const PlanChoices& choices) { known().preferred = choices; }

std::filesystem::path default_choice_cache() {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / "choices.json";
}

std::vector<std::string> load_choice(const std::filesystem::path& file, const std::string& key) {
  const auto preferred = known().preferred.find(key);
  const bool found = preferred != known().preferred.end();
  std::vector<std::string> names = found ? preferred->second : std::vector<std::string>();
  if (names.empty() && !file.empty()) names = choice_in(file, key);
  if (!names.empty()) known().in_use[key] = names;
  return names;
}

void store_choice(const std::filesystem::path& file, const std::string& key,
                  const std::vector<std::string>& providers) {
  known().in_use[key] = providers;
  if (file.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  Json cache = read_cache(file);
  cache[key] = providers;
  try {
    write_durably(file, json_text(cache, 1) + '\n');
  } catch (const Error&) {
    // Without the cache the next run searches again.
  }
}

}  // namespace ridgeline
