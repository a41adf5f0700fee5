// Sensors over a made-up /proc and /sys, the sampler's thread, and what readings show.

#include "measure/telemetry/telemetry.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/processor_time.h"
#include "measure/iterations/telemetry_watch.h"
#include "measure/telemetry/sensors.h"
#include "store/columns.h"
#include "support/ordinary_user.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

std::optional<double> value_of(const std::vector<Reading>& readings, const std::string& sensor) {
  for (const Reading& reading : readings) {
    if (reading.sensor == sensor) return reading.value;
  }
  return std::nullopt;
}

std::string reason_of(const SensorSource& source, const std::string& sensor) {
  for (const MissingSensor& missing : source.missing()) {
    if (missing.sensor == sensor) return missing.reason;
  }
  return {};
}

// A folder that stands for the root of a system.
class Sensors : public ::testing::Test {
 protected:
  Sensors() {
    fs::remove_all(root);
    fs::create_directories(root);
    // Others must be able to look into it when a test gives up its rights.
    fs::permissions(root, fs::perms(0755));
  }
  ~Sensors() override { fs::remove_all(root); }

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  [[nodiscard]] std::unique_ptr<SensorSource> source() {
    return system_sensors(
        {.root = root, .now = [this] { return now; }, .counters = [this] { return counters; }});
  }
  static std::vector<Reading> read(SensorSource& source) {
    std::vector<Reading> readings;
    source.read(readings);
    return readings;
  }

  fs::path root = fs::temp_directory_path() / ("ridgeline_sensors_" + std::to_string(getpid()));
  double now = 100.0;
  ProcessCounters counters;
};

TEST_F(Sensors, UtilisationStealAndWaitingAreSharesOfTheTimeBetweenReadings) {
  put("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 0 0 0\ncpu1 1 0 0 0\nintr 5\n");
  const auto sensors = source();
  EXPECT_FALSE(value_of(read(*sensors), "cpu_utilisation_percent"));  // nothing to compare with
  put("proc/stat", "cpu  150 0 110 820 10 0 0 10 0 0\ncpu0 1 0 0 0\ncpu1 1 0 0 0\nintr 5\n");
  now += 1.0;
  const std::vector<Reading> second = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(second, "cpu_utilisation_percent").value(), 60.0);
  EXPECT_DOUBLE_EQ(value_of(second, "iowait_percent").value(), 10.0);
  EXPECT_DOUBLE_EQ(value_of(second, "steal_percent").value(), 10.0);
}

TEST_F(Sensors, ClockTemperatureAndThrottlingAreReadOnceASecond) {
  for (const char* cpu : {"cpu0", "cpu1"}) {
    const std::string folder = std::string("sys/devices/system/cpu/") + cpu;
    put(folder + "/cpufreq/scaling_cur_freq", cpu[3] == '0' ? "2000000\n" : "3000000\n");
    put(folder + "/thermal_throttle/core_throttle_count", "7\n");
  }
  put("sys/class/hwmon/hwmon0/name", "nvme\n");
  put("sys/class/hwmon/hwmon0/temp1_input", "90000\n");
  put("sys/class/hwmon/hwmon1/name", "coretemp\n");
  put("sys/class/hwmon/hwmon1/temp1_input", "61000\n");
  put("sys/class/hwmon/hwmon1/temp2_input", "64500\n");
  const auto sensors = source();
  const std::vector<Reading> first = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(first, "cpu_mhz").value(), 2500.0);
  EXPECT_DOUBLE_EQ(value_of(first, "cpu_temperature_celsius").value(), 64.5);
  EXPECT_DOUBLE_EQ(value_of(first, "cpu_throttle_events").value(), 14.0);
  now += 0.5;
  EXPECT_FALSE(value_of(read(*sensors), "cpu_mhz"));
  now += 0.5;
  EXPECT_TRUE(value_of(read(*sensors), "cpu_mhz"));
}

TEST_F(Sensors, ClockOfAGuestComesFromCpuinfo) {
  put("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2400.5\nprocessor\t: 1\ncpu MHz\t\t: 2600.5\n");
  put("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
  put("sys/class/thermal/thermal_zone0/temp", "55000\n");
  const auto sensors = source();
  const std::vector<Reading> readings = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(readings, "cpu_mhz").value(), 2500.5);
  EXPECT_DOUBLE_EQ(value_of(readings, "cpu_temperature_celsius").value(), 55.0);
}

TEST_F(Sensors, EnergyCountersAddUpAndWrap) {
  const auto zone = [this](const std::string& name, const std::string& kind, const char* energy) {
    put("sys/class/powercap/" + name + "/name", kind + "\n");
    put("sys/class/powercap/" + name + "/max_energy_range_uj", "10000000\n");
    put("sys/class/powercap/" + name + "/energy_uj", energy);
  };
  zone("intel-rapl:0", "package-0", "9000000\n");
  zone("intel-rapl:1", "package-1", "1000000\n");
  zone("intel-rapl:0:0", "core", "500000\n");
  zone("intel-rapl:0:1", "dram", "2000000\n");
  zone("intel-rapl-mmio:0", "package-0", "9000000\n");  // the same counter once more
  const auto sensors = source();
  EXPECT_DOUBLE_EQ(value_of(read(*sensors), "cpu_energy_joules").value(), 0.0);
  put("sys/class/powercap/intel-rapl:0/energy_uj", "500000\n");   // full at 10 J: + 1.5 J
  put("sys/class/powercap/intel-rapl:1/energy_uj", "3000000\n");  // + 2 J
  put("sys/class/powercap/intel-rapl:0:1/energy_uj", "2250000\n");
  const std::vector<Reading> second = read(*sensors);
  EXPECT_NEAR(value_of(second, "cpu_energy_joules").value(), 3.5, 1e-9);
  EXPECT_NEAR(value_of(second, "memory_energy_joules").value(), 0.25, 1e-9);
}

TEST_F(Sensors, WithoutPermissionThereIsAReasonAndNoZero) {
  put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "10000000\n");
  put("sys/class/powercap/intel-rapl:0/energy_uj", "9000000\n");
  fs::permissions(root / "sys/class/powercap/intel-rapl:0/energy_uj", fs::perms(0200));
  const auto sensors = source();
  std::vector<Reading> readings;
  {
    const ridgeline::testing::OrdinaryUser user;
    readings = read(*sensors);
  }
  EXPECT_FALSE(value_of(readings, "cpu_energy_joules"));
  EXPECT_EQ(reason_of(*sensors, "cpu_energy_joules").find("permission denied (/"), 0U)
      << reason_of(*sensors, "cpu_energy_joules");
}

TEST_F(Sensors, ProcessRatesAreOverTheTimeBetweenReadings) {
  put("proc/self/status", "Name:\tx\nVmHWM:\t 300 kB\nVmRSS:\t 200 kB\nThreads:\t5\n");
  put("proc/self/io", "rchar: 7\nread_bytes: 1000\n");
  counters = {10.0, 50.0};
  const auto sensors = source();
  const std::vector<Reading> first = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(first, "rss_bytes").value(), 200.0 * 1024.0);
  EXPECT_DOUBLE_EQ(value_of(first, "peak_rss_bytes").value(), 300.0 * 1024.0);
  EXPECT_DOUBLE_EQ(value_of(first, "threads").value(), 5.0);
  EXPECT_FALSE(value_of(first, "process_cpu_percent"));
  now += 0.5;
  counters = {10.75, 60.0};
  put("proc/self/io", "rchar: 7\nread_bytes: 3000\n");
  const std::vector<Reading> second = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(second, "process_cpu_percent").value(), 150.0);
  EXPECT_DOUBLE_EQ(value_of(second, "context_switches_per_second").value(), 20.0);
  EXPECT_DOUBLE_EQ(value_of(second, "disk_read_bytes_per_second").value(), 4000.0);
}

TEST_F(Sensors, DescendantsAreFoundAndOthersAreNot) {
  const auto process = [this](int id, int parent, int ticks, const std::string& folder) {
    put("proc/" + folder + "/stat", std::to_string(id) + " (a b) c) S " + std::to_string(parent) +
                                        " 0 0 0 0 0 0 0 0 0 " + std::to_string(ticks) +
                                        " 0 0 0 20 0 1 0 9 4096 10 0\n");
  };
  process(20, 1, 0, "self");
  process(20, 1, 0, "20");
  process(31, 20, 100, "31");  // a child
  process(25, 31, 100, "25");  // a grandchild with a smaller number
  process(40, 1, 100, "40");   // somebody else's
  put("proc/stat", "cpu  0 0 0 0 0 0 0 0\ncpu0 0\ncpu1 0\n");
  const auto sensors = source();
  const std::vector<Reading> first = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(first, "processes").value(), 3.0);
  EXPECT_DOUBLE_EQ(value_of(first, "children_rss_bytes").value(),
                   20.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  now += 1.0;
  const auto ticks = static_cast<int>(sysconf(_SC_CLK_TCK));
  process(25, 31, 100 + ticks / 2, "25");
  counters.cpu_seconds = 0.25;
  // Of two processors one and a half are busy: half by a grandchild, a quarter by us.
  put("proc/stat", "cpu  150 0 0 50 0 0 0 0\ncpu0 0\ncpu1 0\n");
  const std::vector<Reading> second = read(*sensors);
  EXPECT_NEAR(value_of(second, "children_cpu_percent").value(), 50.0, 1e-9);
  EXPECT_NEAR(value_of(second, "other_cpu_percent").value(), 75.0, 1e-9);
}

TEST_F(Sensors, MemorySwapAndPressure) {
  put("proc/meminfo",
      "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 90 kB\nSwapFree: 50 kB\n");
  put("proc/vmstat", "pgmajfault 3\npswpin 10\npswpout 20\n");
  put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull total=9\n");
  put("sys/fs/cgroup/memory.max", "max\n");
  put("sys/fs/cgroup/memory.current", "5\n");
  const auto sensors = source();
  const std::vector<Reading> first = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(first, "memory_available_percent").value(), 40.0);
  EXPECT_DOUBLE_EQ(value_of(first, "swap_bytes").value(), 40.0 * 1024.0);
  now += 2.0;
  put("proc/vmstat", "pgmajfault 3\npswpin 14\npswpout 20\n");
  put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=101000\n");
  put("sys/fs/cgroup/memory.max", "204800\n");      // a container with 200 KiB, of which
  put("sys/fs/cgroup/memory.current", "194560\n");  // 10 are free
  const std::vector<Reading> second = read(*sensors);
  EXPECT_DOUBLE_EQ(value_of(second, "swap_in_bytes_per_second").value(),
                   2.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_DOUBLE_EQ(value_of(second, "swap_out_bytes_per_second").value(), 0.0);
  EXPECT_NEAR(value_of(second, "memory_pressure_percent").value(), 5.0, 1e-9);
  EXPECT_DOUBLE_EQ(value_of(second, "memory_available_percent").value(), 5.0);
}

TEST_F(Sensors, AnEmptySystemHasReasonsForEverything) {
  const auto sensors = source();
  now += 1.0;
  (void)read(*sensors);
  for (const char* sensor :
       {"cpu_utilisation_percent", "steal_percent", "cpu_mhz", "cpu_temperature_celsius",
        "cpu_throttle_events", "cpu_energy_joules", "memory_energy_joules", "rss_bytes", "threads",
        "memory_available_bytes", "swap_bytes", "swap_in_bytes_per_second",
        "memory_pressure_percent", "disk_read_bytes_per_second"}) {
    EXPECT_FALSE(reason_of(*sensors, sensor).empty()) << sensor;
  }
}

// What is read here and what cannot be read here are all in the store's registry.
TEST(SystemSensors, EverySensorIsRegistered) {
  const auto sensors = system_sensors();
  std::vector<Reading> readings;
  sensors->read(readings);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  sensors->read(readings);
  for (const Reading& reading : readings) {
    EXPECT_NE(find_name(sensor_names(), reading.sensor), nullptr) << reading.sensor;
  }
  for (const MissingSensor& sensor : sensors->missing()) {
    EXPECT_NE(find_name(sensor_names(), sensor.sensor), nullptr) << sensor.sensor;
  }
}

TEST(SystemSensors, ThisMachineTellsAtLeastItsProcess) {
  const auto sensors = system_sensors();
  std::vector<Reading> readings;
  sensors->read(readings);
  EXPECT_GT(value_of(readings, "rss_bytes").value_or(0.0), 1e6);
  EXPECT_GE(value_of(readings, "threads").value_or(0.0), 1.0);
  EXPECT_GE(value_of(readings, "processes").value_or(0.0), 1.0);
  const SensorState state = read_sensors();
  const std::string table = sensors_text(state);
  EXPECT_GE(state.readings.size(), 5U);
  for (const MissingSensor& sensor : state.missing) EXPECT_FALSE(sensor.reason.empty());
  EXPECT_NE(table.find("process_cpu_percent"), std::string::npos) << table;
  EXPECT_NE(table.find("cpu_energy_joules"), std::string::npos) << table;  // a value or n/a
}

// A source that counts its rounds.
class Counting final : public SensorSource {
 public:
  explicit Counting(int fails_at = -1) : fails_at_(fails_at) {}
  void read(std::vector<Reading>& into) override {
    if (rounds_ == fails_at_) fail("the sensor broke");
    into.push_back({0.0, "cpu", "rounds", static_cast<double>(rounds_++)});
  }
  [[nodiscard]] std::vector<MissingSensor> missing() const override {
    return {{"cpu", "cpu_energy_joules", "permission denied"}};
  }

 private:
  int rounds_ = 0;
  int fails_at_;
};

TEST(ThreadsTelemetry, ReadingsComeInOrderWhileOthersTakeThem) {
  TelemetrySampler sampler(std::make_unique<Counting>(), 500.0, TelemetrySampler::Clock::now());
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      (void)sampler.missing();
      (void)sampler.overhead();
      std::this_thread::yield();
    }
  });
  std::vector<Reading> all;
  while (all.size() < 20) {
    for (Reading& reading : sampler.take()) all.push_back(std::move(reading));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  sampler.stop();
  sampler.stop();
  for (Reading& reading : sampler.take()) all.push_back(std::move(reading));
  done = true;
  other.join();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].value, static_cast<double>(i));  // none lost, none twice
    EXPECT_GE(all[i].at_seconds, i > 0 ? all[i - 1].at_seconds : 0.0);
  }
  EXPECT_EQ(sampler.overhead().readings, static_cast<std::int64_t>(all.size()));
  EXPECT_GT(sampler.overhead().cpu_seconds, 0.0);
  ASSERT_EQ(sampler.missing().size(), 1U);
  EXPECT_TRUE(sampler.take().empty());
}

TEST(ThreadsTelemetry, FirstAndLastReadingAreAlwaysThere) {
  TelemetrySampler sampler(std::make_unique<Counting>(), 0.001, TelemetrySampler::Clock::now());
  sampler.stop();  // long before the first beat
  EXPECT_EQ(sampler.take().size(), 2U);
}

// A source that takes a while.
class Slow final : public SensorSource {
 public:
  void read(std::vector<Reading>& into) override {
    into.push_back({0.0, "cpu", "rounds", 1.0});
    const double begin = thread_processor_seconds();
    while (thread_processor_seconds() - begin < 0.002) {
    }
  }
  [[nodiscard]] std::vector<MissingSensor> missing() const override { return {}; }
};

TEST(ThreadsTelemetry, SlowSensorsAreReadLessOften) {
  TelemetrySampler sampler(std::make_unique<Slow>(), 500.0, TelemetrySampler::Clock::now());
  while (sampler.overhead().readings < 4) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  sampler.stop();
  const std::vector<Reading> readings = sampler.take();
  // 2 ms of a core for each: 100 ms and more from one to the next.
  EXPECT_GE(readings[1].at_seconds - readings[0].at_seconds, 0.099);
  EXPECT_GE(readings[2].at_seconds - readings[1].at_seconds, 0.099);
  EXPECT_GE(readings[3].at_seconds - readings[2].at_seconds, 0.099);
  EXPECT_LT(sampler.overhead().rate_hz, 20.0);
  EXPECT_GE(sampler.overhead().cpu_seconds, 0.004);
}

TEST(ThreadsTelemetry, ASourceThatFailsIsNamedAndTheRestIsKept) {
  TelemetrySampler sampler(std::make_unique<Counting>(3), 1000.0, TelemetrySampler::Clock::now());
  while (sampler.missing().size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  sampler.stop();
  EXPECT_EQ(sampler.take().size(), 3U);
  EXPECT_EQ(sampler.missing().back().reason, "the sensor broke");
}

// Two graphics processors, of which one computes and the other does something else.
class TwoGpus final : public SensorSource {
 public:
  void read(std::vector<Reading>& into) override {
    into.push_back({0.0, "cuda:0", "gpu_power_watts", 100.0});
    into.push_back({0.0, "cuda:1", "gpu_power_watts", 300.0});
  }
  [[nodiscard]] std::vector<MissingSensor> missing() const override { return {}; }
};

class LastEnding final : public MeasureSink {
 public:
  void ended(std::size_t, const Ending& ending) override { numbers = ending.details.numbers; }
  std::map<std::string, double> numbers;
};

TEST(ThreadsTelemetry, EnergyOfARunIsThatOfItsOwnDevice) {
  Subject subject;
  subject.work.batch = 10;
  subject.executor.device = "cuda:0";
  LastEnding last;
  const auto start = TelemetrySampler::Clock::now();
  const auto now = [&] {
    return std::chrono::duration<double>(TelemetrySampler::Clock::now() - start).count();
  };
  TelemetryWatch watch(
      last, std::make_unique<TelemetrySampler>(std::make_unique<TwoGpus>(), 100.0, start),
      {subject});
  watch.group_begun(0.0);
  while (now() < 0.5) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  Sample sample;
  sample.at_seconds = 0.1;
  sample.wall_seconds = 0.3;
  watch.measured(0, {&sample, 1});
  watch.ended(0, {});
  EXPECT_NEAR(last.numbers["mean_power_watts"], 100.0, 1.0);
  EXPECT_NEAR(last.numbers["energy_joules_per_sample"], 100.0 * 0.3 / 10.0, 0.1);
}

TEST(ThreadsTelemetry, RealSensorsCanBeSampled) {
  TelemetrySampler sampler(all_sensors(), 100.0, TelemetrySampler::Clock::now());
  while (sampler.overhead().readings < 5) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  sampler.stop();
  const std::vector<Reading> readings = sampler.take();
  EXPECT_TRUE(value_of(readings, "process_cpu_percent"));
}

TEST(ThreadsTelemetry, ImpossibleRatesAreRefused) {
  for (const double rate : {0.0, -1.0, 1e4, std::nan("")}) {
    EXPECT_THROW(
        TelemetrySampler(std::make_unique<Counting>(), rate, TelemetrySampler::Clock::now()),
        Error);
  }
}

}  // namespace
}  // namespace ridgeline
