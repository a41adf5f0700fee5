#pragma once

// A place for batches that does on the host, step by step, what a device's kernels do.

#include <atomic>
#include <cstdint>
#include <vector>

#include "data/batch_place.h"
#include "data/image_job.h"

namespace ridgeline::testing {

// Makes an image's pixels from its parts: channels x height x width bytes.
void finish_on_host(ImageJob job, const std::uint8_t* parts, int channels, std::uint8_t* dst);

class HostPlace final : public BatchPlace {
 public:
  void set_up(const Use& use) override;
  void begin(std::size_t slot) override;
  [[nodiscard]] bool take(const PlaceRow& at, const StoredImage& image,
                          const TransformRequest& request) override;
  [[nodiscard]] std::span<std::uint8_t> room(const PlaceRow& at) override;
  [[nodiscard]] std::vector<std::size_t> send(std::size_t slot, std::size_t rows) override;
  void wait(std::size_t slot) override;
  void deliver(std::size_t slot, std::size_t rows, std::byte* dst) override;

  std::atomic<int> taken = 0;
  // Of each batch, the first time it is sent, this row is given back; below 0: none.
  int refused_row = -1;

 private:
  struct Row {
    bool taken = false;
    int channels = 3;
    ImageJob job;
    std::vector<std::uint8_t> parts, pixels;
  };
  struct Slot {
    std::vector<Row> rows;
    bool refused = false, sent = false;
    std::vector<std::uint8_t> batch;
  };
  Use use_;
  std::vector<ImageJobMaker> makers_;
  std::vector<Slot> slots_;
};

}  // namespace ridgeline::testing
