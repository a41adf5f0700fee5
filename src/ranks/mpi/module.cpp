// libridgeline_mpi.so: the one file that includes MPI's header.

#include "ranks/mpi/module.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "ranks/mpi/shared_sum.h"

namespace ridgeline::mpi {
namespace {

using Clock = std::chrono::steady_clock;

Module module;
std::string last_error, library_name;
MPI_Comm control = MPI_COMM_NULL;   // for who waits for whom
std::vector<std::string> machines;  // of each rank

MPI_Win window = MPI_WIN_NULL;  // the memory that the ranks of one machine share
std::vector<std::byte*> memory_of_rank;
std::optional<SharedSum> shared_sum;  // nothing: MPI's own sums

// Where memory cannot be shared, messages of one machine are copied: in parts that stay in its
// caches they travel several times as fast as whole.
constexpr std::int64_t kCachedBytes = 256 << 10;
constexpr double kRollCallSeconds = 2.0;
constexpr double kSpinSeconds = 0.002;
constexpr double kShortestRest = 50e-6, kLongestRest = 2e-3;
constexpr double kRestShare = 0.01;  // of the time that it has waited

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

const char* failed(const char* what, int status) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  last_error = std::string(what) + ": " + text;
  return last_error.c_str();
}

// Ranks that wait tell each other so; who does not is missing. What the missing ones are sent is
// small enough to be underway without them.
const char* time_is_up(double seconds) {
  const auto count = static_cast<std::size_t>(module.size);
  std::vector<char> here(count, 0), sent(count, 1), received(count, 0);
  std::vector<MPI_Request> requests;
  here[static_cast<std::size_t>(module.rank)] = 1;
  for (int other = 0; other < module.size; ++other) {
    if (other == module.rank) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(&sent[static_cast<std::size_t>(other)], 1, MPI_CHAR, other, 0, control, &request);
    requests.push_back(request);
  }
  const Clock::time_point start = Clock::now();
  while (seconds_since(start) < kRollCallSeconds) {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, control, &there, &status);
    if (there == 0) {
      usleep(1000);
      continue;
    }
    const auto from = static_cast<std::size_t>(status.MPI_SOURCE);
    MPI_Recv(&received[from], 1, MPI_CHAR, status.MPI_SOURCE, 0, control, MPI_STATUS_IGNORE);
    here[from] = 1;
  }
  // Requests that are still open end with the process: the job is over.
  last_error.clear();
  for (std::size_t rank = 0; rank < count; ++rank) {
    if (here[rank] != 0) continue;
    last_error += (last_error.empty() ? "rank " : ", rank ") + std::to_string(rank) + " (" +
                  machines[rank] + ")";
  }
  const std::string limit = std::to_string(static_cast<long>(seconds));
  last_error = last_error.empty()
                   ? "the ranks did not get on within " + limit + " s (--rank-timeout)"
                   : last_error + " did not answer within " + limit + " s (--rank-timeout)";
  return last_error.c_str();
}

// Waits until done() holds, without keeping a processor from those who compute.
template <typename Done>
const char* wait_until(Done&& done, double seconds) {
  if (done()) return nullptr;
  const Clock::time_point start = Clock::now();
  for (;;) {
    if (done()) return nullptr;
    const double waited = seconds_since(start);
    if (waited > seconds) return time_is_up(seconds);
    if (waited > kSpinSeconds) {
      const double rest = std::clamp(kRestShare * waited, kShortestRest, kLongestRest);
      usleep(static_cast<useconds_t>(rest * 1e6));
    } else {
      sched_yield();
    }
  }
}

const char* wait_for(MPI_Request& request, double seconds) {
  int status = MPI_SUCCESS;
  const auto done = [&] {
    int there = 0;
    status = MPI_Test(&request, &there, MPI_STATUS_IGNORE);
    return there != 0 || status != MPI_SUCCESS;
  };
  if (const char* error = wait_until(done, seconds)) return error;
  return status == MPI_SUCCESS ? nullptr : failed("MPI_Test", status);
}

MPI_Datatype type_of(Type type) {
  return type == Type::f32 ? MPI_FLOAT : type == Type::f64 ? MPI_DOUBLE : MPI_INT64_T;
}

const char* all_reduce(void* data, std::int64_t count, Type type, Reduction reduction,
                       double seconds) {
  if (shared_sum) {
    return shared_sum->all_reduce(data, count, type, reduction,
                                  [&](auto done) { return wait_until(done, seconds); });
  }
  const std::int64_t size = type == Type::f32 ? 4 : 8;
  const std::int64_t most = module.nodes == 1 ? kCachedBytes / size : INT_MAX / 8;
  for (std::int64_t first = 0; first < count; first += most) {
    const auto part = static_cast<int>(std::min(count - first, most));
    MPI_Request request = MPI_REQUEST_NULL;
    const int status =
        MPI_Iallreduce(MPI_IN_PLACE, static_cast<char*>(data) + first * size, part, type_of(type),
                       reduction == Reduction::sum ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD, &request);
    if (status != MPI_SUCCESS) return failed("MPI_Iallreduce", status);
    if (const char* error = wait_for(request, seconds)) return error;
  }
  return nullptr;
}

const char* all_gather(const void* mine, std::int64_t bytes, void* all, double seconds) {
  if (bytes > INT_MAX) return "more bytes than one gather takes";
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = MPI_Iallgather(mine, static_cast<int>(bytes), MPI_BYTE, all,
                                    static_cast<int>(bytes), MPI_BYTE, MPI_COMM_WORLD, &request);
  if (status != MPI_SUCCESS) return failed("MPI_Iallgather", status);
  return wait_for(request, seconds);
}

const char* all_to_all(const void* mine, std::int64_t bytes, void* all, double seconds) {
  if (bytes > INT_MAX) return "more bytes than one exchange takes";
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = MPI_Ialltoall(mine, static_cast<int>(bytes), MPI_BYTE, all,
                                   static_cast<int>(bytes), MPI_BYTE, MPI_COMM_WORLD, &request);
  if (status != MPI_SUCCESS) return failed("MPI_Ialltoall", status);
  return wait_for(request, seconds);
}

void abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

void finish() {
  shared_sum.reset();
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  MPI_Comm_free(&control);
  MPI_Finalize();
}

// All ranks of one machine, or none.
void share_memory() {
  if (module.nodes > 1 || module.size == 1) return;
  void* own = nullptr;
  int shared = MPI_Win_allocate_shared(SharedSum::kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own,
                                       &window) == MPI_SUCCESS;
  int all = 0;
  MPI_Allreduce(&shared, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all == 0) return;
  for (int rank = 0; rank < module.size; ++rank) {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* memory = nullptr;
    MPI_Win_shared_query(window, rank, &bytes, &unit, &memory);
    memory_of_rank.push_back(static_cast<std::byte*>(memory));
  }
  new (own) Mark;
  MPI_Barrier(MPI_COMM_WORLD);
  shared_sum.emplace(module.rank, module.size, memory_of_rank.data());
}

void learn_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  library_name = std::string(text, static_cast<std::size_t>(length));
  library_name.resize(std::min(library_name.find_first_of(",\n"), library_name.size()));
  module.library = library_name.c_str();
}

void learn_machines() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::vector<char> names(static_cast<std::size_t>(module.size) * sizeof(name));
  MPI_Allgather(name, sizeof(name), MPI_CHAR, names.data(), sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
  for (int rank = 0; rank < module.size; ++rank) {
    machines.emplace_back(names.data() + static_cast<std::size_t>(rank) * sizeof(name));
  }
}

}  // namespace
}  // namespace ridgeline::mpi

extern "C" {
__attribute__((visibility("default"))) extern const int ridgeline_mpi_is_open_mpi;
#ifdef OPEN_MPI
const int ridgeline_mpi_is_open_mpi = 1;
#else
const int ridgeline_mpi_is_open_mpi = 0;
#endif
}

extern "C" __attribute__((visibility("default"))) const ridgeline::mpi::Module* ridgeline_mpi_open(
    const char** reason) {
  using namespace ridgeline::mpi;
  int given = 0;
  int status = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
  if (status != MPI_SUCCESS) {
    *reason = failed("MPI_Init_thread", status);
    return nullptr;
  }
  if (given < MPI_THREAD_SERIALIZED) {
    *reason = "this MPI does not serve several threads";
    return nullptr;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &module.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &module.size);
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, module.rank, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &module.local_rank);
  MPI_Comm_size(local, &module.local_size);
  MPI_Comm_free(&local);
  const int leads = module.local_rank == 0 ? 1 : 0;
  MPI_Allreduce(&leads, &module.nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  learn_library();
  learn_machines();
  share_memory();
  module.all_reduce = all_reduce;
  module.all_gather = all_gather;
  module.all_to_all = all_to_all;
  module.missing = time_is_up;
  module.abort = abort;
  module.finish = finish;
  return &module;
}
