#pragma once

// The files in which `auto` and backends remember what they chose by measuring: a JSON object from
// key to names. A key tells the device and the versions of libraries: choices are valid where it is
// the same.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ridgeline {

// What `auto` chose: the provider of each op, by the key of graph, device and versions.
using PlanChoices = std::map<std::string, std::vector<std::string>>;

// $XDG_CACHE_HOME/ridgeline/choices.json, or ~/.cache/...
[[nodiscard]] std::filesystem::path default_choice_cache();

// Empty when there is no such choice, or no readable file.
[[nodiscard]] std::vector<std::string> load_choice(const std::filesystem::path& file,
                                                   const std::string& key);

// Adds a choice; the file is replaced as a whole. A file that cannot be written is left alone: the
// choice is then measured again next time.
void store_choice(const std::filesystem::path& file, const std::string& key,
                  const std::vector<std::string>& providers);

// All choices that this process has loaded or stored, whatever the file.
[[nodiscard]] const PlanChoices& choices_in_use();
// From now on these come before those of files: what a training that is resumed was made with.
void prefer_choices(const PlanChoices& choices);

}  // namespace ridgeline
