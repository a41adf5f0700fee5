#include "ranks/launch.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "ranks/ranks.h"

namespace ridgeline {
namespace {

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string file = folders.substr(begin, end - begin) + '/' + program;
    if (access(file.c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

// Where several MPIs are installed, Debian names the mpirun of each after it.
std::string launcher_program(bool open_mpi) {
  const std::vector<std::string> names =
      open_mpi ? std::vector<std::string>{"mpirun.openmpi", "mpirun"}
               : std::vector<std::string>{"mpirun.mpich", "mpiexec.hydra", "mpirun"};
  for (const std::string& name : names) {
    if (in_path(name)) return name;
  }
  bad_input("--ranks: mpirun is not installed (Debian: {})", open_mpi ? "openmpi-bin" : "mpich");
}

int usable_processors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (sched_getaffinity(0, sizeof(processors), &processors) != 0) return 1;
  return CPU_COUNT(&processors);
}

}  // namespace

std::vector<std::string> rank_launcher(int count) {
  if (const std::string reason = ranks_unavailable(); !reason.empty()) bad_input("{}", reason);
  const bool open_mpi = joined_by_open_mpi();
  std::vector<std::string> words = {launcher_program(open_mpi), "-n", std::to_string(count)};
  if (open_mpi) {
    // None is tied to one processor.
    for (const char* word : {"--oversubscribe", "--bind-to", "none", "-q"}) {
      words.emplace_back(word);
    }
    if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  }
  return words;
}

int threads_among(int ranks) { return std::max(1, usable_processors() / ranks); }

std::string crowding_note(int ranks) {
  const int processors = usable_processors();
  if (ranks <= processors) return {};
  return fmt::format(
      "note: {} ranks share {} processor{}: they wait for each other, and times say little", ranks,
      processors, processors == 1 ? "" : "s");
}

}  // namespace ridgeline
