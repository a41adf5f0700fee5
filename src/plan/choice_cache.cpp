#include "plan/choice_cache.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/json_text.h"
#include "plan/auto.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;

Json read_cache(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return Json::object();
  Json cache = Json::parse(stream, nullptr, false);
  return cache.is_object() ? cache : Json::object();
}

}  // namespace

std::filesystem::path default_choice_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "ridgeline" / "choices.json";
  }
  if (home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache" / "ridgeline" / "choices.json";
  }
  return {};
}

std::vector<std::string> load_choice(const std::filesystem::path& file, const std::string& key) {
  if (file.empty()) return {};
  const Json cache = read_cache(file);
  const auto found = cache.find(key);
  if (found == cache.end() || !found->is_array()) return {};
  std::vector<std::string> providers;
  for (const Json& name : *found) {
    if (!name.is_string()) return {};
    providers.push_back(name.get<std::string>());
  }
  return providers;
}

void store_choice(const std::filesystem::path& file, const std::string& key,
                  const std::vector<std::string>& providers) {
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
