#pragma once

// Jobs of several ranks, started by the mpirun that is installed.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "ranks/ranks.h"
#include "support/program.h"

namespace ridgeline::testing {

inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// More ranks than processors are welcome.
inline std::string mpirun(int ranks) {
  return "mpirun -q --oversubscribe --bind-to none " +
         std::string(geteuid() == 0 ? "--allow-run-as-root " : "") + "-n " + std::to_string(ranks);
}

// Processes of ridgeline that were started in a folder, with their rank; -1: it is none.
inline std::vector<std::pair<pid_t, int>> processes_in(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<std::pair<pid_t, int>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code error;
    if (fs::read_symlink(entry.path() / "cwd", error) != folder || error) continue;
    const std::string environment = contents_of(entry.path() / "environ");
    const std::string key = std::string("OMPI_COMM_WORLD_RANK=");
    const std::size_t at = environment.find(key);
    found.emplace_back(std::stoi(name),
                       at == std::string::npos ? -1 : std::atoi(&environment[at + key.size()]));
  }
  return found;
}

// Left out where there is no MPI.
class RankTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (const std::string reason = ranks_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }

  // A command of the shell in the test's folder.
  [[nodiscard]] Outcome shell(const std::string& command) const {
    const std::string line = "cd " + folder_.string() + " && " + command + " >out 2>err </dev/null";
    Outcome outcome;
    outcome.code = WEXITSTATUS(std::system(line.c_str()));
    outcome.out = contents_of(folder_ / "out");
    outcome.err = contents_of(folder_ / "err");
    return outcome;
  }
};

}  // namespace ridgeline::testing
