#include "measure/profile/cupti_records.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "measure/profile/cupti_library.h"
#include "measure/profile/kernel_name.h"

namespace ridgeline::cupti {
namespace {

// What the headers at hand say that CUPTI delivers. Fields are only ever added behind these.
#if CUPTI_API_VERSION >= 130000
using KernelActivity = CUpti_ActivityKernel10;
using CopyActivity = CUpti_ActivityMemcpy6;
#else
using KernelActivity = CUpti_ActivityKernel9;
using CopyActivity = CUpti_ActivityMemcpy5;
#endif
using FillActivity = CUpti_ActivityMemset4;

constexpr std::size_t kBufferBytes = 2 << 20;
constexpr auto kOriginKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
// An origin as a number: the step from 1 on, and whether its launches are recorded.
constexpr std::uint64_t kRecordedBit = std::uint64_t{1} << 62;

// The driver's calls are needed, too: libraries launch through them, and CUPTI tells the origin of
// recorded calls only.
constexpr std::array<CUpti_ActivityKind, 6> kKinds = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                      CUPTI_ACTIVITY_KIND_RUNTIME,
                                                      CUPTI_ACTIVITY_KIND_DRIVER,
                                                      CUPTI_ACTIVITY_KIND_MEMCPY,
                                                      CUPTI_ACTIVITY_KIND_MEMSET,
                                                      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};

struct Buffer {
  std::unique_ptr<std::uint8_t, decltype(&std::free)> data{nullptr, &std::free};
  std::size_t bytes = 0;  // in use
};

// CUPTI's own thread hands buffers over.
struct Buffers {
  std::mutex mutex;
  std::vector<Buffer> full;
  std::uint64_t dropped = 0;
};

// Never destroyed: CUPTI may still hand over a buffer while the program ends.
Buffers& buffers() {
  static Buffers* const kept = new Buffers;
  return *kept;
}

// Exceptions must not pass through CUPTI: without memory there is no buffer, and CUPTI counts what
// it drops.
void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t /*size*/, std::size_t valid) noexcept {
  std::size_t dropped = 0;
  if (library().dropped_records(context, stream, &dropped) != CUPTI_SUCCESS) dropped = 0;
  Buffers& all = buffers();
  const std::scoped_lock lock(all.mutex);
  all.dropped += dropped;
  Buffer full;
  full.data.reset(buffer);
  full.bytes = valid;
  if (buffer != nullptr && valid > 0) all.full.push_back(std::move(full));
}

std::string copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy from host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy from device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy from device to device";
    default:
      return "copy";
  }
}

// Reads buffers; names are worked out once each.
class Reader {
 public:
  void read(const Buffer& buffer, DeviceRecords& records) {
    CUpti_Activity* record = nullptr;
    while (library().next_record(buffer.data.get(), buffer.bytes, &record) == CUPTI_SUCCESS) {
      add(*record, records);
    }
  }

 private:
  void add(const CUpti_Activity& record, DeviceRecords& records) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return add_kernel(reinterpret_cast<const KernelActivity&>(record), records);
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        return add_copy(reinterpret_cast<const CopyActivity&>(record), records);
      case CUPTI_ACTIVITY_KIND_MEMSET:
        return add_fill(reinterpret_cast<const FillActivity&>(record), records);
      case CUPTI_ACTIVITY_KIND_RUNTIME:
        return add_call(CUPTI_CB_DOMAIN_RUNTIME_API,
                        reinterpret_cast<const CUpti_ActivityAPI&>(record), records);
      case CUPTI_ACTIVITY_KIND_DRIVER:
        return add_call(CUPTI_CB_DOMAIN_DRIVER_API,
                        reinterpret_cast<const CUpti_ActivityAPI&>(record), records);
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return add_origin(reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record),
                          records);
      default:
        return;
    }
  }

  void add_kernel(const KernelActivity& kernel, DeviceRecords& records) {
    records.activities.push_back({.activity = Activity::kernel,
                                  .name = kernel_name(kernel.name),
                                  .begin = kernel.start,
                                  .end = kernel.end,
                                  .stream = kernel.streamId,
                                  .correlation = kernel.correlationId,
                                  .node = kernel.graphNodeId,
                                  .bytes = std::nullopt});
  }

  static void add_copy(const CopyActivity& copy, DeviceRecords& records) {
    records.activities.push_back({.activity = Activity::copy,
                                  .name = copy_name(copy.copyKind),
                                  .begin = copy.start,
                                  .end = copy.end,
                                  .stream = copy.streamId,
                                  .correlation = copy.correlationId,
                                  .node = copy.graphNodeId,
                                  .bytes = static_cast<std::int64_t>(copy.bytes)});
  }

  static void add_fill(const FillActivity& fill, DeviceRecords& records) {
    records.activities.push_back({.activity = Activity::fill,
                                  .name = "fill",
                                  .begin = fill.start,
                                  .end = fill.end,
                                  .stream = fill.streamId,
                                  .correlation = fill.correlationId,
                                  .node = fill.graphNodeId,
                                  .bytes = static_cast<std::int64_t>(fill.bytes)});
  }

  void add_call(CUpti_CallbackDomain domain, const CUpti_ActivityAPI& call,
                DeviceRecords& records) {
    if (call.start == 0 && call.end == 0) return;
    records.calls.push_back({.name = call_name(domain, call.cbid),
                             .begin = call.start,
                             .end = call.end,
                             .thread = call.threadId,
                             .correlation = call.correlationId,
                             .failed = call.returnValue != 0});
  }

  static void add_origin(const CUpti_ActivityExternalCorrelation& origin, DeviceRecords& records) {
    if (origin.externalKind != kOriginKind) return;
    const bool recorded = (origin.externalId & kRecordedBit) != 0;
    const auto step = static_cast<std::int64_t>(origin.externalId & ~kRecordedBit) - 1;
    records.origins[origin.correlationId] = {step, recorded};
  }

  const std::string& kernel_name(const char* name) {
    std::string& known = kernels_[name];
    if (known.empty()) known = name != nullptr ? demangled(name) : "unnamed kernel";
    return known;
  }

  const std::string& call_name(CUpti_CallbackDomain domain, std::uint32_t id) {
    std::string& known = calls_[{domain, id}];
    if (!known.empty()) return known;
    const char* name = nullptr;
    if (library().callback_name(domain, id, &name) != CUPTI_SUCCESS) name = nullptr;
    known = name != nullptr ? plain_call_name(name) : fmt::format("call {}", id);
    return known;
  }

  std::map<const char*, std::string> kernels_;  // CUPTI keeps one text for each kernel
  std::map<std::pair<CUpti_CallbackDomain, std::uint32_t>, std::string> calls_;
};

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void disable_all() {
  for (const CUpti_ActivityKind kind : kKinds) (void)library().disable(kind);
}

void forget_buffers() {
  Buffers& all = buffers();
  const std::scoped_lock lock(all.mutex);
  all.full.clear();
  all.dropped = 0;
}

}  // namespace

void begin_records() {
  const Library& cupti = library();
  if (!cupti.unavailable.empty()) fail("{}", cupti.unavailable);
  cupti.check(cupti.register_callbacks(give_buffer, take_buffer), "asking for records");
  forget_buffers();
  for (const CUpti_ActivityKind kind : kKinds) {
    if (const CUptiResult result = cupti.enable(kind); result != CUPTI_SUCCESS) {
      disable_all();
      cupti.check(result, "watching the device");
    }
  }
}

DeviceRecords end_records() {
  const Library& cupti = library();
  // Complete buffers first, then, when nothing is added any more, the rest.
  const CUptiResult complete = cupti.flush_all(0);
  disable_all();
  const CUptiResult rest = cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  cupti.check(complete, "fetching the records");
  cupti.check(rest, "fetching the last records");
  DeviceRecords records;
  Reader reader;
  Buffers& all = buffers();
  const std::scoped_lock lock(all.mutex);
  for (const Buffer& buffer : all.full) reader.read(buffer, records);
  records.dropped = all.dropped;
  all.full.clear();
  all.dropped = 0;
  return records;
}

void enter_origin(const CallOrigin& origin) {
  const std::uint64_t id =
      static_cast<std::uint64_t>(origin.step + 1) | (origin.recorded ? kRecordedBit : 0);
  library().check(library().push_id(kOriginKind, id), "naming a step");
}

void leave_origin() {
  std::uint64_t last = 0;
  library().check(library().pop_id(kOriginKind, &last), "naming a step");
}

ClockReading read_clock() {
  std::array<ClockReading, 32> readings;
  for (ClockReading& reading : readings) {
    reading.before = steady_now();
    library().check(library().timestamp(&reading.other), "reading its clock");
    reading.after = steady_now();
  }
  return tightest(readings);
}

}  // namespace ridgeline::cupti
