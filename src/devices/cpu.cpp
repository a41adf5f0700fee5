#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/bf16_unit.h"
#include "base/clock.h"
#include "base/cpuinfo.h"
#include "base/error.h"
#include "devices/device.h"
#include "devices/free_memory.h"
#include "devices/side_queue.h"

namespace ridgeline {
namespace {

std::string processor_name() {
  const std::string name = read_cpu_identity().name;
  return name.empty() ? "unknown processor" : name;
}

class CpuDevice final : public Device {
 public:
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] std::string kind() const override { return "cpu"; }
  [[nodiscard]] std::string description() const override { return processor_name(); }
  [[nodiscard]] std::string refuse(Precision precision) const override {
    if (precision == Precision::fp32) return {};
    if (precision == Precision::bf16) return refuse_bf16();
    return "the kernels of the cpu compute in fp32 and bf16 only";
  }
  [[nodiscard]] std::size_t available_memory() const override { return free_host_memory(); }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    // One large page more than is kept: somewhere in it lies its boundary.
    const std::size_t kept = mapped(bytes), spare = in_large_pages(bytes) ? kLargePage : 0;
    void* memory = mmap(nullptr, kept + spare, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      fail("cannot allocate {:.1f} MiB of memory; {:.1f} MiB are available",
           static_cast<double>(bytes) / 1048576.0,
           static_cast<double>(available_memory()) / 1048576.0);
    }
    auto* first = static_cast<std::byte*>(memory);
    if (spare > 0) {
      const std::size_t before =
          (kLargePage - reinterpret_cast<std::uintptr_t>(first) % kLargePage) % kLargePage;
      if (before > 0) munmap(first, before);
      first += before;
      munmap(first + kept, spare - before);
    }
    (void)madvise(first, kept, MADV_HUGEPAGE);  // a refusal costs nothing
    return first;
  }
  void release(std::byte* memory, std::size_t bytes) noexcept override {
    munmap(memory, mapped(bytes));
  }
  [[nodiscard]] std::size_t occupied(std::size_t bytes) const override { return mapped(bytes); }

  void upload(std::byte* dst, const void* src, std::size_t bytes) override {
    std::memcpy(dst, src, bytes);
  }
  void stage(std::byte* dst, const void* src, std::size_t bytes) override {
    upload(dst, src, bytes);
  }
  void download(void* dst, const std::byte* src, std::size_t bytes) override {
    std::memcpy(dst, src, bytes);
  }
  void fill(std::byte* dst, std::byte value, std::size_t bytes) override {
    std::memset(dst, static_cast<int>(value), bytes);
  }
  void launch(const Kernel& kernel, const KernelArgs& args) override { kernel.run(args); }
  void launch_beside(const Kernel& kernel, const KernelArgs& args) override {
    if (!side_) side_ = std::make_unique<SideQueue>();
    side_->push(kernel, args);
  }
  void join(std::size_t count) override {
    if (side_) side_->join(count);
  }
  [[nodiscard]] std::size_t launched_beside() const override { return side_ ? side_->pushed() : 0; }
  void synchronize() override {
    if (side_) side_->join(side_->pushed());
  }
  [[nodiscard]] double time(const std::function<void()>& launches) override {
    const auto start = Clock::now();
    launches();
    return seconds_since(start);
  }

 private:
  // Large pages save address translation. Whole ones from a boundary of theirs on: else chance
  // would decide for each arena how much of it gets them, and with it how fast its kernels run.
  static constexpr std::size_t kLargePage = std::size_t{2} << 20;
  static bool in_large_pages(std::size_t bytes) { return bytes >= kLargePage / 4; }
  static std::size_t mapped(std::size_t bytes) {
    const std::size_t page =
        in_large_pages(bytes) ? kLargePage : static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return std::max<std::size_t>((bytes + page - 1) / page, 1) * page;
  }

  std::unique_ptr<SideQueue> side_;  // from its first kernel on
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace ridgeline
