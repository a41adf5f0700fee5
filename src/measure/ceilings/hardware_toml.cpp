// Reads the tables of known hardware.

#include <algorithm>

#include "base/embedded.h"
#include "base/text_file.h"
#include "base/toml_entry.h"
#include "measure/ceilings/hardware.h"

namespace ridgeline {
namespace {

// In a unit without prefixes.
std::optional<double> scaled(TomlEntry& entry, const std::string& key, double unit) {
  std::optional<double> value = entry.number(key.c_str(), false);
  if (value) *value *= unit;
  return value;
}

int whole(TomlEntry& entry, const char* key) {
  return static_cast<int>(std::min<std::int64_t>(entry.whole(key, 0).value_or(0), 1 << 20));
}

KnownGpu gpu_of(TomlEntry& entry) {
  constexpr double kTera = 1e12, kGiga = 1e9, kMebi = 1048576.0;
  KnownGpu gpu;
  gpu.name = entry.required_text("name");
  gpu.match = entry.required_text("match");
  gpu.unless = entry.texts("unless");
  gpu.source = entry.required_text("source");
  for (const char* precision : {"fp64", "fp32", "tf32", "bf16", "fp16"}) {
    const auto value = scaled(entry, std::string(precision) + "_tflops", kTera);
    if (value) gpu.flops[precision] = *value;
  }
  gpu.memory_bytes_per_second = scaled(entry, "memory_gb_per_s", kGiga);
  gpu.memory_bytes = scaled(entry, "memory_gb", kGiga);
  gpu.boost_mhz = scaled(entry, "boost_mhz", 1.0);
  gpu.watts = scaled(entry, "tdp_watts", 1.0);
  gpu.cache_bytes = scaled(entry, "cache_mb", kMebi);
  gpu.integrated = entry.flag("integrated");
  entry.finish();
  return gpu;
}

KnownCpu cpu_of(TomlEntry& entry) {
  constexpr double kGiga = 1e9, kMebi = 1048576.0;
  KnownCpu cpu;
  cpu.name = entry.required_text("name");
  cpu.match = entry.text("match");
  cpu.vendor = entry.text("vendor");
  cpu.family = whole(entry, "family");
  cpu.model = whole(entry, "model");
  cpu.fma_units = whole(entry, "fma_units");
  cpu.vector_bits = whole(entry, "vector_bits");
  cpu.memory_bytes_per_second = scaled(entry, "memory_gb_per_s", kGiga);
  cpu.cores = scaled(entry, "cores", 1.0);
  cpu.base_mhz = scaled(entry, "base_mhz", 1.0);
  cpu.flops = scaled(entry, "fp32_gflops", kGiga);
  cpu.bf16_flops = scaled(entry, "bf16_gflops", kGiga);
  cpu.memory_bytes = scaled(entry, "memory_gb", kGiga);
  cpu.cache_bytes = scaled(entry, "cache_mb", kMebi);
  cpu.watts = scaled(entry, "tdp_watts", 1.0);
  cpu.source = entry.required_text("source");
  entry.finish();
  if (cpu.match.empty() && (cpu.vendor.empty() || cpu.family == 0 || cpu.model == 0)) {
    entry.refuse("needs 'match', or 'vendor', 'family' and 'model'");
  }
  if (cpu.fma_units == 0 || cpu.vector_bits < 64) {
    entry.refuse("needs 'fma_units' (of a core) and 'vector_bits' (of each, at least 64)");
  }
  return cpu;
}

KnownLink link_of(TomlEntry& entry) {
  constexpr double kGiga = 1e9, kMicro = 1e-6;
  KnownLink link;
  link.name = entry.required_text("name");
  link.source = entry.required_text("source");
  link.bytes_per_second = scaled(entry, "gb_per_s", kGiga).value_or(0.0);
  link.latency_seconds = entry.number("latency_us", true).value_or(-1.0) * kMicro;
  link.measured = entry.flag("measured");
  entry.finish();
  if (link.bytes_per_second <= 0.0) entry.refuse("needs 'gb_per_s', of one direction");
  if (link.latency_seconds < 0.0) entry.refuse("needs 'latency_us', from one to the next");
  return link;
}

}  // namespace

void parse_hardware(std::string_view text, const std::string& file, KnownHardware& hardware) {
  const toml::table document = parse_toml(text, file);
  for (const auto& [key, node] : document) {
    if (key == "gpu" || key == "cpu" || key == "link") continue;
    bad_input("{}, line {}: unknown table '{}'; known: [[gpu]], [[cpu]], [[link]]", file,
              node.source().begin.line, key.str());
  }
  for (const toml::table* table : toml_tables(document, "gpu", file)) {
    TomlEntry entry(*table, "[[gpu]]", file);
    hardware.gpus.push_back(gpu_of(entry));
  }
  for (const toml::table* table : toml_tables(document, "cpu", file)) {
    TomlEntry entry(*table, "[[cpu]]", file);
    hardware.cpus.push_back(cpu_of(entry));
  }
  for (const toml::table* table : toml_tables(document, "link", file)) {
    TomlEntry entry(*table, "[[link]]", file);
    hardware.links.push_back(link_of(entry));
  }
}

KnownHardware known_hardware() {
  KnownHardware hardware;
  for (const std::filesystem::path& path : user_hardware_files()) {
    parse_hardware(read_text(path), path.string(), hardware);
  }
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name.starts_with("hardware/")) {
      parse_hardware(file.text, std::string(file.name), hardware);
    }
  }
  return hardware;
}

}  // namespace ridgeline
