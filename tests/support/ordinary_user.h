#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace ridgeline::testing {

// Gives up root's rights, which would open every file, and takes them back at the end.
class OrdinaryUser {
 public:
  OrdinaryUser() {
    EXPECT_TRUE(!was_root_ || seteuid(65534) == 0);
    // In a program of another user leaks cannot be looked for, and trying ends it with exit code 1.
    setenv("ASAN_OPTIONS", (options_ + ":detect_leaks=0").c_str(), 1);
  }
  ~OrdinaryUser() {
    EXPECT_TRUE(!was_root_ || seteuid(0) == 0);
    setenv("ASAN_OPTIONS", options_.c_str(), 1);
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  bool was_root_ = geteuid() == 0;
  std::string options_ = getenv("ASAN_OPTIONS") != nullptr ? getenv("ASAN_OPTIONS") : "";
};

}  // namespace ridgeline::testing
