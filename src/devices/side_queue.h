#pragma once

// A thread that runs kernels beside those that the host runs: ones that wait for other processes.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "devices/kernel.h"

namespace ridgeline {

class SideQueue {
 public:
  SideQueue();
  SideQueue(const SideQueue&) = delete;
  SideQueue& operator=(const SideQueue&) = delete;

  // REQUIRES: kernel and args live until join() has returned.
  void push(const Kernel& kernel, const KernelArgs& args);
  // Waits until the first `count` kernels are done. Rethrows what one of them threw; those behind
  // it are not run.
  void join(std::size_t count);
  [[nodiscard]] std::size_t pushed() const { return pushed_; }

 private:
  struct Job {
    const Kernel* kernel = nullptr;
    KernelArgs args;
  };
  void work(const std::stop_token& stop);

  std::size_t pushed_ = 0;  // of the one thread that calls
  // Shared with the thread, guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable_any wake_thread_, wake_user_;
  std::deque<Job> jobs_;
  std::size_t done_ = 0;
  std::exception_ptr error_;

  std::jthread thread_;  // last: joined before anything it uses goes away
};

}  // namespace ridgeline
