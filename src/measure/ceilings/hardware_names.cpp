// Which devices people mean by what they write.

#include <algorithm>
#include <cctype>
#include <set>

#include "measure/ceilings/hardware.h"

namespace ridgeline {
namespace {

// Words that tell makers and series, not devices.
const std::set<std::string, std::less<>>& words_of_makers() {
  static const std::set<std::string, std::less<>> words = {
      "nvidia", "amd",  "tesla", "geforce", "gpu", "quadro", "instinct",
      "tensor", "core", "cuda",  "gb",      "the", "mobile"};
  return words;
}

std::set<std::string> device_tokens(std::string_view text) {
  std::set<std::string> tokens;
  std::string token;
  const auto finish = [&] {
    if (!token.empty() && !words_of_makers().contains(token)) tokens.insert(token);
    token.clear();
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      token += static_cast<char>(std::tolower(byte));
    } else {
      finish();
    }
  }
  finish();
  return tokens;
}

bool is_model_token(const std::string& token) {
  return std::ranges::any_of(token, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Whether the written name means the entry: the entry's model number stands in it, and it says
// nothing that the entry does not ("4080 laptop" is no "4080").
bool means(const std::set<std::string>& written, const KnownGpu& gpu) {
  const std::set<std::string> entry = device_tokens(gpu.name + ' ' + gpu.match);
  const bool sized =
      std::ranges::any_of(entry, [](const std::string& token) { return token.ends_with("gb"); });
  bool numbered = false;
  for (const std::string& token : written) {
    if (!entry.contains(token)) {
      if ((is_model_token(token) && !(token.ends_with("gb") && !sized)) || token == "ti" ||
          token == "super" || token == "laptop" || token == "d" || token == "nvl" ||
          token == "pro" || token == "max" || token == "ultra") {
        return false;
      }
      continue;
    }
    numbered = numbered || is_model_token(token);
  }
  return numbered;
}

}  // namespace

std::vector<const KnownGpu*> gpus_named(const KnownHardware& hardware, const std::string& written) {
  const std::set<std::string> tokens = device_tokens(written);
  std::vector<const KnownGpu*> kinds;
  for (const KnownGpu& gpu : hardware.gpus) {
    if (means(tokens, gpu)) kinds.push_back(&gpu);
  }
  // "RTX 4080" is the desktop's where there is an entry for it.
  if (kinds.size() > 1 && !tokens.contains("laptop")) {
    std::erase_if(
        kinds, [](const KnownGpu* gpu) { return gpu->name.find("Laptop") != std::string::npos; });
  }
  return kinds;
}

}  // namespace ridgeline
