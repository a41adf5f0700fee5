#include "ranks/ranks.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "ranks/mpi/module.h"

namespace ridgeline {

std::vector<std::string> Ranks::gather(std::string_view mine) {
  std::int64_t longest = static_cast<std::int64_t>(mine.size());
  all_reduce({&longest, 1}, Reduction::maximum);
  const auto room = static_cast<std::size_t>(longest) + sizeof(std::int64_t);
  std::vector<std::byte> own(room), all(room * static_cast<std::size_t>(size_));
  const auto length = static_cast<std::int64_t>(mine.size());
  std::memcpy(own.data(), &length, sizeof(length));
  std::memcpy(own.data() + sizeof(length), mine.data(), mine.size());
  all_gather(own, all);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_); ++rank) {
    const std::byte* from = all.data() + rank * room;
    std::int64_t bytes = 0;
    std::memcpy(&bytes, from, sizeof(bytes));
    texts.emplace_back(reinterpret_cast<const char*>(from + sizeof(bytes)),
                       static_cast<std::size_t>(bytes));
  }
  return texts;
}

bool Ranks::any(bool here) {
  std::int64_t value = here ? 1 : 0;
  all_reduce({&value, 1}, Reduction::maximum);
  return value != 0;
}

namespace {

class MpiRanks final : public Ranks {
 public:
  explicit MpiRanks(const mpi::Module& module) : module_(module) {
    rank_ = module.rank;
    size_ = module.size;
    local_rank_ = module.local_rank;
    local_size_ = module.local_size;
    nodes_ = module.nodes;
    transport_ = module.library;
  }

  void all_reduce(std::span<float> values, Reduction reduction) override {
    reduce(values.data(), values.size(), mpi::Type::f32, reduction);
  }
  void all_reduce(std::span<double> values, Reduction reduction) override {
    reduce(values.data(), values.size(), mpi::Type::f64, reduction);
  }
  void all_reduce(std::span<std::int64_t> values, Reduction reduction) override {
    reduce(values.data(), values.size(), mpi::Type::i64, reduction);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ensure(all.size() == mine.size() * static_cast<std::size_t>(size_),
           "{} bytes of {} ranks do not fit into {}", mine.size(), size_, all.size());
    timed([&] {
      return module_.all_gather(mine.data(), static_cast<std::int64_t>(mine.size()), all.data(),
                                patience_);
    });
  }
  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const auto ranks = static_cast<std::size_t>(size_);
    ensure(all.size() == mine.size() && mine.size() % ranks == 0,
           "{} bytes to {} ranks, {} from them", mine.size(), size_, all.size());
    timed([&] {
      return module_.all_to_all(mine.data(), static_cast<std::int64_t>(mine.size() / ranks),
                                all.data(), patience_);
    });
  }
  [[noreturn]] void abort(int code) override {
    module_.abort(code);
    _exit(code);
  }
  void finish() override {
    if (at_finish_) at_finish_();
    module_.finish();
  }
  [[nodiscard]] std::string missing() override { return module_.missing(patience_); }

 private:
  void reduce(void* data, std::size_t count, mpi::Type type, Reduction reduction) {
    timed([&] {
      return module_.all_reduce(
          data, static_cast<std::int64_t>(count), type,
          reduction == Reduction::sum ? mpi::Reduction::sum : mpi::Reduction::maximum, patience_);
    });
  }
  template <typename Call>
  void timed(Call call) {
    const Clock::time_point start = Clock::now();
    const char* const error = call();
    seconds_ += seconds_since(start);
    if (error != nullptr) fail("{}", error);
  }

  const mpi::Module& module_;
};

Ranks*& current() {
  static Ranks* ranks = nullptr;
  return ranks;
}

// Beside the program or the library that this code is part of, or where libraries are installed.
void* open_module(std::string& reason) {
  namespace fs = std::filesystem;
  Dl_info own{};
  std::vector<std::string> places;
  if (dladdr(reinterpret_cast<void*>(&joined_ranks), &own) != 0 && own.dli_fname != nullptr) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    for (const fs::path& file : {fs::path(own.dli_fname), program}) {
      places.push_back(file.parent_path() / mpi::kModuleFile);
      places.push_back(file.parent_path() / "../lib/ridgeline" / mpi::kModuleFile);
    }
  }
  places.emplace_back(mpi::kModuleFile);
  for (const std::string& place : places) {
    const bool by_name = place.find('/') == std::string::npos;
    if (!by_name && access(place.c_str(), R_OK) != 0) continue;
    // MPI's own plug-ins look for its names among the global ones.
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    reason = dlerror();
    if (!by_name) return nullptr;
  }
  return nullptr;
}

int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  int number = 0;
  if (text != nullptr) (void)std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

int launched_ranks() {
  int ranks = std::max(
      {1, number_in_environment("OMPI_COMM_WORLD_SIZE"), number_in_environment("PMI_SIZE")});
  if (std::getenv("SLURM_PROCID") != nullptr) {
    ranks = std::max(ranks, number_in_environment("SLURM_STEP_NUM_TASKS"));
  }
  return ranks;
}

int launched_rank() {
  return std::max({0, number_in_environment("OMPI_COMM_WORLD_RANK"),
                   number_in_environment("PMI_RANK"), number_in_environment("SLURM_PROCID")});
}

std::string ranks_unavailable() {
  std::string reason;
  if (open_module(reason) != nullptr) return {};
  return fmt::format(
      "MPI cannot be used: {} (Debian: libopenmpi-dev when Ridgeline is built, openmpi-bin to run)",
      reason);
}

bool joined_by_open_mpi() {
  std::string reason;
  void* library = open_module(reason);
  if (library == nullptr) return false;
  const auto* is = static_cast<const int*>(dlsym(library, mpi::kIsOpenMpi));
  return is != nullptr && *is != 0;
}

void join_ranks() {
  if (current() != nullptr) return;
  std::string reason;
  void* library = open_module(reason);
  if (library == nullptr) bad_input("{}", ranks_unavailable());
  const auto open = reinterpret_cast<mpi::Open>(dlsym(library, mpi::kOpenFunction));
  const char* refused = nullptr;
  const mpi::Module* module = open != nullptr ? open(&refused) : nullptr;
  if (module == nullptr) {
    bad_input("MPI cannot be used: {}", refused != nullptr ? refused : "not a module of Ridgeline");
  }
  if (module->version != mpi::kModuleVersion) {
    bad_input("{} is of another version of Ridgeline", mpi::kModuleFile);
  }
  static std::unique_ptr<Ranks> kept;
  kept = std::make_unique<MpiRanks>(*module);
  current() = kept.get();
}

Ranks* joined_ranks() { return current(); }

Ranks* started_ranks() {
  if (launched_ranks() > 1) join_ranks();
  return joined_ranks();
}

void use_ranks(Ranks* ranks) { current() = ranks; }

int threads_of_rank(Ranks& ranks) {
  struct Place {
    char machine[256] = {};
    cpu_set_t processors{};
  };
  Place own;
  (void)gethostname(own.machine, sizeof(own.machine) - 1);
  CPU_ZERO(&own.processors);
  if (sched_getaffinity(0, sizeof(own.processors), &own.processors) != 0) return 1;
  std::vector<Place> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  const auto sharing = std::count_if(all.begin(), all.end(), [&](const Place& place) {
    return std::strcmp(place.machine, own.machine) == 0 &&
           CPU_EQUAL(&place.processors, &own.processors) != 0;
  });
  return std::max(1, CPU_COUNT(&own.processors) / static_cast<int>(sharing));
}

}  // namespace ridgeline
