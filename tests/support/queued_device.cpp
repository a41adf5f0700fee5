#include "support/queued_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "base/error.h"

namespace ridgeline {
namespace {

class QueuedDevice final : public Device {
 public:
  ~QueuedDevice() override {
    for (const auto& [memory, bytes] : blocks_) munmap(memory, bytes);
  }

  [[nodiscard]] std::string name() const override { return "queued"; }
  [[nodiscard]] std::string kind() const override { return "cpu"; }
  [[nodiscard]] std::string description() const override { return "a queue for tests"; }
  [[nodiscard]] std::string refuse(Precision) const override { return {}; }
  [[nodiscard]] std::size_t available_memory() const override { return std::size_t{1} << 32; }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    const std::size_t rounded = std::max<std::size_t>(bytes, 1);
    void* memory = mmap(nullptr, rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ensure(memory != MAP_FAILED, "the test device has no memory left");
    blocks_[static_cast<std::byte*>(memory)] = rounded;
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, std::size_t) noexcept override {
    munmap(memory, blocks_.at(memory));
    blocks_.erase(memory);
  }

  void upload(std::byte* dst, const void* src, std::size_t bytes) override {
    queue_.emplace_back([=] { std::memcpy(dst, src, bytes); });
  }
  // The host's bytes are taken at once, as the contract says.
  void stage(std::byte* dst, const void* src, std::size_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(src);
    queue_.emplace_back([dst, taken = std::vector<std::byte>(begin, begin + bytes)] {
      std::memcpy(dst, taken.data(), taken.size());
    });
  }
  void download(void* dst, const std::byte* src, std::size_t bytes) override {
    queue_.emplace_back([=] { std::memcpy(dst, src, bytes); });
  }
  void fill(std::byte* dst, std::byte value, std::size_t bytes) override {
    queue_.emplace_back([=] { std::memset(dst, static_cast<int>(value), bytes); });
  }
  void launch(const Kernel& kernel, const KernelArgs& args) override {
    queue_.emplace_back([&kernel, &args] { kernel.run(args); });
  }

  void synchronize() override {
    if (queue_.empty()) return;
    protect(PROT_READ | PROT_WRITE);
    std::thread([this] {
      for (const auto& work : queue_) work();
    }).join();
    queue_.clear();
    protect(PROT_NONE);
  }

  [[nodiscard]] std::unique_ptr<Recording> record(const std::function<void()>& launches) override {
    std::vector<std::function<void()>> waiting = std::move(queue_);
    queue_.clear();
    launches();
    auto recording = std::make_unique<QueueRecording>(queue_, std::move(queue_));
    queue_ = std::move(waiting);
    return recording;
  }
  [[nodiscard]] double time(const std::function<void()>& launches) override {
    launches();
    synchronize();
    return 0.0;
  }

 private:
  class QueueRecording final : public Recording {
   public:
    QueueRecording(std::vector<std::function<void()>>& queue,
                   std::vector<std::function<void()>> work)
        : queue_(queue), work_(std::move(work)) {}
    void replay() override { queue_.insert(queue_.end(), work_.begin(), work_.end()); }

   private:
    std::vector<std::function<void()>>& queue_;
    std::vector<std::function<void()>> work_;
  };

  void protect(int rights) {
    for (const auto& [memory, bytes] : blocks_) {
      ensure(mprotect(memory, bytes, rights) == 0, "cannot change the rights of memory");
    }
  }

  std::map<std::byte*, std::size_t> blocks_;
  std::vector<std::function<void()>> queue_;
};

}  // namespace

std::unique_ptr<Device> make_queued_device() { return std::make_unique<QueuedDevice>(); }

}  // namespace ridgeline
