#include "backends/nccl/communicator.h"

#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"

namespace ridgeline::nccl {
namespace {

std::unique_ptr<Communicator>& kept() {
  static std::unique_ptr<Communicator> communicator;
  return communicator;
}

}  // namespace

Communicator::Communicator(Ranks& ranks) : ranks_(ranks) {
  // Rank 0's number for the job reaches the others by the way that ranks have already.
  ncclUniqueId own{};
  if (ranks.first()) check(functions().get_unique_id(&own), "making a number for the job");
  std::vector<ncclUniqueId> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  check(functions().init(&handle_, ranks.size(), all[0], ranks.rank()), "joining the ranks' GPUs");
}

// Where an exchange was ended before its time, nothing is left to wait for.
Communicator::~Communicator() {
  if (handle_ != nullptr && !aborted_) (void)functions().destroy(handle_);
}

void Communicator::begin_group() { check(functions().group_start(), "beginning an exchange"); }
void Communicator::end_group() { check(functions().group_end(), "starting an exchange"); }

void Communicator::all_reduce(std::span<float> values, Stream stream) {
  check(functions().all_reduce(values.data(), values.data(), values.size(), ncclFloat32, ncclSum,
                               handle_, stream),
        "a sum over ranks");
}

void Communicator::all_to_all(const std::byte* mine, std::byte* all, std::size_t bytes_each,
                              Stream stream) {
  begin_group();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const std::size_t at = static_cast<std::size_t>(rank) * bytes_each;
    check(functions().send(mine + at, bytes_each, ncclUint8, rank, handle_, stream), "sending");
    check(functions().receive(all + at, bytes_each, ncclUint8, rank, handle_, stream), "receiving");
  }
  end_group();
}

void Communicator::all_gather(const std::byte* mine, std::byte* all, std::size_t bytes,
                              Stream stream) {
  check(functions().all_gather(mine, all, bytes, ncclUint8, handle_, stream),
        "gathering from ranks");
}

void Communicator::look(double waited_seconds) {
  if (aborted_) return;
  ncclResult_t trouble = ncclSuccess;
  const ncclResult_t asked = functions().async_error(handle_, &trouble);
  if (asked == ncclSuccess && trouble != ncclSuccess && trouble != ncclInProgress) {
    abort();
    check(trouble, "an exchange with other ranks");
  }
  if (waited_seconds <= ranks_.patience()) return;
  const std::string missing = ranks_.missing();
  abort();
  fail("{}", missing);
}

void Communicator::abort() {
  aborted_ = true;
  (void)functions().abort(handle_);
}

Communicator& communicator(Ranks& ranks) {
  if (kept() == nullptr) {
    kept() = std::make_unique<Communicator>(ranks);
    ranks.at_finish([] { kept().reset(); });
  }
  return *kept();
}

Communicator* made_communicator() { return kept().get(); }

}  // namespace ridgeline::nccl
