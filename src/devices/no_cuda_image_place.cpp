// What stands for images decoded on the GPU in a build without CUDA.

#include "base/error.h"
#include "devices/image_place.h"

namespace ridgeline {

std::string refuse(Decoder decoder, const Device&) {
  return decoder == Decoder::cpu ? std::string() : cuda_unavailable();
}

std::string decoder_version(Decoder) { return {}; }

std::shared_ptr<BatchPlace> make_image_place(Decoder decoder, Device& device) {
  fail("decoder {}: {}", name_of(decoder), refuse(decoder, device));
}

}  // namespace ridgeline
