// What is declared here is nvJPEG's interface of versions 12 and 13, as its documentation tells it:
// a build needs no header of it.

#include "devices/cuda_nvjpeg.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <mutex>

#include "base/error.h"

namespace ridgeline::cuda {
namespace {

using NvHandle = struct NvHandleOf*;
using NvState = struct NvStateOf*;
using NvStream = struct NvStreamOf*;

constexpr int kNvBackendGpuHybrid = 2, kNvBackendHardware = 3;
constexpr int kNvOutputRgbInterleaved = 5;
constexpr int kNvMajor = 0, kNvMinor = 1, kNvPatch = 2;  // libraryPropertyType
constexpr std::size_t kNvChannels = 4;

struct NvImage {
  unsigned char* channel[kNvChannels];
  std::size_t pitch[kNvChannels];
};

struct NvFunctions {
  int (*get_property)(int type, int* value);
  int (*create)(int backend, void* device_memory, void* pinned_memory, unsigned flags,
                NvHandle* handle);
  int (*destroy)(NvHandle handle);
  int (*hardware_info)(NvHandle handle, unsigned* engines, unsigned* cores_of_engine);
  int (*state_create)(NvHandle handle, NvState* state);
  int (*state_destroy)(NvState state);
  int (*stream_create)(NvHandle handle, NvStream* stream);
  int (*stream_destroy)(NvStream stream);
  int (*stream_parse_header)(NvHandle handle, const unsigned char* data, std::size_t length,
                             NvStream stream);
  int (*batched_supported)(NvHandle handle, NvStream stream, int* refused);
  int (*batched_initialize)(NvHandle handle, NvState state, int batch, int threads, int output);
  int (*decode_batched)(NvHandle handle, NvState state, const unsigned char* const* data,
                        const std::size_t* lengths, NvImage* destinations, cudaStream_t stream);
};

const char* nv_status_name(int status) {
  static constexpr std::array kNames = {"success",
                                        "not initialized",
                                        "invalid parameter",
                                        "bad JPEG",
                                        "JPEG not supported",
                                        "allocator failure",
                                        "execution failed",
                                        "architecture mismatch",
                                        "internal error",
                                        "implementation not supported",
                                        "incomplete bitstream"};
  const auto index = static_cast<std::size_t>(status);
  return index < kNames.size() ? kNames[index] : "unknown status";
}

struct NvLibrary {
  NvFunctions functions{};
  std::string problem;
};

NvLibrary open_nvjpeg() {
  NvLibrary opened;
  void* library = nullptr;
  // The toolkit's folder is not always among those that the loader looks through.
  for (const char* name : {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so",
                           "/usr/local/cuda/lib64/libnvjpeg.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (opened.problem.empty()) opened.problem = dlerror();
  }
  if (library == nullptr) return opened;
  opened.problem.clear();
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && opened.problem.empty()) {
      opened.problem = fmt::format("libnvjpeg has no function {}", name);
    }
  };
  NvFunctions& f = opened.functions;
  find("nvjpegGetProperty", f.get_property);
  find("nvjpegCreateEx", f.create);
  find("nvjpegDestroy", f.destroy);
  find("nvjpegGetHardwareDecoderInfo", f.hardware_info);
  find("nvjpegJpegStateCreate", f.state_create);
  find("nvjpegJpegStateDestroy", f.state_destroy);
  find("nvjpegJpegStreamCreate", f.stream_create);
  find("nvjpegJpegStreamDestroy", f.stream_destroy);
  find("nvjpegJpegStreamParseHeader", f.stream_parse_header);
  find("nvjpegDecodeBatchedSupported", f.batched_supported);
  find("nvjpegDecodeBatchedInitialize", f.batched_initialize);
  find("nvjpegDecodeBatched", f.decode_batched);
  return opened;
}

const NvLibrary& nvjpeg() {
  static const NvLibrary library = open_nvjpeg();
  return library;
}

int create_handle(bool hardware, NvHandle* handle) {
  return nvjpeg().functions.create(hardware ? kNvBackendHardware : kNvBackendGpuHybrid, nullptr,
                                   nullptr, 0, handle);
}

// What a first handle tells.
struct NvProbe {
  std::string problem;
  unsigned engines = 0;
};

NvProbe probe_nvjpeg(bool hardware) {
  NvProbe probe{nvjpeg().problem, 0};
  if (!probe.problem.empty()) return probe;
  NvHandle handle = nullptr;
  const int status = create_handle(hardware, &handle);
  if (status != 0) {
    probe.problem =
        fmt::format("nvJPEG {}: {}", hardware ? "finds no hardware decoder" : "cannot be started",
                    nv_status_name(status));
    return probe;
  }
  unsigned cores = 0;
  const int asked = nvjpeg().functions.hardware_info(handle, &probe.engines, &cores);
  if (hardware && asked == 0 && probe.engines == 0) {
    probe.problem = "nvJPEG finds no hardware decoder";
  }
  (void)nvjpeg().functions.destroy(handle);
  return probe;
}

const NvProbe& probe_of(bool hardware) {
  static const std::array<NvProbe, 2> probes = {probe_nvjpeg(false), probe_nvjpeg(true)};
  return probes[hardware ? 1 : 0];
}

void nv_check(int status, const char* what) {
  if (status != 0) fail("nvJPEG: {}: {}", what, nv_status_name(status));
}

}  // namespace

std::string nvjpeg_unavailable(bool hardware) { return probe_of(hardware).problem; }

std::string nvjpeg_version(bool hardware) {
  if (!nvjpeg().problem.empty()) return {};
  std::array<int, 3> numbers{};
  for (const int part : {kNvMajor, kNvMinor, kNvPatch}) {
    (void)nvjpeg().functions.get_property(part, &numbers[static_cast<std::size_t>(part)]);
  }
  std::string text = fmt::format("{}.{}.{}", numbers[0], numbers[1], numbers[2]);
  if (hardware) text += fmt::format(" ({} engines)", probe_of(true).engines);
  return text;
}

struct NvJpeg::State {
  NvHandle handle = nullptr;
  NvState decoding = nullptr;
  std::vector<NvStream> headers;  // of each thread
  std::size_t initialized = 0;    // the batch that `decoding` is ready for
  std::vector<const unsigned char*> files;
  std::vector<std::size_t> lengths;
  std::vector<NvImage> images;
};

NvJpeg::NvJpeg(bool hardware) : state_(std::make_unique<State>()) {
  nv_check(create_handle(hardware, &state_->handle), "starting");
  const int status = nvjpeg().functions.state_create(state_->handle, &state_->decoding);
  if (status != 0) (void)nvjpeg().functions.destroy(state_->handle);
  nv_check(status, "a state");
}

NvJpeg::~NvJpeg() {
  for (const NvStream header : state_->headers) (void)nvjpeg().functions.stream_destroy(header);
  (void)nvjpeg().functions.state_destroy(state_->decoding);
  (void)nvjpeg().functions.destroy(state_->handle);
}

void NvJpeg::set_threads(int count) {
  while (state_->headers.size() < static_cast<std::size_t>(count)) {
    NvStream header = nullptr;
    nv_check(nvjpeg().functions.stream_create(state_->handle, &header), "a header");
    state_->headers.push_back(header);
  }
}

bool NvJpeg::decodes(std::span<const std::uint8_t> file, int thread) {
  const NvFunctions& f = nvjpeg().functions;
  const NvStream header = state_->headers[static_cast<std::size_t>(thread)];
  if (f.stream_parse_header(state_->handle, file.data(), file.size(), header) != 0) return false;
  int refused = 1;
  return f.batched_supported(state_->handle, header, &refused) == 0 && refused == 0;
}

bool NvJpeg::decode(std::span<const Image> images, cudaStream_t stream) {
  const NvFunctions& f = nvjpeg().functions;
  State& s = *state_;
  s.files.clear();
  s.lengths.clear();
  s.images.clear();
  for (const Image& image : images) {
    s.files.push_back(image.file.data());
    s.lengths.push_back(image.file.size());
    s.images.push_back({{image.pixels}, {image.stride}});
  }
  if (s.initialized != images.size()) {
    nv_check(f.batched_initialize(s.handle, s.decoding, static_cast<int>(images.size()), 1,
                                  kNvOutputRgbInterleaved),
             "preparing a batch");
    s.initialized = images.size();
  }
  const int status = f.decode_batched(s.handle, s.decoding, s.files.data(), s.lengths.data(),
                                      s.images.data(), stream);
  if (status != 0) s.initialized = 0;  // a state that has failed is to be prepared again
  return status == 0;
}

}  // namespace ridgeline::cuda
