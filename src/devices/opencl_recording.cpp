#include "devices/opencl_recording.h"

#include <map>

#include "base/error.h"
#include "devices/opencl_queue.h"

namespace ridgeline::opencl {
namespace {

// Null: the platform lacks it.
struct Calls {
  clCreateCommandBufferKHR_fn create = nullptr;
  clFinalizeCommandBufferKHR_fn finalize = nullptr;
  clReleaseCommandBufferKHR_fn release = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue = nullptr;
  clCommandNDRangeKernelKHR_fn launch = nullptr;
  bool simultaneous = false;  // may be queued while it still runs

  [[nodiscard]] bool usable() const {
    return create != nullptr && finalize != nullptr && release != nullptr && enqueue != nullptr &&
           launch != nullptr;
  }
};

template <typename Call>
void find_call(cl_platform_id platform, const char* name, Call& call) {
  call = reinterpret_cast<Call>(library().clGetExtensionFunctionAddressForPlatform(platform, name));
}

const Calls& calls_of(const Context& context) {
  static std::map<const Context*, Calls> known;
  const auto [found, fresh] = known.try_emplace(&context);
  Calls& calls = found->second;
  if (!fresh || !context.properties().command_buffers) return calls;
  find_call(context.platform(), "clCreateCommandBufferKHR", calls.create);
  find_call(context.platform(), "clFinalizeCommandBufferKHR", calls.finalize);
  find_call(context.platform(), "clReleaseCommandBufferKHR", calls.release);
  find_call(context.platform(), "clEnqueueCommandBufferKHR", calls.enqueue);
  find_call(context.platform(), "clCommandNDRangeKernelKHR", calls.launch);
  cl_device_command_buffer_capabilities_khr can = 0;
  calls.simultaneous =
      library().clGetDeviceInfo(context.device(), CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR,
                                sizeof(can), &can, nullptr) == CL_SUCCESS &&
      (can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
  return calls;
}

// Two launches of one kernel, replayed twice: each must write its own numbers, in their order.
std::string tried(Context& context) {
  Queue queue(context);
  std::byte* memory = queue.allocate(sizeof(cl_int) * 2);
  const Place place = queue.place(memory);
  const auto put = [&](cl_int at, cl_int number) {
    cl_kernel kernel = queue.kernel({"kernels/record.cl", "put"});
    const auto set = [&](cl_uint index, std::size_t bytes, const void* value) {
      check(library().clSetKernelArg(kernel, index, bytes, value), "an argument");
    };
    set(0, sizeof(place.buffer), &place.buffer);
    set(1, sizeof(at), &at);
    set(2, sizeof(number), &number);
    queue.launch(kernel, "put", {.global = {1, 1, 1}, .local = {1, 1, 1}});
  };
  const auto buffer = queue.record([&] {
    put(0, 1);
    put(0, 2);
    put(1, 3);
  });
  if (buffer == nullptr) return "the platform refuses to record launches";
  for (int round = 0; round < 2; ++round) {
    put(0, 0);
    put(1, 0);
    buffer->replay();
    std::array<cl_int, 2> got{};
    check(library().clEnqueueReadBuffer(queue.handle(), place.buffer, CL_TRUE, 0, sizeof(got),
                                        got.data(), 0, nullptr, nullptr),
          "a download");
    if (got != std::array<cl_int, 2>{2, 3}) {
      return "the platform replays recorded launches with wrong arguments";
    }
  }
  return {};
}

}  // namespace

CommandBuffer::CommandBuffer(Context& context, cl_command_queue queue)
    : context_(context), queue_(queue) {
  const Calls& calls = calls_of(context);
  const std::array<cl_command_buffer_properties_khr, 3> properties = {
      CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_int error = CL_SUCCESS;
  buffer_ = calls.create(1, &queue_, calls.simultaneous ? properties.data() : nullptr, &error);
  refused_ = error != CL_SUCCESS;
  if (refused_) buffer_ = nullptr;
}

CommandBuffer::~CommandBuffer() {
  (void)library().clFinish(queue_);
  if (ended_ != nullptr) (void)library().clReleaseEvent(ended_);
  if (buffer_ != nullptr) (void)calls_of(context_).release(buffer_);
  for (cl_kernel kernel : kernels_) (void)library().clReleaseKernel(kernel);
}

cl_kernel CommandBuffer::new_kernel(const Code& code) {
  return kernels_.emplace_back(context_.new_kernel(code));
}

void CommandBuffer::add(cl_kernel kernel, const Range& range) {
  if (refused_) return;
  refused_ = calls_of(context_).launch(buffer_, nullptr, nullptr, kernel, range.dimensions, nullptr,
                                       range.global.data(), range.local.data(), 0, nullptr, nullptr,
                                       nullptr) != CL_SUCCESS;
}

bool CommandBuffer::finish() {
  if (!refused_) refused_ = calls_of(context_).finalize(buffer_) != CL_SUCCESS;
  return !refused_;
}

void CommandBuffer::replay() {
  const Calls& calls = calls_of(context_);
  if (ended_ != nullptr) {
    // Some devices cannot queue it while it still runs.
    if (!calls.simultaneous) check(library().clWaitForEvents(1, &ended_), "a recorded step");
    (void)library().clReleaseEvent(ended_);
    ended_ = nullptr;
  }
  check(calls.enqueue(0, nullptr, buffer_, 0, nullptr, &ended_), "a recorded step");
}

const std::string& recording_refusal(Context& context) {
  static std::map<const Context*, std::string> known;
  const auto [found, fresh] = known.try_emplace(&context);
  if (!fresh) return found->second;
  if (!calls_of(context).usable()) {
    found->second = "the platform has no command buffers";
    return found->second;
  }
  try {
    found->second = tried(context);
  } catch (const Error& error) {
    found->second = error.what();
  }
  return found->second;
}

}  // namespace ridgeline::opencl
