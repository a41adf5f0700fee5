#include "backends/cudnn/measure.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/half.h"
#include "base/philox.h"

namespace ridgeline::cudnn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Device memory for as long as the object lives; null where there is too little.
class Temporary {
 public:
  explicit Temporary(std::size_t bytes) {
    if (cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)) == cudaSuccess) return;
    (void)cudaGetLastError();
    data_ = nullptr;
  }
  ~Temporary() { (void)cudaFree(data_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "an event"); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Runs of an executable, captured and ready to be started as a whole.
class Recorded {
 public:
  template <typename Launch>
  Recorded(Stream stream, Launch&& launch) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
    cudaGraph_t graph = nullptr;
    try {
      launch();
    } catch (...) {
      (void)cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) (void)cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "capturing");
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    (void)cudaGraphDestroy(graph);
    check(error, "making a graph");
  }
  ~Recorded() { (void)cudaGraphExecDestroy(executable_); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  void start(Stream stream) { check(cudaGraphLaunch(executable_, stream), "starting a graph"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

template <typename T>
std::vector<std::byte> random_elements(std::size_t count) {
  PhiloxSequence random(0, RandomStream::synthetic, 0);
  std::vector<std::byte> bytes(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    reinterpret_cast<T*>(bytes.data())[i] = narrowed<T>(2.0 * random.uniform_double() - 1.0);
  }
  return bytes;
}

const std::vector<std::byte>& random_block(DType dtype) {
  constexpr std::size_t kCount = 1 << 15;
  static const std::vector<std::byte> f32 = random_elements<float>(kCount);
  static const std::vector<std::byte> bf16 = random_elements<BFloat16>(kCount);
  static const std::vector<std::byte> f16 = random_elements<Float16>(kCount);
  return dtype == DType::bf16 ? bf16 : dtype == DType::f16 ? f16 : f32;
}

// One block of random numbers, repeated: timing needs no more.
void fill_random(std::byte* memory, std::size_t bytes, DType dtype, Stream stream) {
  const std::vector<std::byte>& block = random_block(dtype);
  std::size_t filled = std::min(bytes, block.size());
  check(cudaMemcpyAsync(memory, block.data(), filled, cudaMemcpyHostToDevice, stream), "a copy");
  while (filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    check(cudaMemcpyAsync(memory + filled, memory, more, cudaMemcpyDeviceToDevice, stream),
          "a copy");
    filled += more;
  }
  check(cudaStreamSynchronize(stream), "random numbers");
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "asking for the device");
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value;
  (void)cudaGetLastError();
  return 0;
}

}  // namespace

class Bench::Setup {
 public:
  explicit Setup(const Product& product)
      : sizes_(sizes_of(product)), memory_(sizes_[0] + sizes_[1] + sizes_[2] + sizes_[3]) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    if (memory_.data() == nullptr) return;
    std::byte* place = memory_.data();
    for (std::size_t i = 0; i < kOperands; ++i) {
      const DType dtype = i == kBias ? DType::f32 : product.dtype;
      operands_[i] = place;
      fill_random(place, sizes_[i], dtype, stream_);
      place += sizes_[i];
    }
  }
  ~Setup() { (void)cudaStreamDestroy(stream_); }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  [[nodiscard]] bool ready() const { return memory_.data() != nullptr; }

  // The workspace grows with those who ask for one. False: there is too little memory.
  [[nodiscard]] bool reserve(std::size_t bytes) {
    if (bytes <= workspace_bytes_) return true;
    workspace_.reset();
    workspace_ = std::make_unique<Temporary>(bytes);
    workspace_bytes_ = workspace_->data() == nullptr ? 0 : bytes;
    return workspace_bytes_ > 0;
  }

  void run(const Executable& executable) const {
    executable.execute(operands_, workspace_ == nullptr ? nullptr : workspace_->data(), stream_);
  }

  // Seconds by the device's clock.
  template <typename Launch>
  [[nodiscard]] double time(Launch&& launch) const {
    check(cudaEventRecord(start_.get(), stream_), "recording an event");
    launch();
    check(cudaEventRecord(stop_.get(), stream_), "recording an event");
    check(cudaEventSynchronize(stop_.get()), "a trial");
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()), "reading a time");
    return milliseconds * 1e-3;
  }

  [[nodiscard]] Stream stream() const { return stream_; }

 private:
  static std::array<std::size_t, kOperands> sizes_of(const Product& product) {
    std::array<std::size_t, kOperands> sizes{};
    for (const Operand operand : {kFirst, kSecond, kResult}) {
      const Image& image = image_of(product, operand);
      sizes[operand] =
          aligned(static_cast<std::size_t>(image.pixels() * image.stride) * size_of(product.dtype));
    }
    sizes[kBias] = aligned(static_cast<std::size_t>(product.dst.c) * sizeof(float));
    return sizes;
  }

  std::array<std::size_t, kOperands> sizes_;
  Temporary memory_;
  std::unique_ptr<Temporary> workspace_;
  std::size_t workspace_bytes_ = 0;
  Operands operands_{};
  Stream stream_ = nullptr;
  Event start_, stop_;
};

Bench::Bench(const Product& product) : setup_(std::make_unique<Setup>(product)) {}
Bench::~Bench() = default;

bool Bench::ready() const { return setup_->ready(); }

double Bench::seconds(const Executable& executable, double best) {
  // The first run loads code, for which there is an allowance; the second includes the host's part.
  constexpr double kLoading = 0.25, kHopeless = 4.0, kSlow = 1.5, kLaunch = 3e-5;
  constexpr double kEnough = 5e-4;
  constexpr int kMostRuns = 20, kRounds = 3;
  if (!setup_->reserve(executable.workspace_bytes)) return kInfinity;
  try {
    const auto run = [&] { setup_->run(executable); };
    const double first = setup_->time(run);
    if (first > kHopeless * best + kLoading) return first;
    const double rough = setup_->time(run);
    if (rough > kSlow * best + kLaunch) return rough;
    const int runs = std::clamp(static_cast<int>(std::ceil(kEnough / rough)), 1, kMostRuns);
    Recorded recorded(setup_->stream(), [&] {
      for (int i = 0; i < runs; ++i) run();
    });
    double fastest = kInfinity;
    for (int round = 0; round < kRounds; ++round) {
      fastest = std::min(fastest, setup_->time([&] { recorded.start(setup_->stream()); }));
    }
    return fastest / runs;
  } catch (const Error&) {
    (void)cudaGetLastError();
    return kInfinity;
  }
}

double pass_seconds(double bytes) {
  // Twice the clock, because data travels on both of its edges; a copy reaches this share.
  constexpr double kShare = 0.85, kLaunch = 2e-6, kUnknown = 1e12;
  const double clock = 1e3 * attribute(cudaDevAttrMemoryClockRate);
  const double width = attribute(cudaDevAttrGlobalMemoryBusWidth) / 8.0;
  const double bandwidth = clock * width > 0.0 ? 2.0 * clock * width * kShare : kUnknown;
  return bytes / bandwidth + kLaunch;
}

std::string device_name() {
  static std::map<int, std::string> known;
  int device = 0;
  check(cudaGetDevice(&device), "asking for the device");
  std::string& name = known[device];
  if (name.empty()) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "reading the device's properties");
    name = properties.name;
  }
  return name;
}

}  // namespace ridgeline::cudnn
