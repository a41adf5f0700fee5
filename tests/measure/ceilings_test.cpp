// The table of known hardware is read and refused with place and key; every ceiling of the CPU is
// there under its agreed name, positive and in order; known ones are not measured again.

#include "measure/ceilings/ceilings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/roofline/roofs.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/parallel.h"
#include "devices/device.h"
#include "measure/ceilings/cpu_levels.h"
#include "measure/ceilings/cpu_loops.h"
#include "measure/ceilings/hardware.h"
#include "measure/machine/environment.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

std::string refusal_of(const std::string& text) {
  KnownHardware hardware;
  try {
    parse_hardware(text, "mine.toml", hardware);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "accepted";
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  const std::string refusal = refusal_of(text);
  for (const std::string& part : parts) {
    EXPECT_NE(refusal.find(part), std::string::npos) << refusal << "\nlacks: " << part;
  }
}

TEST(Hardware, EntriesAreReadInUnitsWithoutPrefixes) {
  KnownHardware hardware;
  parse_hardware(R"(
[[gpu]]
name = "Mine"
match = "Mine 5"
unless = ["Laptop"]
fp32_tflops = 1.5
bf16_tflops = 12
memory_gb_per_s = 250
memory_gb = 8
tdp_watts = 60
source = "its box"
[[cpu]]
name = "Cores"
match = "Core X"
fma_units = 2
vector_bits = 256
source = "its box"
)",
                 "mine.toml", hardware);
  const auto gpu = hardware.gpu("NVIDIA Mine 5");
  ASSERT_TRUE(gpu);
  EXPECT_DOUBLE_EQ(gpu->flops.at("fp32"), 1.5e12);
  EXPECT_DOUBLE_EQ(gpu->flops.at("bf16"), 12e12);
  EXPECT_FALSE(gpu->flops.contains("fp64"));
  EXPECT_DOUBLE_EQ(*gpu->memory_bytes_per_second, 250e9);
  EXPECT_DOUBLE_EQ(*gpu->memory_bytes, 8e9);
  EXPECT_DOUBLE_EQ(*gpu->watts, 60.0);
  EXPECT_FALSE(gpu->boost_mhz);
  EXPECT_FALSE(hardware.gpu("NVIDIA Mine 5 Laptop GPU"));
  EXPECT_FALSE(hardware.gpu("NVIDIA Mine 50"));
  const CpuIdentity own{.name = "Some Core X 12", .vendor = "", .family = 0, .model = 0};
  const auto cpu = known_cpu(hardware, own);
  ASSERT_TRUE(cpu);
  EXPECT_DOUBLE_EQ(flops_per_cycle(*cpu, 256, "fp32"), 32.0);
  EXPECT_DOUBLE_EQ(flops_per_cycle(*cpu, 512, "fp32"), 32.0);  // two turns of a narrower unit
  EXPECT_DOUBLE_EQ(flops_per_cycle(*cpu, 128, "fp64"), 8.0);
}

TEST(Hardware, MistakesAreToldWithFileLineAndKey) {
  expect_parts("[[gpu]\n", {"mine.toml, line 1"});
  expect_parts("\n[[tpu]]\nname = \"x\"\n", {"mine.toml, line 2", "'tpu'", "[[gpu]]"});
  expect_parts("[[gpu]]\nname = \"x\"\nsource = \"y\"\n", {"line 1", "'match'", "missing"});
  expect_parts("[[gpu]]\nname = \"x\"\nmatch = \"x\"\nsource = \"y\"\nfp8_tflops = 3\n",
               {"line 5", "unknown key 'fp8_tflops'", "fp16_tflops"});
  expect_parts("[[gpu]]\nname = \"x\"\nmatch = \"x\"\nsource = \"y\"\nfp32_tflops = \"9\"\n",
               {"line 5", "'fp32_tflops'", "number above 0"});
  expect_parts("[[gpu]]\nname = \"x\"\nmatch = \"x\"\nsource = \"y\"\nmemory_gb = -4\n",
               {"line 5", "'memory_gb'", "number above 0"});
  expect_parts("[[gpu]]\nname = \"x\"\nmatch = \"x\"\nsource = \"y\"\nunless = 3\n",
               {"line 5", "'unless'", "list"});
  expect_parts("gpu = 3\n", {"line 1", "'gpu'", "[[gpu]]"});
  expect_parts("[[cpu]]\nname = \"x\"\nsource = \"y\"\nfma_units = 2\nvector_bits = 256\n",
               {"line 1", "'match'", "'family'"});
  expect_parts("[[cpu]]\nname = \"x\"\nmatch = \"x\"\nsource = \"y\"\n", {"'fma_units'"});
}

TEST(Hardware, TheProgramCarriesDevicesOfTheStudies) {
  KnownHardware hardware;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name.starts_with("hardware/")) {
      parse_hardware(file.text, std::string(file.name), hardware);
    }
  }
  const auto rate = [&](const char* device, const char* precision) {
    const auto gpu = hardware.gpu(device);
    return gpu && gpu->flops.contains(precision) ? gpu->flops.at(precision) : 0.0;
  };
  EXPECT_DOUBLE_EQ(rate("Tesla T4", "fp16"), 65e12);
  EXPECT_DOUBLE_EQ(rate("NVIDIA GeForce RTX 4080 Laptop GPU", "fp32"), 33.9e12);
  EXPECT_DOUBLE_EQ(rate("NVIDIA RTX A6000", "fp32"), 38.7e12);
  EXPECT_DOUBLE_EQ(rate("NVIDIA H200", "bf16"), 989.5e12);
  EXPECT_DOUBLE_EQ(rate("NVIDIA L4", "fp32"), 30.3e12);
  EXPECT_FALSE(hardware.gpu("NVIDIA L40S"));
  EXPECT_FALSE(hardware.gpu("NVIDIA GeForce RTX 4090 Laptop GPU"));
  for (const KnownGpu& gpu : hardware.gpus) {
    // Apple tells no rates of its newer ones.
    EXPECT_TRUE(gpu.memory_bytes_per_second && (gpu.integrated || gpu.flops.contains("fp32")))
        << gpu.name;
    // Tensor cores are never slower than the plain units.
    for (const auto& [precision, flops] : gpu.flops) {
      if (precision != "fp64") {
        EXPECT_GE(flops, gpu.flops.at("fp32")) << gpu.name << precision;
      }
    }
  }
  const CpuIdentity ice_lake{
      .name = "Intel(R) Xeon(R) Processor", .vendor = "GenuineIntel", .family = 6, .model = 106};
  const auto cpu = known_cpu(hardware, ice_lake);
  ASSERT_TRUE(cpu);
  EXPECT_DOUBLE_EQ(flops_per_cycle(*cpu, 512, "fp32"), 64.0);
}

TEST(Hardware, TheUsersFilesComeFirst) {
  const fs::path folder = fs::temp_directory_path() / ("hardware_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "mine.toml")
      << "[[gpu]]\nname = \"mine\"\nmatch = \"Tesla T4\"\nfp32_tflops = 7\nsource = \"me\"\n";
  setenv("RIDGELINE_HARDWARE", folder.c_str(), 1);
  const auto own = known_gpu("Tesla T4");
  setenv("RIDGELINE_HARDWARE", (folder / "absent").c_str(), 1);
  EXPECT_THROW((void)known_gpu("Tesla T4"), Error);
  unsetenv("RIDGELINE_HARDWARE");
  fs::remove_all(folder);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->name, "mine");
}

TEST(CpuLevels, WorkingSetsFitTheirLevelAndNotTheOneBelow) {
  Environment env;
  env.caches = {{1, "data", 32 << 10, 2},
                {1, "instruction", 32 << 10, 2},
                {2, "unified", 1 << 20, 2},
                {3, "unified", 32 << 20, 8}};
  env.memory_bytes = std::int64_t{64} << 30;
  env.available_bytes = std::int64_t{32} << 30;
  for (const int threads : {1, 8, 16}) {
    const auto levels = ceilings::memory_levels(env, threads, 0);
    ASSERT_EQ(levels.size(), 4U);
    EXPECT_EQ(levels[0].name, "L1");
    EXPECT_EQ(levels[3].name, "memory");
    EXPECT_EQ(levels[2].capacity, (threads > 8 ? 64 : 32) << 20);
    for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
      for (const std::int64_t bytes : levels[i].sets) {
        EXPECT_LE(bytes * threads, levels[i].capacity / 2);
        if (i > 0) {
          EXPECT_GT(bytes * threads, levels[i - 1].capacity);
        }
      }
    }
    EXPECT_GE(levels[3].sets[0] * threads, 4 * levels[2].capacity);
    EXPECT_LE(levels[3].sets[0] * threads, env.available_bytes / 4);
  }
}

// One short measurement for all tests.
const std::vector<Ceiling>& short_measurement() {
  static const std::vector<Ceiling> ceilings =
      measure_ceilings("cpu", {}, {.repeats = 5, .repeat_seconds = 2e-4, .memory_bytes = 24 << 20});
  return ceilings;
}

const Ceiling* find(const std::string& subject, const std::string& path, const std::string& scope) {
  for (const Ceiling& ceiling : short_measurement()) {
    if (ceiling.subject == subject && ceiling.path == path && ceiling.scope == scope) {
      return &ceiling;
    }
  }
  return nullptr;
}

TEST(SlowCeilings, AllOfTheCpuAreThereUnderTheirNames) {
  std::set<std::string> paths;
  for (const ceilings::FmaLoop& loop : ceilings::fma_loops()) paths.insert(loop.path);
  EXPECT_TRUE(paths.contains("scalar"));
  EXPECT_GE(paths.size(), 2U);
  for (const char* scope : {"one core", "all cores"}) {
    for (const char* dtype : {"fp32", "fp64"}) {
      for (const std::string& path : paths) EXPECT_TRUE(find(dtype, path, scope)) << dtype << path;
    }
    for (const char* path : {"read", "write", "copy", "triad"}) {
      EXPECT_TRUE(find("memory", path, scope)) << path << scope;
      for (const CacheInfo& cache : read_environment().caches) {
        if (cache.type != "instruction") {
          EXPECT_TRUE(find("L" + std::to_string(cache.level), path, scope)) << path << scope;
        }
      }
    }
  }
}

TEST(SlowCeilings, ValuesArePositiveInOrderAndInTheirUnits) {
  for (const Ceiling& ceiling : short_measurement()) {
    SCOPED_TRACE(ceiling.subject + " " + ceiling.path + " " + ceiling.scope);
    EXPECT_EQ(ceiling.device, "cpu");
    EXPECT_GT(ceiling.low, 0.0);
    EXPECT_LE(ceiling.low, ceiling.value);
    EXPECT_LE(ceiling.value, ceiling.high);
    const std::map<std::string, std::string> units = {
        {"compute", "FLOP/s"}, {"bandwidth", "B/s"}, {"latency", "s"}};
    ASSERT_TRUE(units.contains(ceiling.kind)) << ceiling.kind;
    EXPECT_EQ(ceiling.unit, units.at(ceiling.kind));
    EXPECT_EQ(ceiling.capacity_bytes > 0, ceiling.kind == "bandwidth");
    EXPECT_LT(ceiling.high, 1e17);
  }
}

TEST(CeilingDisturbance, IsSeenWhereAllCoresDoLessThanOne) {
  const auto ceiling = [](const char* scope, double high) {
    Ceiling made = ceilings::ceiling_named("cpu", "compute", "fp32", "avx2", scope, "FLOP/s");
    made.low = made.value = made.high = high;
    return made;
  };
  std::vector<Ceiling> found = {ceiling("one core", 100e9), ceiling("all cores", 20e9)};
  ASSERT_EQ(disturbed(found).size(), 1U);
  EXPECT_EQ(disturbed(found)[0].scope, "all cores");
  keep_better(found, std::vector{ceiling("one core", 90e9), ceiling("all cores", 180e9)});
  EXPECT_TRUE(disturbed(found).empty());
  EXPECT_EQ(found[0].high, 100e9);
  EXPECT_EQ(found[1].high, 180e9);
}

// What no attempt brings above one core stays, as a lower bound; what was known is gone on from.
TEST(SlowCeilings, ABusyMachineGivesLowerBounds) {
  std::vector<Ceiling> known = short_measurement();
  for (Ceiling& ceiling : known) {
    // No core does so much: all attempts stay below.
    if (ceiling.kind == "compute" && ceiling.scope == "one core") ceiling.high *= 1e6;
  }
  // Bandwidths may be disturbed in truth; another attempt brings them up.
  const auto computing = [](const Ceiling& ceiling) { return ceiling.kind == "compute"; };
  const std::vector<Ceiling> below = disturbed(known);
  const auto low = std::ranges::count_if(below, computing);
  ASSERT_GT(low, 0);
  const std::vector<Ceiling> found = undisturbed_ceilings("cpu", {}, known);
  EXPECT_EQ(found.size(), known.size());
  std::vector<Ceiling> marked;
  for (const Ceiling& ceiling : found) {
    if (!ceiling.lower_bound) continue;
    marked.push_back(ceiling);
    EXPECT_EQ(ceiling.scope, "all cores");
  }
  EXPECT_EQ(std::ranges::count_if(marked, computing), low);
  EXPECT_NE(roofs_of(found, "cpu", 0).scope.find("lower bounds"), std::string::npos);
}

TEST(SlowCeilings, TheThreadCountIsAsBefore) {
  (void)short_measurement();
  const int before = thread_count();
  set_thread_count(1);
  (void)measure_ceilings("cpu", {},
                         {.repeats = 5, .repeat_seconds = 1e-5, .memory_bytes = 1 << 20});
  EXPECT_EQ(thread_count(), 1);
  set_thread_count(before);
}

TEST(SlowCeilings, KnownOnesAreNotMeasuredAgain) {
  const fs::path file =
      fs::temp_directory_path() / ("ceilings_" + std::to_string(getpid()) + ".db");
  {
    Store store(file);
    const EnvironmentRecord record = environment_record(read_environment(), "test");
    store.add(record);
    Ceiling stored =
        ceilings::ceiling_named("cpu", "compute", "fp32", "avx2", "one core", "FLOP/s");
    ceilings::set_values(stored, std::vector<double>{3e9, 1e9, 2e9});
    stored.clock_mhz = 2900.0;
    store.replace_ceilings(record.key, "cpu", std::vector<Ceiling>{stored});
    int announced = 0;
    const auto known =
        known_or_measured(store, record.key, "cpu",
                          [&](std::int64_t, std::int64_t, const std::string&) { ++announced; });
    EXPECT_EQ(announced, 0);
    ASSERT_EQ(known.size(), 1U);
    EXPECT_DOUBLE_EQ(known[0].value, 2e9);
    EXPECT_DOUBLE_EQ(known[0].low, 1e9);
    EXPECT_DOUBLE_EQ(known[0].high, 3e9);
    EXPECT_DOUBLE_EQ(known[0].clock_mhz.value_or(0.0), 2900.0);
    EXPECT_FALSE(known[0].datasheet);
  }
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(file.string() + end);
}

TEST(SlowCeilings, AllOfAGraphicsProcessorAreThereAndBelowItsDataSheet) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<Ceiling> found = measure_ceilings("cuda:0");
  std::set<std::string> names;
  for (const Ceiling& ceiling : found) {
    SCOPED_TRACE(ceiling.subject + " " + ceiling.path);
    names.insert(ceiling.subject + " " + ceiling.path);
    EXPECT_EQ(ceiling.device, "cuda:0");
    EXPECT_EQ(ceiling.scope, "device");
    EXPECT_GT(ceiling.low, 0.0);
    EXPECT_LE(ceiling.low, ceiling.value);
    EXPECT_LE(ceiling.value, ceiling.high);
    if (ceiling.datasheet) {
      EXPECT_LT(ceiling.high, 1.05 * *ceiling.datasheet);
    }
  }
  for (const char* name :
       {"fp32 cuda core", "fp64 cuda core", "fp16 tensor", "memory read", "memory write",
        "memory copy", "memory triad", "L2 read", "L2 triad", "kernel launch queued",
        "synchronise launch and wait", "graph node replayed", "to device pageable",
        "to device pinned", "from device pageable", "from device pinned"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Ceilings, TooFewRepeatsAndUnknownDevicesAreRefused) {
  EXPECT_THROW((void)measure_ceilings("cpu", {}, {.repeats = 1}), Error);
  EXPECT_THROW((void)measure_ceilings("abacus"), Error);
}

}  // namespace
}  // namespace ridgeline
