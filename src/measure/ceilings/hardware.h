#pragma once

// Devices with the figures of their data sheets: hardware/*.toml, which the program carries within
// itself, and the user's own files of the same form. The user's come first.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuinfo.h"

namespace ridgeline {

// A graphics processor. What its data sheet does not tell is nothing.
struct KnownGpu {
  std::string name;                 // "H200 SXM"
  std::string match;                // words of the device's own name
  std::vector<std::string> unless;  // other words, which tell a different device
  // FLOP/s by precision, dense, with sums in f32: "fp64", "fp32" on cuda cores, "tf32", "bf16",
  // "fp16" on tensor cores.
  std::map<std::string, double> flops;
  std::optional<double> memory_bytes_per_second;
  std::optional<double> memory_bytes, boost_mhz, watts;
  std::optional<double> cache_bytes;  // L2
  bool integrated = false;            // part of a processor, with which it shares memory and power
  std::string source;
};

// Cores of one design: their peak follows from the clock that is measured.
struct KnownCpu {
  std::string name;
  std::string match;  // words of the model's name; empty: vendor, family and model tell
  std::string vendor;
  int family = 0, model = 0;
  int fma_units = 0, vector_bits = 0;             // of a core, and of each of these units
  std::optional<double> memory_bytes_per_second;  // of a socket with all channels in use
  // Of one product; nothing for a design that many products share.
  std::optional<double> cores, base_mhz, memory_bytes, cache_bytes, watts;
  std::optional<double> flops, bf16_flops;  // of all cores, where they were measured: fp32, bf16
  std::string source;

  // FLOP/s in fp32 of all cores: measured, or at the base clock; nothing for a design.
  [[nodiscard]] std::optional<double> peak() const;
};

// What joins processors or machines. Data go both ways at once, each at this rate.
struct KnownLink {
  std::string name;
  double bytes_per_second = 0.0;  // of one processor or machine, one way
  double latency_seconds = 0.0;   // from one to the next
  bool measured = false;          // the rate was reached, not promised
  std::string source;
};

struct KnownHardware {
  std::vector<KnownGpu> gpus;
  std::vector<KnownCpu> cpus;
  std::vector<KnownLink> links;

  // The entry with the longest match; of equal ones the first.
  [[nodiscard]] std::optional<KnownGpu> gpu(std::string_view device_name) const;
};

// The devices that people mean by a name: "T4", "rtx 4080 laptop", "A100" (four kinds).
[[nodiscard]] std::vector<const KnownGpu*> gpus_named(const KnownHardware& hardware,
                                                      const std::string& written);

// Adds the entries of a file's text. Throws bad_input with file, line and key of what is wrong.
void parse_hardware(std::string_view text, const std::string& file, KnownHardware& hardware);

// Files of the user: $RIDGELINE_HARDWARE (a file or a folder of *.toml), else hardware/*.toml in
// the user's configuration folder.
[[nodiscard]] std::vector<std::filesystem::path> user_hardware_files();

// The user's files and the program's own.
[[nodiscard]] KnownHardware known_hardware();
[[nodiscard]] std::optional<KnownGpu> known_gpu(std::string_view device_name);
[[nodiscard]] std::optional<KnownCpu> known_cpu(const CpuIdentity& identity);
[[nodiscard]] std::optional<KnownCpu> known_cpu(const KnownHardware& hardware,
                                                const CpuIdentity& identity);

// FLOPs of one core in one cycle, with vectors of `bits`; "fp32" or "fp64".
[[nodiscard]] double flops_per_cycle(const KnownCpu& cpu, int bits, std::string_view dtype);

}  // namespace ridgeline
