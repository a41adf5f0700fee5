// What readings show: findings on made-up series, energy, summaries, and NVML through functions of
// our own.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "measure/telemetry/gpu_sensors.h"
#include "measure/telemetry/telemetry.h"
#include "store/columns.h"

namespace ridgeline {
namespace {

// Ten readings a second of one sensor for some seconds.
struct Series {
  const char *device, *sensor;
  std::function<double(double)> value;
};

std::vector<Reading> readings_of(const std::vector<Series>& series, double seconds = 30.0) {
  std::vector<Reading> readings;
  for (int i = 0; i <= static_cast<int>(seconds * 10.0); ++i) {
    const double at = 0.1 * i;
    for (const Series& one : series) {
      readings.push_back({at, one.device, one.sensor, one.value(at)});
    }
  }
  return readings;
}

std::function<double(double)> always(double value) {
  return [value](double) { return value; };
}

// A little unrest around a value, as real sensors have it.
std::function<double(double)> about(double value, double spread) {
  return [=](double at) { return value + spread * std::sin(37.0 * at); };
}

std::string evidence_of(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return finding.evidence;
  }
  return {};
}

std::vector<Series> healthy() {
  return {{"cpu", "cpu_utilisation_percent", about(95.0, 4.0)},
          {"cpu", "process_cpu_percent", about(188.0, 8.0)},
          {"cpu", "children_cpu_percent", always(0.0)},
          {"cpu", "other_cpu_percent", about(2.0, 2.0)},
          {"cpu", "cpu_mhz", about(2900.0, 150.0)},
          {"cpu", "cpu_throttle_events", always(12.0)},
          {"cpu", "steal_percent", about(0.5, 0.5)},
          {"cpu", "memory_available_percent", about(60.0, 1.0)},
          {"cpu", "memory_available_bytes", always(32e9)},
          {"cpu", "memory_pressure_percent", always(0.0)},
          {"cpu", "swap_in_bytes_per_second", always(0.0)},
          {"cpu", "swap_out_bytes_per_second", always(0.0)},
          {"cuda:0", "gpu_utilisation_percent", about(97.0, 2.0)},
          {"cuda:0", "gpu_sm_mhz", about(1950.0, 20.0)},
          {"cuda:0", "gpu_memory_mhz", always(2619.0)},
          {"cuda:0", "gpu_temperature_celsius", about(60.0, 2.0)},
          {"cuda:0", "gpu_power_watts", about(500.0, 20.0)},
          {"cuda:0", "gpu_memory_occupied_percent", always(80.0)},
          // Idle and application clocks are no throttling.
          {"cuda:0", "gpu_throttle_reasons", [](double at) { return at < 5.0 ? 1.0 : 2.0; }}};
}

std::vector<Finding> findings_with(const Series& changed) {
  std::vector<Series> series = healthy();
  for (Series& one : series) {
    if (std::strcmp(one.sensor, changed.sensor) == 0) one = changed;
  }
  return findings_of(readings_of(series));
}

TEST(Findings, AHealthyRunHasNone) {
  for (const Finding& finding : findings_of(readings_of(healthy()))) {
    ADD_FAILURE() << finding.name << ": " << finding.evidence;
  }
  EXPECT_TRUE(findings_of({}).empty());
}

TEST(Findings, HeatThatSlowsAGraphicsProcessorIsNamedWithItsTime) {
  const auto findings = findings_with({"cuda:0", "gpu_throttle_reasons", [](double at) {
                                         return at >= 10.0 && at < 20.0 ? 0x40 + 0x8 : 0.0;
                                       }});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].name, "thermal throttling");
  EXPECT_EQ(findings[0].severity, "warning");
  EXPECT_NE(findings[0].evidence.find("100 of 301 readings (33%), from 10.0 s to 19.9 s"),
            std::string::npos)
      << findings[0].evidence;
  EXPECT_NE(findings[0].evidence.find("62 °C"), std::string::npos) << findings[0].evidence;
}

TEST(Findings, ThePowerLimitIsNamed) {
  const auto findings = findings_with({"cuda:0", "gpu_throttle_reasons", always(0x4)});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].name, "power throttling");
  EXPECT_NE(findings[0].evidence.find("520 W"), std::string::npos) << findings[0].evidence;
}

TEST(Findings, AHardwareSlowdownWithoutACauseIsNamedSo) {
  const auto findings = findings_with({"cuda:0", "gpu_throttle_reasons", always(0x8)});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].name, "hardware slowdown");
}

TEST(Findings, ProcessorsThatCountSlowdownsAreThrottled) {
  const auto findings = findings_with({"cpu", "cpu_throttle_events", [](double at) {
                                         return at < 12.0 ? 12.0 : at < 15.0 ? 20.0 : 25.0;
                                       }});
  const std::string evidence = evidence_of(findings, "thermal throttling");
  EXPECT_NE(evidence.find("13 slow-downs because of heat from 11.9 s to 15.0 s"), std::string::npos)
      << evidence;
}

TEST(Findings, AClockThatFallsUnderLoadIsADrop) {
  const auto falling = [](double at) { return 1950.0 - 10.0 * at; };  // to 1650
  const auto findings = findings_with({"cuda:0", "gpu_sm_mhz", falling});
  const std::string evidence = evidence_of(findings, "clock drop");
  EXPECT_NE(evidence.find("fell by 11%"), std::string::npos) << evidence;
  // Within 5% it is none.
  EXPECT_TRUE(
      findings_with({"cuda:0", "gpu_sm_mhz", [](double at) { return 1950.0 - 2.0 * at; }}).empty());
}

TEST(Findings, AnIdleDeviceMayLowerItsClock) {
  std::vector<Series> series = healthy();
  for (Series& one : series) {
    if (std::strcmp(one.sensor, "gpu_sm_mhz") == 0) {
      one.value = [](double at) { return at < 15.0 ? 1950.0 : 345.0; };
    }
    if (std::strcmp(one.sensor, "gpu_utilisation_percent") == 0) {
      one.value = [](double at) { return at < 15.0 ? 98.0 : 0.0; };
    }
  }
  EXPECT_TRUE(findings_of(readings_of(series)).empty());
}

TEST(Findings, MemoryPressureByEachOfItsSigns) {
  EXPECT_NE(evidence_of(findings_with({"cpu", "memory_available_percent",
                                       [](double at) { return 20.0 - 0.6 * at; }}),
                        "memory pressure")
                .find("only 2.0% of the memory (29.8 GiB) was left at 30.0 s"),
            std::string::npos);
  EXPECT_NE(evidence_of(findings_with({"cpu", "memory_pressure_percent", about(8.0, 4.0)}),
                        "memory pressure")
                .find("8.0% of the time"),
            std::string::npos);
  EXPECT_NE(evidence_of(findings_with({"cuda:0", "gpu_memory_occupied_percent", always(98.5)}),
                        "memory pressure")
                .find("98.5%"),
            std::string::npos);
}

TEST(Findings, SwappingTellsHowMuch) {
  const auto findings = findings_with({"cpu", "swap_in_bytes_per_second", [](double at) {
                                         return at >= 10.0 && at <= 12.0 ? 1048576.0 : 0.0;
                                       }});
  const std::string evidence = evidence_of(findings, "swapping");
  EXPECT_NE(evidence.find("2.1 MiB were read from swap and 0 B written"), std::string::npos)
      << evidence;
}

TEST(Findings, NeighboursOnTheHostAndInTheSystem) {
  EXPECT_NE(evidence_of(findings_with({"cpu", "steal_percent", about(6.0, 3.0)}), "noisy neighbour")
                .find("6.0% of the processors' time"),
            std::string::npos);
  const auto findings = findings_with({"cpu", "other_cpu_percent", about(60.0, 5.0)});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, "warning");
  EXPECT_NE(findings[0].evidence.find("used 0.6 processors"), std::string::npos)
      << findings[0].evidence;
}

std::vector<Sample> samples_of(int count, const std::function<double(int)>& wait) {
  std::vector<Sample> samples;
  double at = 0.0;
  for (int i = 0; i < count; ++i) {
    Sample sample;
    sample.iteration = i;
    sample.at_seconds = at;
    sample.data_wait_seconds = wait(i);
    sample.wall_seconds = 0.010 + wait(i);
    at += sample.wall_seconds;
    samples.push_back(sample);
  }
  return samples;
}

TEST(Findings, ALoaderThatIsTooSlowOrStallsIsNamed) {
  const auto bound = loader_findings(samples_of(100, [](int) { return 0.005; }));
  ASSERT_EQ(bound.size(), 1U);
  EXPECT_EQ(bound[0].name, "loader-bound");
  EXPECT_NE(bound[0].evidence.find("during 33% of their time: 5.00 ms of 15.00 ms"),
            std::string::npos)
      << bound[0].evidence;
  const auto stalls = loader_findings(samples_of(100, [](int i) { return i == 50 ? 0.2 : 1e-5; }));
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_EQ(stalls[0].name, "loader stalls");
  EXPECT_NE(stalls[0].evidence.find("1 of 100 steps"), std::string::npos) << stalls[0].evidence;
  EXPECT_TRUE(loader_findings(samples_of(100, [](int i) { return i % 7 * 1e-4; })).empty());
  EXPECT_TRUE(loader_findings({}).empty());
  std::vector<Sample> silent = samples_of(10, [](int) { return 0.005; });
  for (Sample& sample : silent) sample.data_wait_seconds.reset();
  EXPECT_TRUE(loader_findings(silent).empty());
}

TEST(Energy, FromCountersBetweenTheirReadings) {
  // 100 W, a reading each 0.1 s.
  const auto readings =
      readings_of({{"cuda:0", "gpu_energy_joules", [](double at) { return 5e5 + 100.0 * at; }},
                   {"cuda:0", "gpu_power_watts", always(90.0)}},
                  10.0);
  EXPECT_NEAR(energy_between(readings, "cuda:0", 2.0, 5.0).value(), 300.0, 1e-6);
  EXPECT_NEAR(energy_between(readings, "cuda:0", 2.03, 2.07).value(), 4.0, 1e-6);
  EXPECT_NEAR(energy_between(readings, "cuda:0", -0.1, 10.1).value(), 1020.0, 1e-6);
  EXPECT_FALSE(energy_between(readings, "cuda:0", 5.0, 20.0));  // half of it was not read
  EXPECT_FALSE(energy_between(readings, "cuda:1", 2.0, 5.0));
  EXPECT_FALSE(energy_between(readings, "cuda:0", 5.0, 5.0));
}

TEST(Energy, ACounterThatStartsAgainLosesNothing) {
  const auto readings =
      readings_of({{"cuda:0", "gpu_energy_joules",
                    [](double at) { return at < 4.95 ? 1e6 + 100.0 * at : 100.0 * (at - 4.95); }}},
                  10.0);
  EXPECT_NEAR(energy_between(readings, "cuda:0", 0.0, 10.0).value(), 1000.0, 1e-3);
}

TEST(Energy, ProcessorAndMemoryAddUp) {
  const auto readings =
      readings_of({{"cpu", "cpu_energy_joules", [](double at) { return 40.0 * at; }},
                   {"cpu", "memory_energy_joules", [](double at) { return 10.0 * at; }}},
                  10.0);
  EXPECT_NEAR(energy_between(readings, "cpu", 1.0, 3.0).value(), 100.0, 1e-6);
}

TEST(Energy, FromPowerByTrapezoids) {
  const auto ramp = [](double at) { return 100.0 + 10.0 * at; };
  const auto readings = readings_of({{"cuda:0", "gpu_power_watts", ramp}}, 10.0);
  EXPECT_NEAR(energy_between(readings, "cuda:0", 0.0, 10.0).value(), 1500.0, 1e-6);
  EXPECT_NEAR(energy_between(readings, "cuda:0", 2.05, 4.05).value(), 261.0, 1e-6);
  EXPECT_FALSE(energy_between({}, "cuda:0", 0.0, 1.0));
}

TEST(Summaries, MeansAreOverTime) {
  // Long at 10, shortly at 30: the mean of the readings would be 20.
  const std::vector<Reading> readings = {{0.0, "cpu", "x", 10.0},
                                         {9.0, "cpu", "x", 10.0},
                                         {9.5, "cpu", "x", 30.0},
                                         {10.0, "cpu", "x", 30.0},
                                         {1.0, "cuda:0", "x", 5.0}};
  const std::vector<SensorSummary> summaries = summaries_of(readings);
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_NEAR(summaries[0].mean, 11.5, 1e-9);
  EXPECT_EQ(summaries[0].readings, 4);
  EXPECT_EQ(summaries[0].min, 10.0);
  EXPECT_EQ(summaries[0].max, 30.0);
  EXPECT_EQ(summaries[0].first, 10.0);
  EXPECT_EQ(summaries[0].last, 30.0);
  EXPECT_EQ(summaries[1].mean, 5.0);
}

// A driver with two devices, the second of which knows nothing.
namespace fake {

nvml::Device device(std::uintptr_t number) { return reinterpret_cast<nvml::Device>(number); }
nvml::Result ok_if_first(nvml::Device of) {
  return of == device(1) ? nvml::kSuccess : nvml::kNotSupported;
}

nvml::Library driver() {
  nvml::Library library;
  library.device_count = [](unsigned* count) {
    *count = 2;
    return nvml::kSuccess;
  };
  library.handle_by_index = [](unsigned index, nvml::Device* handle) {
    if (index > 1) return nvml::kNotFound;
    *handle = device(index + 1);
    return nvml::kSuccess;
  };
  library.handle_by_pci_bus_id = [](const char* id, nvml::Device* handle) {
    if (std::string_view(id) != "0000:3B:00.0") return nvml::kNotFound;
    *handle = device(2);
    return nvml::kSuccess;
  };
  library.utilisation = [](nvml::Device of, nvml::Utilisation* rates) {
    *rates = {97, 43};
    return ok_if_first(of);
  };
  library.memory = [](nvml::Device of, nvml::Memory* memory) {
    *memory = {1000, 250, 750};
    return ok_if_first(of);
  };
  library.processes = [](nvml::Device of, unsigned* count, nvml::ProcessInfo* processes) {
    if (*count < 20) {  // more than the first guess has room for
      *count = 20;
      return nvml::kInsufficientSize;
    }
    for (unsigned i = 0; i < 20; ++i) processes[i] = {i == 19 ? unsigned(getpid()) : 1U, 500, 0, 0};
    *count = 20;
    return ok_if_first(of);
  };
  library.clock = [](nvml::Device of, nvml::ClockType type, unsigned* mhz) {
    *mhz = type == nvml::kSmClock ? 1980 : 2619;
    return ok_if_first(of);
  };
  library.power = [](nvml::Device of, unsigned* milliwatts) {
    *milliwatts = 512500;
    return ok_if_first(of);
  };
  library.name = [](nvml::Device, char* text, unsigned size) {
    std::strncpy(text, "NVIDIA H200", size);
    return nvml::kSuccess;
  };
  library.ecc_mode = [](nvml::Device of, unsigned* current, unsigned* pending) {
    *current = *pending = 1;
    return ok_if_first(of);
  };
  library.fan_speed = [](nvml::Device, unsigned*) { return nvml::kNotSupported; };
  library.performance_state = [](nvml::Device of, int* state) {
    *state = 0;
    return ok_if_first(of);
  };
  library.energy = [](nvml::Device of, unsigned long long* millijoules) {
    *millijoules = 1234567;
    return ok_if_first(of);
  };
  library.clock_reasons = [](nvml::Device of, unsigned long long* reasons) {
    *reasons = nvml::kPowerCap;
    return ok_if_first(of);
  };
  return library;
}

}  // namespace fake

TEST(GpuSensors, ValuesInUnitsAndReasonsForTheRest) {
  const nvml::Library library = fake::driver();
  const auto sensors =
      gpu_sensors(library, nvml::devices_of(library, {}, nullptr), [] { return 1.0; });
  std::vector<Reading> readings;
  sensors->read(readings);
  std::map<std::string, double> values;
  for (const Reading& reading : readings) {
    EXPECT_EQ(reading.device, "cuda:0") << reading.sensor;  // the other has nothing to tell
    EXPECT_NE(find_name(sensor_names(), reading.sensor), nullptr) << reading.sensor;
    values[reading.sensor] = reading.value;
  }
  EXPECT_EQ(values.at("gpu_utilisation_percent"), 97.0);
  EXPECT_EQ(values.at("gpu_memory_utilisation_percent"), 43.0);
  EXPECT_EQ(values.at("gpu_memory_used_bytes"), 750.0);
  EXPECT_EQ(values.at("gpu_memory_occupied_percent"), 75.0);
  EXPECT_EQ(values.at("gpu_process_memory_bytes"), 500.0);
  EXPECT_EQ(values.at("gpu_sm_mhz"), 1980.0);
  EXPECT_EQ(values.at("gpu_memory_mhz"), 2619.0);
  EXPECT_NEAR(values.at("gpu_power_watts"), 512.5, 1e-9);
  EXPECT_NEAR(values.at("gpu_energy_joules"), 1234.567, 1e-9);
  EXPECT_EQ(values.at("gpu_throttle_reasons"), 4.0);
  EXPECT_EQ(values.at("gpu_pstate"), 0.0);
  std::map<std::string, std::string> missing;
  for (const MissingSensor& sensor : sensors->missing()) {
    missing[sensor.device + " " + sensor.sensor] = sensor.reason;
    EXPECT_NE(find_name(sensor_names(), sensor.sensor), nullptr) << sensor.sensor;
  }
  EXPECT_EQ(missing.at("cuda:0 gpu_fan_percent"), "not supported by this device");
  EXPECT_EQ(missing.at("cuda:0 gpu_temperature_celsius"),
            "the installed driver has no nvmlDeviceGetTemperature");
  EXPECT_EQ(missing.at("cuda:1 gpu_power_watts"), "not supported by this device");
  EXPECT_FALSE(missing.contains("cuda:0 gpu_power_watts"));
}

TEST(GpuSensors, DevicesAreThoseThatCudaShows) {
  const nvml::Library library = fake::driver();
  // CUDA's first device is NVML's second.
  const auto by_bus = nvml::devices_of(library, {"0000:3B:00.0", "0000:99:00.0"}, nullptr);
  ASSERT_EQ(by_bus.size(), 2U);
  EXPECT_EQ(by_bus[0].name, "cuda:0");
  EXPECT_EQ(by_bus[0].handle, fake::device(2));
  EXPECT_EQ(by_bus[1].handle, nullptr);
  EXPECT_NE(by_bus[1].unavailable.find("0000:99:00.0"), std::string::npos);
  const auto visible = nvml::devices_of(library, {}, "1,0");
  ASSERT_EQ(visible.size(), 2U);
  EXPECT_EQ(visible[0].handle, fake::device(2));
  EXPECT_EQ(visible[1].handle, fake::device(1));
  EXPECT_TRUE(nvml::devices_of(library, {}, "-1").empty());
  EXPECT_TRUE(nvml::devices_of(library, {}, "").empty());
  nvml::Library none;
  none.unavailable = "no driver";
  EXPECT_TRUE(nvml::devices_of(none, {}, nullptr).empty());
  const auto sensors = gpu_sensors(none, {}, [] { return 1.0; });
  ASSERT_EQ(sensors->missing().size(), 1U);
  EXPECT_EQ(sensors->missing()[0].reason, "no driver");
}

TEST(GpuSensors, ADescriptionHasWhatTheDriverTells) {
  EXPECT_EQ(gpu_description(fake::driver(), fake::device(1)), "NVIDIA H200, ECC on");
  EXPECT_EQ(gpu_description(fake::driver(), fake::device(2)), "NVIDIA H200");
}

TEST(GpuSensors, TheLayoutIsTheDriversOwn) {
  EXPECT_EQ(sizeof(nvml::ProcessInfo), 24U);
  EXPECT_EQ(sizeof(nvml::MemoryV2), 40U);
  EXPECT_EQ(nvml::kMemoryV2, 0x02000028U);
  const GpuMemory memory = gpu_memory(fake::driver(), fake::device(1));
  EXPECT_EQ(memory.used.value(), 750);
  EXPECT_EQ(memory.process.value(), 500);
  EXPECT_FALSE(memory.reserved);  // this driver cannot tell
}

}  // namespace
}  // namespace ridgeline
