#pragma once

// Batches of images that are put together in a device's memory: the host reads files and, with
// libjpeg-turbo or without, brings them as far as it pays; the place does the rest. The Loader
// decides which samples make up a batch, and when.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/image_source.h"
#include "data/image_transform.h"

namespace ridgeline {

// Where a sample goes, and who brings it.
struct PlaceRow {
  std::size_t slot = 0, row = 0;
  int worker = 0;  // the thread, from 0
};

// A place has slots, each with room for a batch. A slot's life: begin; take or room for each row,
// by several threads at once; send; wait; deliver; and again.
class BatchPlace {
 public:
  virtual ~BatchPlace() = default;

  // What it needs of its user; called once, before all else.
  struct Use {
    std::size_t slots = 0, rows = 0, sample_bytes = 0;
    int workers = 1;
  };
  virtual void set_up(const Use& use) = 0;

  // A slot's rows are about to be brought. What was sent there is no longer wanted.
  virtual void begin(std::size_t slot) = 0;
  // Takes an encoded image over: the place makes the pixels that `request` describes. False where
  // it does not, for whatever reason: the host shall decode the image and judge it.
  [[nodiscard]] virtual bool take(const PlaceRow& at, const StoredImage& image,
                                  const TransformRequest& request) = 0;
  // Where the host puts the pixels of a sample that was not taken.
  [[nodiscard]] virtual std::span<std::uint8_t> room(const PlaceRow& at) = 0;
  // All `rows` are there. Called by any thread, for one slot at a time. Gives the rows that were
  // taken and could not be made: the host brings them, then send() is called again.
  [[nodiscard]] virtual std::vector<std::size_t> send(std::size_t slot, std::size_t rows) = 0;

  // For the thread that uses the batches: waits until the slot's batch is whole, and copies it to
  // where the device reads it, behind what was launched there before.
  virtual void wait(std::size_t slot) = 0;
  virtual void deliver(std::size_t slot, std::size_t rows, std::byte* dst) = 0;
};

}  // namespace ridgeline
