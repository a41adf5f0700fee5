// The ledger against what the operating system reports, and the forecast of the largest batch
// against what can really be allocated.

#include "measure/memory_ledger.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "inspect/complexity.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

StepSpec spec_of(const std::string& model, std::int64_t batch, std::int64_t image = 0) {
  StepSpec spec;
  spec.model = default_config(model);
  if (image > 0) spec.model.height = spec.model.width = image;
  spec.batch = batch;
  spec.optimizer = SgdAttributes{.momentum = 0.9};
  return spec;
}

PlanRequest native() {
  PlanRequest request;
  request.backend = "native";
  return request;
}

// Every page of the scratch arena.
void touch_all(const Session& session) {
  const std::span<std::byte> scratch = session.scratch();
  session.device().fill(scratch.data(), std::byte{1}, scratch.size());
}

std::int64_t sum_of(const std::vector<MemoryEntry>& entries, const std::string& device) {
  std::int64_t sum = 0;
  for (const MemoryEntry& entry : entries) {
    if (entry.device == device && entry.category != "total") sum += entry.bytes;
  }
  return sum;
}

TEST(HostMemory, MappingsGoToTheirOwners) {
  const auto hex = [](long number) {
    std::ostringstream text;
    text << std::hex << number;
    return text.str();
  };
  const std::string guard = hex(0x7000), stack = hex(0x7000 + sysconf(_SC_PAGESIZE));
  std::istringstream smaps(
      "1000-2000 r-xp 00000000 fe:00 1   /usr/lib/libdnnl.so.2\nRss:  8 kB\nVmFlags: rd ex\n"
      "2000-3000 rw-p 00000000 fe:00 1   /usr/lib/libdnnl.so.2\nRss:  4 kB\n"
      "3000-4000 r--p 00000000 fe:00 2   /data/with blanks/images.pack\nRss:  16 kB\n"
      "4000-5000 rw-p 00000000 00:00 0   [heap]\nRss:  32 kB\nVmFlags: rd wr\n"
      "5000-6000 rwxp 00000000 00:00 0 \nRss:  64 kB\n"
      "6000-6800 rw-p 00000000 00:00 0 \nRss:  128 kB\nVmFlags: rd wr mr mw me ac sd hg\n" +
      guard + "-" + stack + " ---p 00000000 00:00 0 \nRss:  0 kB\n" + stack +
      "-90000 rw-p 00000000 00:00 0 \nRss:  256 kB\nVmFlags: rd wr\n"
      "a0000-b0000 rw-p 00000000 00:00 0   [stack]\nRss:  512 kB\nVmFlags: rd wr gd\n"
      "c0000-d0000 rw-s 00000000 00:06 7   /dev/nvidia0\nRss:  2 kB\nVmFlags: rd wr\n"
      "d0000-e0000 r-xp 00000000 fe:00 8   /usr/lib/libcuda.so.1\nRss:  0 kB\nVmFlags: rd ex\n");
  const HostMemory memory = parse_smaps(smaps);
  EXPECT_EQ(memory.driver, 2 * 1024);
  EXPECT_TRUE(memory.driver_loaded);
  EXPECT_EQ(memory.libraries, 12 * 1024);
  EXPECT_EQ(memory.files, 16 * 1024);
  EXPECT_EQ(memory.other, 32 * 1024);
  EXPECT_EQ(memory.generated_code, 64 * 1024);
  EXPECT_EQ(memory.arenas, 128 * 1024);
  EXPECT_EQ(memory.stacks, 768 * 1024);
  EXPECT_EQ(memory.resident, 1022 * 1024);
}

TEST(MemoryLedger, WhatTheAllocatorDoesNotKnowIsTheDrivers) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  HostMemory host;
  host.arenas = 50'000'000;
  host.resident = 50'100'000;
  host.libraries = 20'000;
  host.driver = 5'000;
  host.other = 75'000;
  host.heap_used = 30'000;
  host.heap_free = 10'000;
  MemoryProbe probe;
  probe.host = [&] { return host; };
  probe.heap = [] { return std::int64_t{0}; };
  Session session(*cpu);
  const Session::PlanId plan = session.add(dry_plan(spec_of("mlp", 4), native(), *cpu));
  session.prepare();
  const auto of = [&](const char* category) {
    return bytes_of(MemoryLedger(*cpu, probe).entries(session, {{plan}}), "cpu", category);
  };
  const std::int64_t without = of("rest").value();
  EXPECT_EQ(of("driver"), 5'000);
  host.driver_loaded = true;
  EXPECT_EQ(of("driver").value() - 5'000, without - of("rest").value());
  EXPECT_EQ(of("driver").value(), 5'000 + 35'000);
}

TEST(HostMemory, OnlyTouchedPagesAreResident) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  constexpr std::size_t kBytes = 256 << 10;  // not worth a large page
  const DeviceMemory memory(*cpu, kBytes);
  EXPECT_LT(resident_bytes({memory.data(), kBytes}), 1 << 14);
  cpu->fill(memory.data(), std::byte{1}, kBytes / 2);
  EXPECT_NEAR(static_cast<double>(resident_bytes({memory.data(), kBytes})), kBytes / 2.0, 16384.0);
  cpu->fill(memory.data(), std::byte{1}, kBytes);
  EXPECT_EQ(resident_bytes({memory.data(), kBytes}), static_cast<std::int64_t>(kBytes));
}

// Planned bytes are the session's, also with several plans of different batches.
TEST(MemoryLedger, PlannedEntriesAddUpToTheArenas) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (const char* model : {"mlp", "mnist_cnn", "squeezenet1_1"}) {
    StepRunner runner(*cpu, native());
    const Session::PlanId plans[] = {runner.add_training(spec_of(model, 3, 0)),
                                     runner.add_training(spec_of(model, 2, 0)),
                                     runner.add_evaluation(spec_of(model, 5, 0))};
    const std::vector<MemoryEntry> entries = planned_entries(runner.session(), plans);
    EXPECT_EQ(sum_of(entries, "cpu"), runner.bytes()) << model;
    EXPECT_GE(bytes_of(entries, "cpu", "alignment").value(), 0) << model;
  }
}

// Of the step alone, the plan and the ledger tell the same.
TEST(MemoryLedger, RolesAreThoseOfThePlan) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  StepRunner runner(*cpu, native());
  const Session::PlanId plan = runner.add_training(spec_of("mnist_cnn", 4));
  const BatchComplexity complexity = batch_complexity(runner.session().plan(plan), 4);
  const std::vector<MemoryEntry> entries = planned_entries(runner.session(), {{plan}});
  for (const Role role : {Role::parameter, Role::activation, Role::input, Role::workspace}) {
    EXPECT_EQ(bytes_of(entries, "cpu", std::string(name_of(role))).value_or(0),
              complexity.memory[static_cast<std::size_t>(role)]);
  }
}

struct Case {
  const char* model;
  std::int64_t batch, image;
};

// In whole pages.
std::int64_t occupied(StepRunner& runner) {
  const Session& session = runner.session();
  const Device& device = session.device();
  return static_cast<std::int64_t>(device.occupied(session.state().size()) +
                                   device.occupied(session.scratch().size()));
}

class SlowMemoryLedger : public ::testing::TestWithParam<Case> {};

// Slow*: sanitizers put their own allocator in the heap's place.
TEST_P(SlowMemoryLedger, CategoriesAddUpToWhatTheSystemReports) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  const HostMemory before = read_host_memory();
  MemoryLedger ledger(*cpu);
  StepRunner runner(*cpu, native());
  const Session::PlanId plan =
      runner.add_training(spec_of(GetParam().model, GetParam().batch, GetParam().image));
  runner.prepare(0);
  runner.session().run(plan);
  touch_all(runner.session());
  const HostMemory after = read_host_memory();
  const std::vector<MemoryEntry> entries = ledger.entries(runner.session(), {{plan}});

  // The arenas are what the plan said, to the page; without large pages they do not stand out.
  const double planned = static_cast<double>(runner.bytes());
  if (after.arenas > 0) {
    const double paged = static_cast<double>(occupied(runner));
    EXPECT_NEAR(static_cast<double>(after.arenas - before.arenas), paged, 0.01 * planned + 16384.0);
    EXPECT_EQ(bytes_of(entries, "cpu", "granularity").value_or(0),
              occupied(runner) - static_cast<std::int64_t>(runner.bytes()));
  } else {
    EXPECT_GE(static_cast<double>(after.resident - before.resident), 0.95 * planned);
  }

  const double total = static_cast<double>(bytes_of(entries, "cpu", "total").value());
  EXPECT_EQ(sum_of(entries, "cpu"), bytes_of(entries, "cpu", "total").value());
  EXPECT_LT(std::abs(static_cast<double>(bytes_of(entries, "cpu", "rest").value())), 0.05 * total)
      << ledger_text(entries);
  EXPECT_GT(bytes_of(entries, "cpu", "libraries").value(), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, SlowMemoryLedger,
                         ::testing::Values(Case{"mlp", 4096, 0}, Case{"mnist_cnn", 512, 0},
                                           Case{"resnet18", 4, 64}, Case{"squeezenet1_1", 4, 96},
                                           Case{"densenet121", 2, 64}),
                         [](const auto& test) { return std::string(test.param.model); });

TEST(SlowMemoryLedgerMarks, ALoadersHeapIsItsOwnAndOtherRunsAreTold) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  const auto prepared = [&](StepRunner& runner) {
    const Session::PlanId plan = runner.add_training(spec_of("mnist_cnn", 64));
    runner.prepare(0);
    runner.session().run(plan);
    touch_all(runner.session());
    return plan;
  };
  StepRunner beside(*cpu, native());
  (void)prepared(beside);
  MemoryLedger ledger(*cpu);
  const std::vector<char> pictures(20'000'000, 'x');
  ledger.mark("loader");
  StepRunner runner(*cpu, native());
  const Session::PlanId plan = prepared(runner);
  const std::vector<MemoryEntry> entries = ledger.entries(runner.session(), {{plan}});
  EXPECT_NEAR(static_cast<double>(bytes_of(entries, "cpu", "loader").value()),
              static_cast<double>(pictures.size()), 1e5)
      << ledger_text(entries);
  if (read_host_memory().arenas > 0) {
    const double other = static_cast<double>(bytes_of(entries, "cpu", "other runs").value());
    EXPECT_NEAR(other, static_cast<double>(occupied(beside)), 0.02 * other + 65536.0);
  }
  EXPECT_EQ(sum_of(entries, "cpu"), bytes_of(entries, "cpu", "total").value());
}

// A graphics processor, as far as its memory goes: computes on the host.
class PretendGpu final : public Device {
 public:
  [[nodiscard]] std::string name() const override { return "cuda:0"; }
  [[nodiscard]] std::string kind() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override { return "pretended"; }
  [[nodiscard]] std::string refuse(Precision) const override { return {}; }
  [[nodiscard]] std::size_t available_memory() const override { return 1 << 30; }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    allocated += bytes;
    return host->allocate(bytes);
  }
  void release(std::byte* memory, std::size_t bytes) noexcept override {
    allocated -= bytes;
    host->release(memory, bytes);
  }
  [[nodiscard]] std::size_t allocated_memory() const override { return allocated + staged; }
  [[nodiscard]] std::size_t staging_memory(std::span<const std::byte>) const override {
    return staged;
  }
  [[nodiscard]] std::size_t occupied(std::size_t bytes) const override {
    return host->occupied(bytes);
  }
  [[nodiscard]] std::optional<std::size_t> runtime_memory() const override { return runtime; }
  void upload(std::byte* dst, const void* src, std::size_t bytes) override {
    host->upload(dst, src, bytes);
  }
  void stage(std::byte* dst, const void* src, std::size_t bytes) override {
    host->stage(dst, src, bytes);
  }
  void download(void* dst, const std::byte* src, std::size_t bytes) override {
    host->download(dst, src, bytes);
  }
  void fill(std::byte* dst, std::byte value, std::size_t bytes) override {
    host->fill(dst, value, bytes);
  }
  void launch(const Kernel& kernel, const KernelArgs& args) override { host->launch(kernel, args); }
  void synchronize() override {}
  [[nodiscard]] double time(const std::function<void()>& launches) override {
    return host->time(launches);
  }

  std::unique_ptr<Device> host = make_cpu_device();
  std::size_t runtime = 0, allocated = 0, staged = 0;
};

constexpr std::int64_t kMiB = 1048576;

TEST(MemoryLedger, AGraphicsProcessorsMemoryIsAttributed) {
  PretendGpu gpu;
  gpu.runtime = 500 * kMiB;  // our context and 100 MiB of somebody else
  GpuMemory driver;
  MemoryProbe probe;
  probe.gpu = [&](const std::string& device) {
    EXPECT_EQ(device, "cuda:0");
    return driver;
  };
  driver.reserved = 600 * kMiB;
  driver.used = 1100 * kMiB;
  driver.process = 400 * kMiB;
  MemoryLedger ledger(gpu, probe);
  Session session(gpu);
  const Session::PlanId plan =
      session.add(dry_plan(spec_of("mnist_cnn", 512), native(), *gpu.host));
  session.prepare();
  const std::int64_t own = session.state_bytes() + session.scratch_bytes();
  const std::int64_t staged = 2 * (512 * 28 * 28 + 512 * 4);
  gpu.staged = static_cast<std::size_t>(staged);
  gpu.runtime = 800 * kMiB;
  driver.total = 80'000 * kMiB;
  driver.reserved = 600 * kMiB;
  driver.used = own + staged + static_cast<std::int64_t>(gpu.runtime) + 600 * kMiB;
  driver.process = *driver.used - 700 * kMiB;  // reserve, and still somebody else

  const std::vector<MemoryEntry> entries = ledger.entries(session, {{plan}});
  const auto of = [&](const char* category) { return bytes_of(entries, "cuda:0", category); };
  EXPECT_EQ(sum_of(entries, "cuda:0"), of("total").value());
  EXPECT_EQ(of("total"), driver.used);
  EXPECT_EQ(of("driver"), 600 * kMiB);
  EXPECT_EQ(of("other programs"), 100 * kMiB);
  EXPECT_EQ(of("context"), 400 * kMiB);
  EXPECT_EQ(of("loader"), staged);
  EXPECT_GT(of("granularity").value(), 0);
  EXPECT_EQ(of("libraries").value() + of("granularity").value(), 300 * kMiB);
  EXPECT_EQ(of("rest"), 0);
  EXPECT_FALSE(of("other runs"));
  EXPECT_TRUE(bytes_of(entries, "cpu", "total"));  // the host's part of the run

  // A peer that began meanwhile.
  const std::size_t alone = gpu.runtime;
  gpu.runtime += 17'000 * kMiB;
  *driver.used += 17'000 * kMiB;
  const std::vector<MemoryEntry> beside = ledger.entries(session, {{plan}});
  EXPECT_EQ(sum_of(beside, "cuda:0"), driver.used);
  EXPECT_EQ(bytes_of(beside, "cuda:0", "other programs"), 17'100 * kMiB);
  for (const char* category : {"context", "loader", "granularity", "libraries", "rest"}) {
    EXPECT_EQ(bytes_of(beside, "cuda:0", category), of(category)) << category;
  }
  gpu.runtime = alone;
  *driver.used -= 17'000 * kMiB;

  // A session of ours.
  {
    const DeviceMemory other(gpu, 5 * kMiB);
    *driver.used += 5 * kMiB;
    *driver.process += 5 * kMiB;
    const std::vector<MemoryEntry> pair = ledger.entries(session, {{plan}});
    EXPECT_EQ(sum_of(pair, "cuda:0"), driver.used);
    EXPECT_EQ(bytes_of(pair, "cuda:0", "other runs"), 5 * kMiB);
    for (const char* category : {"context", "loader", "granularity", "libraries", "rest"}) {
      EXPECT_EQ(bytes_of(pair, "cuda:0", category), of(category)) << category;
    }
  }

  // A driver that counts its reserve among what CUDA sees as used.
  driver.used = own + staged + static_cast<std::int64_t>(gpu.runtime);
  driver.reserved = 300 * kMiB;
  driver.process.reset();
  const std::vector<MemoryEntry> inside = ledger.entries(session, {{plan}});
  EXPECT_EQ(bytes_of(inside, "cuda:0", "rest"), 0) << ledger_text(inside);
  EXPECT_EQ(bytes_of(inside, "cuda:0", "context"), 200 * kMiB);

  // Without NVML the total is what CUDA tells.
  driver = {};
  const std::vector<MemoryEntry> bare = ledger.entries(session, {{plan}});
  EXPECT_EQ(bytes_of(bare, "cuda:0", "total"),
            own + staged + static_cast<std::int64_t>(gpu.runtime));
  EXPECT_EQ(bytes_of(bare, "cuda:0", "context"), 500 * kMiB);
  EXPECT_EQ(bytes_of(bare, "cuda:0", "rest"), 0);
}

std::string line_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(MemoryLedger, TheStudysTableHasItsRows) {
  const std::vector<MemoryEntry> entries = {{"cpu", "parameter", "planned", 3 * kMiB},
                                            {"cpu", "activation", "planned", 5 * kMiB},
                                            {"cpu", "libraries", "measured", 7 * kMiB},
                                            {"cpu", "rest", "derived", 1 * kMiB},
                                            {"cpu", "total", "measured", 16 * kMiB}};
  const NamedLedger ledgers[] = {{"native", entries}, {"none", {}}};
  const std::string text = study_memory_text(ledgers);
  const auto line = [&](const std::string& name) { return line_of(text, name); };
  EXPECT_NE(line("parameters").find("3.0 MiB"), std::string::npos) << text;
  EXPECT_NE(line("input").find("n/a"), std::string::npos) << text;
  EXPECT_NE(line("framework overhead").find("8.0 MiB"), std::string::npos) << text;
  EXPECT_NE(line("total").find("16.0 MiB"), std::string::npos) << text;
  EXPECT_EQ(line("other programs"), "") << text;

  std::vector<MemoryEntry> beside = entries;
  beside.push_back({"cpu", "other programs", "derived", 4 * kMiB});
  beside[4].bytes = 20 * kMiB;
  const NamedLedger both[] = {{"beside", beside}};
  const std::string table = study_memory_text(both);
  EXPECT_NE(line_of(table, "framework overhead").find(" 8.0 MiB"), std::string::npos) << table;
  EXPECT_NE(line_of(table, "other programs").find(" 4.0 MiB"), std::string::npos) << table;
}

// Lowers what this process may still map, and lifts the limit at the end.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::int64_t more) {
    std::ifstream statm("/proc/self/statm");
    std::int64_t pages = 0;
    statm >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + more);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(SlowLargestBatch, TheForecastFitsAndTheNextDoesNot) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  const PlanRequest request = native();
  const StepSpec spec = spec_of("resnet18", 1, 128);
  const auto runner_of = [&](std::int64_t batch) {
    StepSpec sized = spec;
    sized.batch = batch;
    auto runner = std::make_unique<StepRunner>(*cpu, request);
    (void)runner->add_training(sized);
    return runner;
  };
  // The threads and the heap are there before memory becomes scarce.
  {
    const auto first = runner_of(1);
    first->prepare(0);
    first->session().run(0);
  }
  const BatchComplexity one = batch_complexity(dry_plan(spec, request, *cpu), 1);
  StepSpec pair = spec;
  pair.batch = 2;
  const std::int64_t each = batch_complexity(dry_plan(pair, request, *cpu), 2).peak - one.peak;
  ASSERT_GT(each, 4 * kMiB);  // much more than the heap will want meanwhile
  const std::int64_t room = one.peak + 2 * each + each / 2;

  const LargestBatch forecast = largest_batch(spec, request, *cpu, room, one);
  ASSERT_GE(forecast.batch, 3);
  const auto fits = runner_of(forecast.batch), too_large = runner_of(forecast.batch + 1);
  EXPECT_EQ(fits->bytes(), forecast.bytes);
  {
    const AddressSpaceLimit limit(room);
    EXPECT_LE(static_cast<std::int64_t>(cpu->available_memory()), room);
    EXPECT_THROW(too_large->session().prepare(), Error);
  }
  {
    const AddressSpaceLimit limit(room);
    fits->session().prepare();  // the arenas alone: initial weights pass through the heap
    fits->session().run(0);
  }
}

}  // namespace
}  // namespace ridgeline
