#include "devices/image_place.h"

namespace ridgeline {

std::unique_ptr<Loader> make_loader(const Dataset& data, const LoaderOptions& options,
                                    Decoder decoder, Device& device) {
  if (decoder == Decoder::cpu || !has_encoded_images(data)) {
    return std::make_unique<Loader>(data, options);
  }
  return std::make_unique<Loader>(data, options, make_image_place(decoder, device));
}

}  // namespace ridgeline
