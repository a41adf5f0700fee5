#pragma once

// nvJPEG, NVIDIA's decoder, opened when it is first asked for.

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ridgeline::cuda {

// Why nvJPEG cannot be used here, with the hardware decoder or without; empty: it can.
[[nodiscard]] std::string nvjpeg_unavailable(bool hardware);

// "13.0.4", and for the hardware decoder its engines: "13.0.4 (7 engines)".
[[nodiscard]] std::string nvjpeg_version(bool hardware);

// For one stream. Errors are failures.
class NvJpeg {
 public:
  // REQUIRES: nvjpeg_unavailable(hardware) is empty.
  explicit NvJpeg(bool hardware);
  ~NvJpeg();
  NvJpeg(const NvJpeg&) = delete;
  NvJpeg& operator=(const NvJpeg&) = delete;

  // Whether it decodes images like this file; for the thread with this number, from 0.
  void set_threads(int count);
  [[nodiscard]] bool decodes(std::span<const std::uint8_t> file, int thread);

  // A file and where all its pixels go on the device: red, green, blue, `stride` bytes a row.
  struct Image {
    std::span<const std::uint8_t> file;
    std::uint8_t* pixels = nullptr;
    std::size_t stride = 0;
  };
  // Queues the images' decoding. False where nvJPEG refuses one of them, whichever that is. Files
  // stay as they are until the stream has been waited for.
  [[nodiscard]] bool decode(std::span<const Image> images, cudaStream_t stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline::cuda
