#include "cli/command_line.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace ridgeline::cli {

std::vector<std::string> command_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', begin), bytes.size());
    words.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string command_line_text() {
  std::string text;
  for (const std::string& word : command_words()) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$*?;&|<>()") == word.npos;
    if (!text.empty()) text += ' ';
    text += plain ? word : "'" + word + "'";
  }
  return text;
}

std::string own_program() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  const std::vector<std::string> words = command_words();
  return words.empty() ? std::string("ridgeline") : words[0];
}

}  // namespace ridgeline::cli
