#include "measure/ceilings/hardware.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/folder.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

bool is_word(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Whether whole words of `text` are `words`: "RTX 4080" is not in "RTX 4080Ti".
bool contains_words(std::string_view text, std::string_view words) {
  const std::string haystack = lower(text), needle = lower(words);
  if (needle.empty()) return false;
  for (std::size_t at = haystack.find(needle); at != std::string::npos;
       at = haystack.find(needle, at + 1)) {
    const std::size_t end = at + needle.size();
    const bool begins = at == 0 || !is_word(haystack[at - 1]) || !is_word(needle.front());
    const bool ends = end == haystack.size() || !is_word(haystack[end]) || !is_word(needle.back());
    if (begins && ends) return true;
  }
  return false;
}

bool fits(const KnownGpu& gpu, std::string_view device_name) {
  return contains_words(device_name, gpu.match) &&
         std::none_of(gpu.unless.begin(), gpu.unless.end(),
                      [&](const std::string& words) { return contains_words(device_name, words); });
}

bool fits(const KnownCpu& cpu, const CpuIdentity& identity) {
  if (!cpu.match.empty()) {
    // Models of one series begin alike: "Platinum 83" names the 8375C.
    return lower(identity.name).find(lower(cpu.match)) != std::string::npos;
  }
  return cpu.vendor == identity.vendor && cpu.family == identity.family &&
         cpu.model == identity.model;
}

}  // namespace

std::optional<KnownGpu> KnownHardware::gpu(std::string_view device_name) const {
  const KnownGpu* best = nullptr;
  for (const KnownGpu& candidate : gpus) {
    if (fits(candidate, device_name) &&
        (best == nullptr || candidate.match.size() > best->match.size())) {
      best = &candidate;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::vector<fs::path> user_hardware_files() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  fs::path place = variable("RIDGELINE_HARDWARE");
  const bool named = !place.empty();
  if (!named) {
    if (const fs::path folder = variable("XDG_CONFIG_HOME"); !folder.empty()) {
      place = folder / "ridgeline" / "hardware";
    } else if (const fs::path home = variable("HOME"); !home.empty()) {
      place = home / ".config" / "ridgeline" / "hardware";
    } else {
      return {};
    }
  }
  std::error_code error;
  if (fs::is_regular_file(place, error)) return {place};
  if (!fs::is_directory(place, error)) {
    if (named) {
      bad_input("RIDGELINE_HARDWARE: there is neither a file nor a folder '{}'", place.string());
    }
    return {};
  }
  std::vector<fs::path> files;
  for (const std::string& name : names_in(place, error)) {
    if (fs::path(name).extension() == ".toml") files.push_back(place / name);
  }
  return files;
}

std::optional<KnownGpu> known_gpu(std::string_view device_name) {
  return known_hardware().gpu(device_name);
}

std::optional<KnownCpu> known_cpu(const CpuIdentity& identity) {
  return known_cpu(known_hardware(), identity);
}

std::optional<KnownCpu> known_cpu(const KnownHardware& hardware, const CpuIdentity& identity) {
  for (const KnownCpu& cpu : hardware.cpus) {
    if (fits(cpu, identity)) return cpu;
  }
  return std::nullopt;
}

std::optional<double> KnownCpu::peak() const {
  if (flops) return flops;
  if (!cores || !base_mhz) return std::nullopt;
  return *cores * *base_mhz * 1e6 * flops_per_cycle(*this, vector_bits, "fp32");
}

double flops_per_cycle(const KnownCpu& cpu, int bits, std::string_view dtype) {
  // A wider instruction than the units takes several cycles of them.
  const int width = std::min(bits, cpu.vector_bits);
  return 2.0 * cpu.fma_units * width / (dtype == "fp64" ? 64 : 32);
}

}  // namespace ridgeline
