// The short fault sweep: a few calls and allocations of each command fail, and scripts/fault-sweep
// checks what that leaves behind.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <regex>
#include <string>

#include "base/error.h"
#include "support/program.h"
#include "support/source_dir.h"

namespace ridgeline::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kFewestFaults = 300;  // fewer: the library strikes nothing any more
constexpr int kSkipped = 77;

TEST(SlowFaultInjection, LeavesWholeStoresWholeCheckpointsAndNoOtherFiles) {
  const fs::path build = fs::path(program()).parent_path();
  const std::string command =
      fmt::format("python3 '{}' --short --build '{}' 2>&1",
                  (source_dir() / "scripts/fault-sweep").string(), build.string());
  std::FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  ASSERT_TRUE(WIFEXITED(status)) << output;
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << output;
  EXPECT_EQ(WEXITSTATUS(status), 0) << output;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(output, match, std::regex("([0-9,]+) faults injected"))) << output;
  std::string faults = match[1];
  std::erase(faults, ',');
  EXPECT_GE(std::stoi(faults), kFewestFaults) << output;
}

}  // namespace
}  // namespace ridgeline::testing
