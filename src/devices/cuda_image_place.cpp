// Images in the device's memory. A batch travels as parts: what the threads of the loader have put
// together in pinned memory. One stream copies them and runs the kernels, beside training.

#include <cuda_runtime_api.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/image_job.h"
#include "devices/cuda_check.h"
#include "devices/cuda_event.h"
#include "devices/cuda_images.h"
#include "devices/cuda_nvjpeg.h"
#include "devices/image_place.h"

namespace ridgeline {
namespace {

// Of parts for an image, to begin with: a photograph of 400x300 pixels takes about as much.
constexpr std::size_t kUsualParts = std::size_t{128} << 10;
// Room that grows, grows by this part more than is needed.
constexpr std::size_t kMoreRoom = 4;

// Memory of the host that copies run from, or of the device.
class PlaceMemory {
 public:
  explicit PlaceMemory(bool pinned) : pinned_(pinned) {}
  PlaceMemory(const PlaceMemory&) = delete;
  PlaceMemory& operator=(const PlaceMemory&) = delete;
  ~PlaceMemory() { free(); }

  // What was in it is lost where it grows.
  void need(std::size_t bytes) {
    if (bytes <= size_) return;
    free();
    void* memory = nullptr;
    if (pinned_) {
      cuda::check(cudaMallocHost(&memory, bytes), "pinned memory for images");
    } else {
      cuda::check(cudaMalloc(&memory, bytes), "device memory for images");
    }
    data_ = static_cast<std::uint8_t*>(memory);
    size_ = bytes;
  }
  [[nodiscard]] std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void free() {
    (void)(pinned_ ? cudaFreeHost(data_) : cudaFree(data_));
    data_ = nullptr;
    size_ = 0;
  }

  bool pinned_;
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

class CudaImagePlace final : public BatchPlace {
 public:
  CudaImagePlace(Decoder decoder, Device& device)
      : compute_(static_cast<cudaStream_t>(device.queue())) {
    cuda::check(cudaGetDevice(&index_), "asking for the device");
    if (decoder != Decoder::gpu) {
      form_ = ImageForm::pixels;
      nvjpeg_.emplace(decoder == Decoder::nvjpeg);
    }
    // Training comes first.
    int lowest = 0, highest = 0;
    cuda::check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities");
    cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, lowest), "a stream");
  }
  ~CudaImagePlace() override {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamSynchronize(compute_);
    (void)cudaStreamDestroy(stream_);
  }
  CudaImagePlace(const CudaImagePlace&) = delete;
  CudaImagePlace& operator=(const CudaImagePlace&) = delete;

  void set_up(const Use& use) override {
    use_ = use;
    makers_ = std::vector<ImageJobMaker>(static_cast<std::size_t>(use.workers));
    if (nvjpeg_) nvjpeg_->set_threads(use.workers);
    for (std::size_t i = 0; i < use.slots; ++i) {
      Slot& slot = slots_.emplace_back();
      slot.jobs.resize(use.rows);
      slot.finished.need(use.rows * use.sample_bytes);
      slot.batch.need(use.rows * use.sample_bytes);
      grow_parts(slot, first_part() + use.rows * kUsualParts);
    }
  }

  void begin(std::size_t number) override {
    Slot& slot = slots_[number];
    select();
    slot.arrived.wait();  // it may be on its way still where an epoch ended early
    if (slot.used > slot.parts.size()) grow_parts(slot, slot.used + slot.used / kMoreRoom);
    slot.used = first_part();
    slot.jobs.assign(use_.rows, {});
  }

  [[nodiscard]] bool take(const PlaceRow& at, const StoredImage& image,
                          const TransformRequest& request) override {
    Slot& slot = slots_[at.slot];
    ImageJobMaker& maker = makers_[static_cast<std::size_t>(at.worker)];
    if (!maker.make(image, request, form_)) return false;
    if (nvjpeg_ && !nvjpeg_->decodes(image.bytes, at.worker)) return false;
    channels_ = request.channels;
    // Where the room is too small the host does what is left; it has grown the next time.
    const std::size_t offset = slot.used.fetch_add(maker.part_bytes());
    if (offset + maker.part_bytes() > slot.parts.size()) return false;
    slot.jobs[at.row] = maker.put(slot.parts.data(), offset);
    return true;
  }

  [[nodiscard]] std::span<std::uint8_t> room(const PlaceRow& at) override {
    return {slots_[at.slot].finished.data() + at.row * use_.sample_bytes, use_.sample_bytes};
  }

  [[nodiscard]] std::vector<std::size_t> send(std::size_t number, std::size_t rows) override {
    const std::scoped_lock lock(sending_);
    Slot& slot = slots_[number];
    select();
    // Until the batch that was there before has been read.
    cuda::check(cudaStreamWaitEvent(stream_, slot.consumed.get(), 0), "waiting for a batch");
    const std::size_t made = place_jobs(slot, rows);
    send_finished(slot, rows);
    if (made > 0) {
      if (nvjpeg_ && !decode_files(slot, rows)) return give_up(slot, rows);
      make_pixels(slot, rows);
    }
    slot.arrived.record(stream_);
    return {};
  }

  void wait(std::size_t number) override { slots_[number].arrived.wait(); }

  void deliver(std::size_t number, std::size_t rows, std::byte* dst) override {
    Slot& slot = slots_[number];
    cuda::check(cudaMemcpyAsync(dst, slot.batch.data(), rows * use_.sample_bytes,
                                cudaMemcpyDeviceToDevice, compute_),
                "a copy");
    slot.consumed.record(compute_);
  }

 private:
  struct Slot {
    // Parts begin with the jobs.
    PlaceMemory parts{true}, parts_there{false};
    PlaceMemory finished{true};  // samples that the host has made
    PlaceMemory batch{false};
    std::vector<ImageJob> jobs;
    std::atomic<std::size_t> used = 0;  // of the parts; more than there is where it did not suffice
    cuda::Event arrived{cudaEventDisableTiming | cudaEventBlockingSync};
    cuda::Event consumed{cudaEventDisableTiming};
  };

  // Each thread has a current device of its own.
  void select() const { cuda::check(cudaSetDevice(index_), "choosing the device"); }

  [[nodiscard]] std::size_t first_part() const {
    const std::size_t bytes = use_.rows * sizeof(ImageJob);
    return (bytes + ImageJobMaker::kPartAlignment - 1) / ImageJobMaker::kPartAlignment *
           ImageJobMaker::kPartAlignment;
  }

  static void grow_parts(Slot& slot, std::size_t bytes) {
    slot.parts.need(bytes);
    slot.parts_there.need(bytes);
  }

  // How many images are made there.
  std::size_t place_jobs(Slot& slot, std::size_t rows) {
    std::uint64_t bytes = 0;
    std::size_t made = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      if (slot.jobs[row].form == ImageForm::finished) continue;
      bytes = place_in_scratch(slot.jobs[row], bytes);
      ++made;
    }
    if (bytes > scratch_.size()) {
      cuda::check(cudaStreamSynchronize(stream_), "decoding images");
      scratch_.need(bytes + bytes / kMoreRoom);
    }
    return made;
  }

  void send_finished(Slot& slot, std::size_t rows) {
    for (std::size_t row = 0; row < rows;) {
      std::size_t end = row;
      while (end < rows && slot.jobs[end].form == ImageForm::finished) ++end;
      if (end > row) {
        const std::size_t at = row * use_.sample_bytes;
        cuda::check(
            cudaMemcpyAsync(slot.batch.data() + at, slot.finished.data() + at,
                            (end - row) * use_.sample_bytes, cudaMemcpyHostToDevice, stream_),
            "a copy");
      }
      row = end + 1;
    }
  }

  [[nodiscard]] bool decode_files(Slot& slot, std::size_t rows) {
    files_.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      const ImageJob& job = slot.jobs[row];
      if (job.form == ImageForm::finished) continue;
      files_.push_back({.file = {slot.parts.data() + job.file, job.file_bytes},
                        .pixels = scratch_.data() + job.pixels,
                        .stride = job.pixel_stride});
    }
    return nvjpeg_->decode(files_, stream_);
  }

  // nvJPEG does not say which image of a batch it refuses.
  static std::vector<std::size_t> give_up(Slot& slot, std::size_t rows) {
    std::vector<std::size_t> left;
    for (std::size_t row = 0; row < rows; ++row) {
      if (slot.jobs[row].form == ImageForm::finished) continue;
      slot.jobs[row] = {};
      left.push_back(row);
    }
    return left;
  }

  void make_pixels(Slot& slot, std::size_t rows) {
    std::copy(slot.jobs.begin(), slot.jobs.begin() + static_cast<std::ptrdiff_t>(rows),
              reinterpret_cast<ImageJob*>(slot.parts.data()));
    const std::size_t bytes = std::min<std::size_t>(slot.used, slot.parts.size());
    cuda::check(cudaMemcpyAsync(slot.parts_there.data(), slot.parts.data(), bytes,
                                cudaMemcpyHostToDevice, stream_),
                "a copy");
    cuda::check(cuda::finish_images({.jobs = reinterpret_cast<ImageJob*>(slot.parts_there.data()),
                                     .count = static_cast<int>(rows),
                                     .parts = slot.parts_there.data(),
                                     .scratch = scratch_.data(),
                                     .dst = slot.batch.data(),
                                     .sample_bytes = use_.sample_bytes,
                                     .channels = channels_},
                                    stream_),
                "finishing images");
  }

  cudaStream_t compute_, stream_ = nullptr;
  int index_ = 0;
  ImageForm form_ = ImageForm::blocks;
  Use use_;
  std::optional<cuda::NvJpeg> nvjpeg_;
  std::vector<ImageJobMaker> makers_;  // of each thread
  std::deque<Slot> slots_;
  std::atomic<int> channels_ = 0;
  // Of the thread that sends.
  std::mutex sending_;
  PlaceMemory scratch_{false};
  std::vector<cuda::NvJpeg::Image> files_;
};

}  // namespace

std::string refuse(Decoder decoder, const Device& device) {
  if (decoder == Decoder::cpu) return {};
  if (device.kind() != "cuda") {
    return fmt::format("needs an NVIDIA GPU, and the device is {}", device.name());
  }
  return decoder == Decoder::gpu ? std::string()
                                 : cuda::nvjpeg_unavailable(decoder == Decoder::nvjpeg);
}

std::string decoder_version(Decoder decoder) {
  const bool ours = decoder == Decoder::cpu || decoder == Decoder::gpu;
  return ours ? std::string() : cuda::nvjpeg_version(decoder == Decoder::nvjpeg);
}

std::shared_ptr<BatchPlace> make_image_place(Decoder decoder, Device& device) {
  return std::make_shared<CudaImagePlace>(decoder, device);
}

}  // namespace ridgeline
