// A libnccl.so.2 of 2020: what is refused for its age.

extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  *version = 2604;
  return 0;
}
