#pragma once

// What libridgeline_mpi.so exports: MPI behind plain functions, so that the program itself needs no
// MPI. The library is built where MPI's headers are found and opened only when ranks are asked for.

#include <cstdint>

namespace ridgeline::mpi {

// Raised with every change of this header.
inline constexpr std::uint32_t kModuleVersion = 3;
inline constexpr const char* kModuleFile = "libridgeline_mpi.so";
inline constexpr const char* kOpenFunction = "ridgeline_mpi_open";
inline constexpr const char* kIsOpenMpi = "ridgeline_mpi_is_open_mpi";  // an int, not 0: it is

enum class Type : std::int32_t { f32, f64, i64 };
enum class Reduction : std::int32_t { sum, maximum };

// Functions give null, or why they failed: a text that lives until the next call. Calls may come
// from any thread, one at a time. `seconds`: how long a call waits for the other ranks.
struct Module {
  std::uint32_t version = kModuleVersion;
  int rank = 0, size = 1;              // of all processes
  int local_rank = 0, local_size = 1;  // of those on this machine
  int nodes = 1;                       // machines
  const char* library = "";            // "Open MPI v4.1.4"
  // In place, over all ranks: every rank gets the same bits.
  const char* (*all_reduce)(void* data, std::int64_t count, Type type, Reduction reduction,
                            double seconds) = nullptr;
  // `all` takes the bytes of each rank, one behind the other.
  const char* (*all_gather)(const void* mine, std::int64_t bytes, void* all,
                            double seconds) = nullptr;
  // `mine` has `bytes` for each rank, one behind the other; so has `all` from each.
  const char* (*all_to_all)(const void* mine, std::int64_t bytes, void* all,
                            double seconds) = nullptr;
  // Asks around for some seconds, after a wait of `seconds`: who does not answer, in words.
  const char* (*missing)(double seconds) = nullptr;
  // Ends the processes of all ranks.
  void (*abort)(int code) = nullptr;
  // The last call. REQUIRES: all ranks come to it.
  void (*finish)() = nullptr;
};

// Joins the other processes that the launcher has started; null: `reason` tells why not.
using Open = const Module* (*)(const char** reason);

}  // namespace ridgeline::mpi
