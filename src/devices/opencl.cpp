// Devices of any maker through OpenCL 1.2: one in-order queue.

#include "devices/opencl.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "devices/free_memory.h"
#include "devices/opencl_queue.h"

namespace ridgeline {
namespace {

using namespace opencl;

constexpr double kMiB = 1048576.0;

// A batch on its way: host memory that the driver can copy from by itself.
class HostSlot {
 public:
  HostSlot() = default;
  ~HostSlot() { free(); }
  HostSlot(const HostSlot&) = delete;
  HostSlot& operator=(const HostSlot&) = delete;

  void send(const Queue& queue, const Place& dst, const void* src, std::size_t bytes) {
    sent_.wait();
    if (bytes > size_) grow(queue, bytes);
    std::memcpy(host_, src, bytes);
    check(library().clEnqueueWriteBuffer(queue.handle(), dst.buffer, CL_FALSE, dst.offset, bytes,
                                         host_, 0, nullptr, sent_.slot()),
          "a copy of a batch");
    check(library().clFlush(queue.handle()), "a copy of a batch");
  }

 private:
  void grow(const Queue& queue, std::size_t bytes) {
    free();
    cl_int error = CL_SUCCESS;
    pinned_ =
        library().clCreateBuffer(queue.context().handle(),
                                 CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &error);
    check(error, "host memory for batches");
    queue_ = queue.handle();
    host_ = library().clEnqueueMapBuffer(queue_, pinned_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                         bytes, 0, nullptr, nullptr, &error);
    check(error, "host memory for batches");
    size_ = bytes;
  }
  void free() {
    if (host_ != nullptr) {
      (void)library().clEnqueueUnmapMemObject(queue_, pinned_, host_, 0, nullptr, nullptr);
    }
    if (pinned_ != nullptr) (void)library().clReleaseMemObject(pinned_);
    host_ = nullptr;
    pinned_ = nullptr;
    size_ = 0;
  }

  cl_mem pinned_ = nullptr;
  cl_command_queue queue_ = nullptr;
  void* host_ = nullptr;
  std::size_t size_ = 0;
  Event sent_;
};

class StepRecording final : public Recording {
 public:
  explicit StepRecording(std::unique_ptr<CommandBuffer> buffer) : buffer_(std::move(buffer)) {}
  void replay() override { buffer_->replay(); }

 private:
  std::unique_ptr<CommandBuffer> buffer_;
};

class OpenClDevice final : public Device {
 public:
  OpenClDevice(int index, Context& context)
      : index_(index), properties_(context.properties()), queue_(context) {}
  ~OpenClDevice() override { (void)library().clFinish(queue_.handle()); }

  [[nodiscard]] std::string name() const override { return fmt::format("opencl:{}", index_); }
  [[nodiscard]] std::string kind() const override { return "opencl"; }
  [[nodiscard]] std::string description() const override { return properties_.name; }
  [[nodiscard]] std::string refuse(Precision precision) const override {
    if (precision == Precision::fp32 || precision == Precision::fp16) return {};
    return "the kernels of OpenCL devices compute in fp32 and fp16";
  }
  [[nodiscard]] std::size_t available_memory() const override {
    const auto whole = static_cast<std::size_t>(properties_.memory_bytes);
    const std::size_t left = whole > allocated_ ? whole - allocated_ : 0;
    return properties_.cpu ? std::min(left, free_host_memory()) : left;
  }
  [[nodiscard]] std::size_t allocated_memory() const override { return allocated_; }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    const auto most = static_cast<std::size_t>(properties_.largest_allocation);
    if (bytes > most) {
      no_room("cannot allocate {:.1f} MiB on {} ({}): it gives at most {:.1f} MiB in one piece",
              static_cast<double>(bytes) / kMiB, name(), description(),
              static_cast<double>(most) / kMiB);
    }
    std::byte* memory = nullptr;
    try {
      memory = queue_.allocate(bytes);
    } catch (const Error& error) {
      fail("cannot allocate {:.1f} MiB on {} ({}); about {:.1f} MiB are free there: {}",
           static_cast<double>(bytes) / kMiB, name(), description(),
           static_cast<double>(available_memory()) / kMiB, error.what());
    }
    allocated_ += bytes;
    return memory;
  }
  void release(std::byte* memory, std::size_t bytes) noexcept override {
    // The buffer may still be in use by what was queued.
    (void)library().clFinish(queue_.handle());
    lanes_.erase(lanes_.lower_bound(memory), lanes_.lower_bound(memory + bytes));
    queue_.release(memory);
    allocated_ -= bytes;
  }

  void upload(std::byte* dst, const void* src, std::size_t bytes) override {
    if (bytes == 0) return;
    const Place place = queue_.place(dst);
    check(library().clEnqueueWriteBuffer(queue_.handle(), place.buffer, CL_FALSE, place.offset,
                                         bytes, src, 0, nullptr, nullptr),
          "an upload");
  }
  void stage(std::byte* dst, const void* src, std::size_t bytes) override {
    if (bytes == 0) return;
    Lane& lane = lanes_[dst];
    lane.slots[lane.next].send(queue_, queue_.place(dst), src, bytes);
    lane.next = 1 - lane.next;
  }
  void download(void* dst, const std::byte* src, std::size_t bytes) override {
    if (bytes == 0) return;
    const Place place = queue_.place(src);
    check(library().clEnqueueReadBuffer(queue_.handle(), place.buffer, CL_FALSE, place.offset,
                                        bytes, dst, 0, nullptr, nullptr),
          "a download");
  }
  void fill(std::byte* dst, std::byte value, std::size_t bytes) override {
    if (bytes == 0) return;
    const Place place = queue_.place(dst);
    check(library().clEnqueueFillBuffer(queue_.handle(), place.buffer, &value, 1, place.offset,
                                        bytes, 0, nullptr, nullptr),
          "a fill");
  }
  void launch(const Kernel& kernel, const KernelArgs& args) override { kernel.run(args); }
  void synchronize() override { queue_.finish(); }
  [[nodiscard]] void* queue() const override { return &queue_; }

  [[nodiscard]] std::unique_ptr<Recording> record(const std::function<void()>& launches) override {
    if (!recording_refusal(queue_.context()).empty()) return nullptr;
    std::unique_ptr<CommandBuffer> buffer = queue_.record(launches);
    if (buffer == nullptr) return nullptr;
    return std::make_unique<StepRecording>(std::move(buffer));
  }

  [[nodiscard]] double time(const std::function<void()>& launches) override {
    synchronize();
    Event begin, end;
    begin.mark(queue_);
    launches();
    end.mark(queue_);
    synchronize();
    return end.seconds() - begin.seconds();
  }

 private:
  int index_;
  const Properties& properties_;
  mutable Queue queue_;
  std::size_t allocated_ = 0;
  // Two batches may be under way to each place.
  struct Lane {
    std::array<HostSlot, 2> slots;
    std::size_t next = 0;
  };
  std::map<const std::byte*, Lane> lanes_;  // by the place they lead to
};

}  // namespace

std::string opencl_unavailable() { return opencl::unavailable(); }

std::vector<OpenClInfo> opencl_devices() {
  std::vector<OpenClInfo> devices;
  for (const auto& context : opencl::contexts()) {
    const Properties& p = context->properties();
    devices.push_back({.name = p.name,
                       .platform = p.platform,
                       .version = p.version,
                       .driver = p.driver,
                       .cpu = p.cpu,
                       .fp16 = p.fp16,
                       .fp64 = p.fp64,
                       .command_buffers = p.command_buffers,
                       .compute_units = p.compute_units,
                       .clock_mhz = p.clock_mhz,
                       .memory_bytes = p.memory_bytes,
                       .largest_allocation = p.largest_allocation,
                       .local_bytes = p.local_bytes,
                       .cache_bytes = p.cache_bytes});
  }
  return devices;
}

std::string opencl_recording_refusal(std::size_t index) {
  return recording_refusal(*opencl::contexts().at(index));
}

std::unique_ptr<Device> make_opencl_device(int index) {
  const std::string reason = opencl::unavailable();
  if (!reason.empty()) bad_input("device 'opencl:{}' cannot be used: {}", index, reason);
  const auto& all = opencl::contexts();
  const int count = static_cast<int>(all.size());
  if (index >= count) {
    bad_input("device 'opencl:{}' does not exist: there {} {}, from opencl:0 to opencl:{}", index,
              count == 1 ? "is" : "are", count, count - 1);
  }
  Context& context = *all[static_cast<std::size_t>(index)];
  make_current(context);
  return std::make_unique<OpenClDevice>(index, context);
}

}  // namespace ridgeline
