#pragma once

// NCCL, opened when it is first needed: a build with it runs on machines that lack it.

#include <nccl.h>

#include <string>

namespace ridgeline::nccl {

struct Functions {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRank) init = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
};

// Why it cannot be used; empty when it can.
[[nodiscard]] const std::string& library_problem();
// As NCCL counts: 22809 is 2.28.9. REQUIRES, like functions(): there is no such problem.
[[nodiscard]] int library_version();
[[nodiscard]] const Functions& functions();

// Throws a failure with NCCL's own words when a call did not succeed.
void check(ncclResult_t result, const char* what);

}  // namespace ridgeline::nccl
