#include "devices/side_queue.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>

#include "devices/device.h"

namespace ridgeline {
namespace {

class Call final : public Kernel {
 public:
  explicit Call(std::function<void()> body) : body_(std::move(body)) {}
  void run(const KernelArgs&) const override { body_(); }

 private:
  std::function<void()> body_;
};

TEST(ThreadsSideQueue, RunsKernelsInOrderBesideTheCaller) {
  std::vector<int> order;
  std::vector<std::unique_ptr<Call>> calls;
  std::thread::id other;
  SideQueue queue;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(std::make_unique<Call>([&, i] {
      order.push_back(i);
      other = std::this_thread::get_id();
    }));
    queue.push(*calls.back(), {});
  }
  queue.join(queue.pushed());
  ASSERT_EQ(order.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_NE(other, std::this_thread::get_id());
}

TEST(ThreadsSideQueue, JoinThrowsWhatAKernelThrewAndNoneAfterItRuns) {
  int ran = 0;
  const Call good([&] { ++ran; }), bad([] { throw std::runtime_error("lost"); });
  SideQueue queue;
  queue.push(good, {});
  queue.push(bad, {});
  queue.push(good, {});
  EXPECT_THROW(queue.join(3), std::runtime_error);
  EXPECT_EQ(ran, 1);
}

TEST(ThreadsSideQueue, TheCpuCountsWhatItLaunchedBeside) {
  const std::unique_ptr<Device> device = make_cpu_device();
  int ran = 0;
  const Call call([&] { ++ran; });
  device->launch_beside(call, {});
  device->launch_beside(call, {});
  device->join(2);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(device->launched_beside(), 2U);
}

}  // namespace
}  // namespace ridgeline
