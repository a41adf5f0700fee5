#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

namespace ridgeline::testing {

// Gives up root's rights, which would open every file, and takes them back at the end. The real
// user changes as well: sanitizers do not work in programs whose two users differ.
class OrdinaryUser {
 public:
  OrdinaryUser() { EXPECT_TRUE(!was_root_ || setresuid(65534, 65534, 0) == 0); }
  ~OrdinaryUser() { EXPECT_TRUE(!was_root_ || setresuid(0, 0, 0) == 0); }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  bool was_root_ = geteuid() == 0;
};

}  // namespace ridgeline::testing
