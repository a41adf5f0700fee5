// Reads the tables of known hardware.

#include <toml++/toml.h>

#include <set>

#include "base/embedded.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/text_file.h"
#include "base/toml_text.h"
#include "measure/ceilings/hardware.h"

namespace ridgeline {
namespace {

// One [[gpu]] or [[cpu]], whose keys must all be asked for.
class Entry {
 public:
  Entry(const toml::table& table, std::string kind, const std::string& file)
      : table_(table), kind_(std::move(kind)), file_(file) {}

  [[noreturn]] void refuse(const toml::node& where, const std::string& what) const {
    bad_input("{}, line {}: [[{}]]: {}", file_, where.source().begin.line, kind_, what);
  }

  [[nodiscard]] std::string text(const char* key) { return text_at(key, find(key)); }
  [[nodiscard]] std::string required_text(const char* key) {
    const std::string value = text(key);
    if (value.empty()) refuse(table_, fmt::format("'{}' is missing or empty", key));
    return value;
  }

  [[nodiscard]] std::vector<std::string> texts(const char* key) {
    const toml::node* node = find(key);
    if (node == nullptr) return {};
    const toml::array* list = node->as_array();
    if (list == nullptr) refuse(*node, fmt::format("'{}' must be a list of texts", key));
    std::vector<std::string> values;
    for (const toml::node& item : *list) values.push_back(text_at(key, &item));
    return values;
  }

  // Positive; times `unit`.
  [[nodiscard]] std::optional<double> number(const char* key, double unit) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const std::optional<double> value = node->value<double>();
    if (!node->is_number() || !value || !(*value > 0.0)) {
      refuse(*node, fmt::format("'{}' must be a number above 0", key));
    }
    return *value * unit;
  }
  [[nodiscard]] int whole(const char* key) {
    const toml::node* node = find(key);
    if (node == nullptr) return 0;
    const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
    if (!value || *value < 0 || *value > 1 << 20) {
      refuse(*node, fmt::format("'{}' must be a whole number", key));
    }
    return static_cast<int>(*value);
  }

  // Everything that was not asked for is a mistake.
  void finish() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (asked_.contains(name)) continue;
      refuse(node, fmt::format("unknown key '{}'; known: {}", name, joined(asked_, ", ")));
    }
  }
  void require(bool condition, const std::string& what) const {
    if (!condition) refuse(table_, what);
  }

 private:
  const toml::node* find(const char* key) {
    asked_.insert(key);
    return table_.get(key);
  }
  [[nodiscard]] std::string text_at(const char* key, const toml::node* node) const {
    if (node == nullptr) return {};
    const std::optional<std::string> value = node->value_exact<std::string>();
    if (!value) refuse(*node, fmt::format("'{}' must be a text", key));
    return *value;
  }

  const toml::table& table_;
  std::string kind_;
  const std::string& file_;
  std::set<std::string> asked_;
};

KnownGpu gpu_of(Entry& entry) {
  constexpr double kTera = 1e12, kGiga = 1e9;
  KnownGpu gpu;
  gpu.name = entry.required_text("name");
  gpu.match = entry.required_text("match");
  gpu.unless = entry.texts("unless");
  gpu.source = entry.required_text("source");
  for (const char* precision : {"fp64", "fp32", "tf32", "bf16", "fp16"}) {
    const std::string key = std::string(precision) + "_tflops";
    if (const auto value = entry.number(key.c_str(), kTera)) gpu.flops[precision] = *value;
  }
  gpu.memory_bytes_per_second = entry.number("memory_gb_per_s", kGiga);
  gpu.memory_bytes = entry.number("memory_gb", kGiga);
  gpu.boost_mhz = entry.number("boost_mhz", 1.0);
  gpu.watts = entry.number("tdp_watts", 1.0);
  entry.finish();
  return gpu;
}

KnownCpu cpu_of(Entry& entry) {
  constexpr double kGiga = 1e9;
  KnownCpu cpu;
  cpu.name = entry.required_text("name");
  cpu.match = entry.text("match");
  cpu.vendor = entry.text("vendor");
  cpu.family = entry.whole("family");
  cpu.model = entry.whole("model");
  cpu.fma_units = entry.whole("fma_units");
  cpu.vector_bits = entry.whole("vector_bits");
  cpu.memory_bytes_per_second = entry.number("memory_gb_per_s", kGiga);
  cpu.source = entry.required_text("source");
  entry.finish();
  entry.require(!cpu.match.empty() || (!cpu.vendor.empty() && cpu.family > 0 && cpu.model > 0),
                "needs 'match', or 'vendor', 'family' and 'model'");
  entry.require(cpu.fma_units > 0 && cpu.vector_bits >= 64,
                "needs 'fma_units' (of a core) and 'vector_bits' (of each, at least 64)");
  return cpu;
}

}  // namespace

void parse_hardware(std::string_view text, const std::string& file, KnownHardware& hardware) {
  toml::table document;
  try {
    document = toml::parse(text);
  } catch (const toml::parse_error& error) {
    bad_input("{}, line {}: {}", file, error.source().begin.line,
              toml_trouble(error.description()));
  }
  for (const auto& [key, node] : document) {
    const std::string kind(key.str());
    if (kind != "gpu" && kind != "cpu") {
      bad_input("{}, line {}: unknown table '{}'; known: [[gpu]], [[cpu]]", file,
                node.source().begin.line, kind);
    }
    const toml::array* list = node.as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
      bad_input("{}, line {}: '{}' must be a list of tables, each begun by [[{}]]", file,
                node.source().begin.line, kind, kind);
    }
    for (const toml::node& item : *list) {
      Entry entry(*item.as_table(), kind, file);
      if (kind == "gpu") {
        hardware.gpus.push_back(gpu_of(entry));
      } else {
        hardware.cpus.push_back(cpu_of(entry));
      }
    }
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
