#pragma once

// The GPUs of a job's ranks, joined by NCCL. All ranks call the same functions in the same order.

#include <cstddef>
#include <span>

#include "backends/nccl/library.h"
#include "devices/cuda_launch.h"
#include "ranks/ranks.h"

namespace ridgeline::nccl {

using cuda::Stream;

class Communicator {
 public:
  // REQUIRES: each rank has chosen its device, and all ranks make theirs now.
  explicit Communicator(Ranks& ranks);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  // Queued. What lies between the two is one launch.
  void begin_group();
  void end_group();
  // In place; every rank gets the same bits, and the same ones each time.
  void all_reduce(std::span<float> values, Stream stream);
  // As many bytes for each rank, one behind the other; gives those from each.
  void all_to_all(const std::byte* mine, std::byte* all, std::size_t bytes_each, Stream stream);
  // What each rank gives, one behind the other.
  void all_gather(const std::byte* mine, std::byte* all, std::size_t bytes, Stream stream);

  // Throws when a rank has failed, or when the host has waited longer than ranks do. What is queued
  // ends then, unfinished.
  void look(double waited_seconds);

 private:
  void abort();

  Ranks& ranks_;
  ncclComm_t handle_ = nullptr;
  bool aborted_ = false;
};

// That of this process. Made by the first call, which all ranks make together.
[[nodiscard]] Communicator& communicator(Ranks& ranks);
// Null before that.
[[nodiscard]] Communicator* made_communicator();

}  // namespace ridgeline::nccl
