// NVIDIA graphics processors: one stream that computes, one that copies the next batch, and one for
// what runs beside the computing.

#include <cuda_runtime_api.h>
#include <sched.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "devices/cuda_bus.h"
#include "devices/cuda_check.h"
#include "devices/cuda_event.h"
#include "devices/cuda_upload.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

using cuda::check;
using cuda::Event;

constexpr double kMiB = 1048576.0;

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Why there is no device at all; empty when there is one.
std::string no_device_reason(int& count) {
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return {};
  (void)cudaGetLastError();  // it would be reported again by the next call
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  if (driver == 0) return "no NVIDIA driver was found";
  if (error == cudaErrorInsufficientDriver) {
    return fmt::format("the NVIDIA driver serves CUDA {} at most, and this build needs {}",
                       version_text(driver), version_text(CUDART_VERSION));
  }
  if (error == cudaSuccess || error == cudaErrorNoDevice) {
    return "no NVIDIA graphics processor was found";
  }
  return cudaGetErrorString(error);
}

class GraphRecording final : public Recording {
 public:
  GraphRecording(cudaGraph_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {
    check(cudaGraphInstantiate(&executable_, graph_, 0), "making a graph of the step");
    check(cudaGraphUpload(executable_, stream_), "uploading the step's graph");
  }
  ~GraphRecording() override {
    (void)cudaGraphExecDestroy(executable_);
    (void)cudaGraphDestroy(graph_);
  }
  void replay() override { check(cudaGraphLaunch(executable_, stream_), "starting the step"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// A batch on its way: from the host's memory to pinned memory, to a place on the device of its own,
// and from there, when the step before is done, to where the step reads it.
class StagingSlot {
 public:
  StagingSlot() = default;
  ~StagingSlot() { free(); }
  StagingSlot(const StagingSlot&) = delete;
  StagingSlot& operator=(const StagingSlot&) = delete;

  void send(std::byte* dst, const void* src, std::size_t bytes, cudaStream_t compute,
            cudaStream_t copies) {
    if (bytes > size_) grow(bytes);
    consumed_.wait();
    std::memcpy(pinned_, src, bytes);
    check(cudaMemcpyAsync(device_, pinned_, bytes, cudaMemcpyHostToDevice, copies), "a copy");
    arrived_.record(copies);
    check(cudaStreamWaitEvent(compute, arrived_.get(), 0), "waiting for a copy");
    check(cudaMemcpyAsync(dst, device_, bytes, cudaMemcpyDeviceToDevice, compute), "a copy");
    consumed_.record(compute);
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void grow(std::size_t bytes) {
    consumed_.wait();
    free();
    check(cudaMallocHost(&pinned_, bytes), "pinned memory for batches");
    check(cudaMalloc(&device_, bytes), "device memory for batches");
    size_ = bytes;
  }
  void free() {
    (void)cudaFreeHost(pinned_);
    (void)cudaFree(device_);
    pinned_ = device_ = nullptr;
    size_ = 0;
  }

  void* pinned_ = nullptr;
  void* device_ = nullptr;
  std::size_t size_ = 0;
  Event arrived_{cudaEventDisableTiming}, consumed_{cudaEventDisableTiming};
};

// The second queue: a stream that branches off the computing one and is joined with it again. In a
// step that is being recorded both become branches of its graph.
class SideStream {
 public:
  explicit SideStream(cudaStream_t compute) : compute_(compute) {
    // Its kernels are short of work and long of waiting: they go first.
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "a stream");
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  ~SideStream() { (void)cudaStreamDestroy(stream_); }

  void launch(const Kernel& kernel, KernelArgs args) {
    branch_.record(compute_);
    check(cudaStreamWaitEvent(stream_, branch_.get(), 0), "waiting for an event");
    args.queue = stream_;
    kernel.run(args);
    const std::size_t place = launched_ - first_kept_;
    if (place == done_.size()) done_.emplace_back(cudaEventDisableTiming);
    done_[place].record(stream_);
    ++launched_;
  }
  // The stream runs one after the other: who waits for one has waited for those before it.
  void join(std::size_t count) {
    if (count <= joined_) return;
    check(cudaStreamWaitEvent(compute_, done_[count - 1 - first_kept_].get(), 0),
          "waiting for an event");
    joined_ = count;
    if (joined_ == launched_) first_kept_ = launched_;
  }
  [[nodiscard]] std::size_t launched() const { return launched_; }

 private:
  cudaStream_t compute_ = nullptr, stream_ = nullptr;
  Event branch_{cudaEventDisableTiming};
  std::deque<Event> done_;  // of the kernels from first_kept_ on
  std::size_t launched_ = 0, joined_ = 0, first_kept_ = 0;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    check(cudaSetDevice(index), "choosing the device");
    check(cudaGetDeviceProperties(&properties_, index), "reading the device's properties");
    check(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking), "a stream");
    check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "a stream");
    start_.emplace(cudaEventDefault);
    stop_.emplace(cudaEventDefault);
  }
  ~CudaDevice() override {
    (void)cudaDeviceSynchronize();
    lanes_.clear();
    side_.reset();
    (void)cudaStreamDestroy(compute_);
    (void)cudaStreamDestroy(copies_);
  }

  [[nodiscard]] std::string name() const override { return fmt::format("cuda:{}", index_); }
  [[nodiscard]] std::string kind() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override { return properties_.name; }
  [[nodiscard]] std::string unique_id() const override {
    std::string digits;
    for (const char byte : properties_.uuid.bytes) {
      digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return digits;
  }
  // Tensor cores for f16 came with 7.0, for bf16 and TF32 with 8.0.
  [[nodiscard]] std::string refuse(Precision precision) const override {
    const bool modern = properties_.major >= 8;
    if (modern || precision == Precision::fp32 || precision == Precision::fp16) return {};
    return fmt::format(
        "{} has compute capability {}.{}, and units for {} begin with 8.0; fp32 and "
        "fp16 are what it offers",
        description(), properties_.major, properties_.minor, name_of(precision));
  }
  [[nodiscard]] std::size_t available_memory() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    return free;
  }
  [[nodiscard]] std::optional<std::size_t> runtime_memory() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    const std::size_t used = total - free, ours = allocated_memory();
    return used > ours ? used - ours : 0;
  }
  [[nodiscard]] std::size_t allocated_memory() const override {
    std::size_t bytes = allocated_;
    for (const auto& [place, lane] : lanes_) bytes += lane.size();
    return bytes;
  }
  [[nodiscard]] std::size_t staging_memory(std::span<const std::byte> memory) const override {
    std::size_t bytes = 0;
    const auto end = lanes_.lower_bound(memory.data() + memory.size());
    for (auto lane = lanes_.lower_bound(memory.data()); lane != end; ++lane) {
      bytes += lane->second.size();
    }
    return bytes;
  }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
    if (error != cudaSuccess) {
      (void)cudaGetLastError();
      fail("cannot allocate {:.1f} MiB on {} ({}); {:.1f} MiB are free there: {}",
           static_cast<double>(bytes) / kMiB, name(), description(),
           static_cast<double>(available_memory()) / kMiB, cudaGetErrorString(error));
    }
    allocated_ += bytes;
    return static_cast<std::byte*>(memory);
  }
  // Whole blocks of this size; smaller requests share one.
  [[nodiscard]] std::size_t occupied(std::size_t bytes) const override {
    constexpr std::size_t kBlock = std::size_t{2} << 20;
    return (bytes + kBlock - 1) / kBlock * kBlock;
  }
  // With the batches on their way there.
  void release(std::byte* memory, std::size_t bytes) noexcept override {
    lanes_.erase(lanes_.lower_bound(memory), lanes_.lower_bound(memory + bytes));
    (void)cudaFree(memory);
    allocated_ -= bytes;
  }

  void upload(std::byte* dst, const void* src, std::size_t bytes) override {
    if (bytes <= cuda::kSmallUpload) {
      return check(cuda::upload_small(dst, src, bytes, compute_), "a small upload");
    }
    check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, compute_), "an upload");
  }
  void stage(std::byte* dst, const void* src, std::size_t bytes) override {
    if (bytes <= cuda::kSmallUpload) {
      return check(cuda::upload_small(dst, src, bytes, compute_), "a small upload");
    }
    Lane& lane = lanes_[dst];
    lane.slots[lane.next].send(dst, src, bytes, compute_, copies_);
    lane.next = 1 - lane.next;
  }
  // The copy waits for what was queued before: it does not begin before that is done.
  void download(void* dst, const std::byte* src, std::size_t bytes) override {
    if (look_) synchronize();
    check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, compute_), "a download");
  }
  void fill(std::byte* dst, std::byte value, std::size_t bytes) override {
    check(cudaMemsetAsync(dst, static_cast<int>(value), bytes, compute_), "a fill");
  }
  void launch(const Kernel& kernel, const KernelArgs& args) override { kernel.run(args); }
  void launch_beside(const Kernel& kernel, const KernelArgs& args) override {
    if (!side_) side_.emplace(compute_);
    side_->launch(kernel, args);
  }
  void join(std::size_t count) override {
    if (side_) side_->join(count);
  }
  [[nodiscard]] std::size_t launched_beside() const override {
    return side_ ? side_->launched() : 0;
  }
  void synchronize() override {
    if (look_) wait_and_look();
    check(cudaStreamSynchronize(compute_), "the device's work");
  }
  void watch(std::function<void(double)> look) override { look_ = std::move(look); }
  [[nodiscard]] void* queue() const override { return compute_; }

  [[nodiscard]] std::unique_ptr<Recording> record(const std::function<void()>& launches) override {
    check(cudaStreamBeginCapture(compute_, cudaStreamCaptureModeThreadLocal), "capturing a step");
    cudaGraph_t graph = nullptr;
    try {
      launches();
    } catch (...) {
      (void)cudaStreamEndCapture(compute_, &graph);
      if (graph != nullptr) (void)cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(compute_, &graph), "capturing a step");
    return std::make_unique<GraphRecording>(graph, compute_);
  }

  [[nodiscard]] double time(const std::function<void()>& launches) override {
    synchronize();
    start_->record(compute_);
    launches();
    stop_->record(compute_);
    synchronize();
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, start_->get(), stop_->get()), "reading a time");
    return milliseconds * 1e-3;
  }

 private:
  // Until the computing stream is idle.
  void wait_and_look() {
    constexpr double kPace = 0.01;  // seconds
    const Clock::time_point start = Clock::now();
    double next = kPace;
    for (;;) {
      const cudaError_t state = cudaStreamQuery(compute_);
      if (state != cudaErrorNotReady) return check(state, "the device's work");
      const double waited = seconds_since(start);
      if (waited >= next) {
        look_(waited);
        next = waited + kPace;
      }
      (void)sched_yield();
    }
  }

  int index_;
  cudaDeviceProp properties_{};
  cudaStream_t compute_ = nullptr, copies_ = nullptr;
  std::optional<Event> start_, stop_;
  std::optional<SideStream> side_;  // from its first kernel on
  std::function<void(double)> look_;
  std::size_t allocated_ = 0;
  // Two batches may be under way to each place.
  struct Lane {
    [[nodiscard]] std::size_t size() const { return slots[0].size() + slots[1].size(); }
    std::array<StagingSlot, 2> slots;
    std::size_t next = 0;
  };
  std::map<const std::byte*, Lane> lanes_;  // by the place they lead to
};

}  // namespace

std::string cuda_unavailable() {
  int count = 0;
  return no_device_reason(count);
}

std::vector<GpuInfo> cuda_devices() {
  int count = 0, driver = 0;
  if (!no_device_reason(count).empty()) return {};
  (void)cudaDriverGetVersion(&driver);
  std::vector<GpuInfo> gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    int kilohertz = 0;
    check(cudaGetDeviceProperties(&properties, index), "reading the device's properties");
    check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, index), "reading the clock");
    gpus.push_back({.name = properties.name,
                    .capability = fmt::format("{}.{}", properties.major, properties.minor),
                    .multiprocessors = properties.multiProcessorCount,
                    .clock_mhz = kilohertz / 1e3,
                    .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                    .l2_bytes = properties.l2CacheSize,
                    .cuda_driver = version_text(driver)});
  }
  return gpus;
}

std::vector<std::string> cuda_bus_ids() {
  int count = 0;
  if (!no_device_reason(count).empty()) return {};
  std::vector<std::string> ids;
  for (int index = 0; index < count; ++index) {
    std::array<char, 32> id{};
    check(cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), index),
          "reading the bus number");
    ids.emplace_back(id.data());
  }
  return ids;
}

std::unique_ptr<Device> make_cuda_device(int index) {
  int count = 0;
  const std::string reason = no_device_reason(count);
  if (!reason.empty()) bad_input("device 'cuda:{}' cannot be used: {}", index, reason);
  if (index >= count) {
    bad_input("device 'cuda:{}' does not exist: there are {}, from cuda:0 to cuda:{}", index, count,
              count - 1);
  }
  check(cudaSetDevice(index), "choosing the device");
  const std::string mismatch = cuda::no_code_reason();
  if (!mismatch.empty()) bad_input("device 'cuda:{}' cannot be used: {}", index, mismatch);
  return std::make_unique<CudaDevice>(index);
}

}  // namespace ridgeline
