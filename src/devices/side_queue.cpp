#include "devices/side_queue.h"

namespace ridgeline {

SideQueue::SideQueue() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

void SideQueue::push(const Kernel& kernel, const KernelArgs& args) {
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back({&kernel, args});
  }
  ++pushed_;
  wake_thread_.notify_one();
}

void SideQueue::join(std::size_t count) {
  std::unique_lock lock(mutex_);
  wake_user_.wait(lock, [&] { return done_ >= count; });
  if (error_) std::rethrow_exception(error_);
}

void SideQueue::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_thread_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
    const Job job = jobs_.front();
    jobs_.pop_front();
    const bool failed = error_ != nullptr;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!failed) job.kernel->run(job.args);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) error_ = error;
    ++done_;
    wake_user_.notify_one();
  }
}

}  // namespace ridgeline
