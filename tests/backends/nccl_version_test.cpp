#include "backends/nccl/nccl_version.h"

#include <gtest/gtest.h>

namespace ridgeline::nccl {
namespace {

TEST(NcclVersion, IsReadAsNcclCounts) {
  EXPECT_EQ(text_of_version(2604), "2.6.4");
  EXPECT_EQ(text_of_version(2804), "2.8.4");
  EXPECT_EQ(text_of_version(20900), "2.9.0");
  EXPECT_EQ(text_of_version(22809), "2.28.9");
}

TEST(NcclVersion, TooOldIsRefusedAndRecordingComesLater) {
  EXPECT_EQ(refuse_version(2604), "NCCL 2.6.4 is too old: 2.7.3 is needed");
  EXPECT_EQ(refuse_version(2703), "");
  EXPECT_FALSE(records_exchanges(2804));
  EXPECT_TRUE(records_exchanges(20900));
}

}  // namespace
}  // namespace ridgeline::nccl
