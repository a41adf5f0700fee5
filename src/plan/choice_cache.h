#pragma once

// The file in which `auto` remembers its choices: a JSON object from key to provider names.

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline {

// Empty when there is no such choice, or no readable file.
[[nodiscard]] std::vector<std::string> load_choice(const std::filesystem::path& file,
                                                   const std::string& key);

// Adds a choice; the file is replaced as a whole. A file that cannot be written is left alone: the
// choice is then measured again next time.
void store_choice(const std::filesystem::path& file, const std::string& key,
                  const std::vector<std::string>& providers);

}  // namespace ridgeline
