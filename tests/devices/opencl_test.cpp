// The OpenCL device: what the op cases cannot show. All but the last are skipped without a
// platform.

#include "devices/opencl.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/opencl/launch.h"
#include "base/error.h"
#include "support/program.h"

namespace ridgeline {
namespace {

class OpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = opencl_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    device_ = make_device("opencl");
  }
  std::unique_ptr<Device> device_;
};

std::vector<int> counted(std::size_t size) {
  std::vector<int> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

TEST_F(OpenCl, CopiesToAndFromAnyPlaceOfAnAllocation) {
  const DeviceMemory memory(*device_, 4096), other(*device_, 64);
  const std::vector<int> sent = counted(100);
  device_->fill(memory.data(), std::byte{0}, memory.size());
  device_->upload(memory.data() + 64, sent.data(), 400);
  device_->fill(memory.data() + 64, std::byte{1}, 4);
  std::vector<int> got(116);
  device_->download(got.data(), memory.data(), 464);
  device_->synchronize();
  EXPECT_EQ(got[15], 0);
  EXPECT_EQ(got[16], 0x01010101);
  EXPECT_TRUE(std::equal(sent.begin() + 1, sent.end(), got.begin() + 17));
}

TEST_F(OpenCl, StagedHostMemoryMayChangeAtOnce) {
  const DeviceMemory memory(*device_, 4000);
  std::vector<int> numbers = counted(1000);
  for (int round = 0; round < 5; ++round) {
    numbers[7] = round;
    device_->stage(memory.data(), numbers.data(), 4000);
    numbers[7] = -1;
    std::vector<int> got(1000);
    device_->download(got.data(), memory.data(), 4000);
    device_->synchronize();
    EXPECT_EQ(got[7], round);
    EXPECT_EQ(got[999], 1000);
  }
}

TEST_F(OpenCl, CountsItsMemoryAndRefusesMoreThanThereIs) {
  EXPECT_EQ(device_->allocated_memory(), 0U);
  {
    const DeviceMemory memory(*device_, 1000);
    EXPECT_EQ(device_->allocated_memory(), 1000U);
  }
  EXPECT_EQ(device_->allocated_memory(), 0U);
  try {
    const DeviceMemory memory(*device_, std::size_t{1} << 60);
    FAIL() << "2^60 bytes were allocated";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("in one piece"), std::string::npos) << error.what();
  }
}

// Two launches of one kernel with different arguments, and a third after they were recorded.
TEST_F(OpenCl, ReplaysLaunchesWithTheArgumentsThatTheyHad) {
  const DeviceMemory from(*device_, 400), middle(*device_, 400), to(*device_, 400);
  auto& queue = *static_cast<opencl::Queue*>(device_->queue());
  const auto copy = [&](const DeviceMemory& src, const DeviceMemory& dst) {
    opencl::Launch(queue, {"kernels/move.cl", "copy4"})
        .rows({src.data(), 1, 100, 100})
        .rows({dst.data(), 1, 100, 100})
        .value(std::int64_t{100})
        .value(std::int64_t{1})
        .run({100, 1}, {4, 1});
  };
  const auto recording = device_->record([&] {
    copy(from, middle);
    copy(middle, to);
  });
  const std::string refusal = opencl_recording_refusal(0);
  ASSERT_EQ(recording == nullptr, !refusal.empty());
  if (recording == nullptr) GTEST_SKIP() << refusal;
  std::vector<int> sent = counted(100), got(100);
  device_->upload(from.data(), sent.data(), 400);
  device_->fill(to.data(), std::byte{0}, 400);
  device_->download(got.data(), to.data(), 400);
  device_->synchronize();
  EXPECT_EQ(got, std::vector<int>(100));  // nothing ran while it was recorded
  copy(to, from);
  for (int round = 0; round < 3; ++round) {
    sent[5] = round;
    device_->upload(from.data(), sent.data(), 400);
    recording->replay();
    recording->replay();
    device_->download(got.data(), to.data(), 400);
    device_->synchronize();
    EXPECT_EQ(got, sent);
  }
}

TEST_F(OpenCl, RefusesPrecisionsAndDevicesThatThereAreNot) {
  EXPECT_EQ(device_->refuse(Precision::fp32), "");
  EXPECT_EQ(device_->refuse(Precision::fp16), "");
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    EXPECT_NE(device_->refuse(precision), "");
  }
  try {
    (void)make_device("opencl:999");
    FAIL() << "device 999 was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find("does not exist"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)make_device("opencl:x"), Error);
}

// The loader looks for drivers where this variable says.
class NoOpenCl : public testing::ProgramTest {};
TEST_F(NoOpenCl, TheProgramSaysWhyThereIsNoDevice) {
  ASSERT_EQ(setenv("OCL_ICD_VENDORS", "/nowhere", 1), 0);
  const testing::Outcome backends = run("backends");
  const testing::Outcome train = run("train mlp --device opencl:0");
  ASSERT_EQ(unsetenv("OCL_ICD_VENDORS"), 0);
  EXPECT_EQ(backends.code, 0) << backends.err;
  EXPECT_NE(backends.out.find("opencl"), std::string::npos) << backends.out;
  EXPECT_EQ(train.code, 2);
  EXPECT_NE(train.err.find("OpenCL"), std::string::npos) << train.err;
}

}  // namespace
}  // namespace ridgeline
