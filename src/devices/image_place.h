#pragma once

// Decoders of images, and the places in devices' memory where they leave batches.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/batch_place.h"
#include "data/loader.h"
#include "devices/device.h"

namespace ridgeline {

// Who decodes JPEG images. All but the first leave batches in the device's memory, and let the host
// decode what is not of the usual kind: see JpegReader::usual().
enum class Decoder : std::uint8_t {
  cpu,          // libjpeg-turbo does everything
  gpu,          // the host undoes the entropy coding, our kernels do the rest: the same bits
  nvjpeg,       // nvJPEG with the hardware decoder, then our kernels; pixels differ a little
  nvjpeg_cuda,  // nvJPEG without it
};
inline constexpr std::array<std::string_view, 4> kDecoderNames = {"cpu", "gpu", "nvjpeg",
                                                                  "nvjpeg-cuda"};
[[nodiscard]] constexpr std::string_view name_of(Decoder decoder) {
  return kDecoderNames[static_cast<std::size_t>(decoder)];
}

// Why a decoder cannot be used with a device here; empty: it can.
[[nodiscard]] std::string refuse(Decoder decoder, const Device& device);

// Of the library that decodes, where that is not ours: the bits may depend on it. Else empty.
[[nodiscard]] std::string decoder_version(Decoder decoder);

// For one loader. REQUIRES: refuse() has nothing against it, and the decoder is not `cpu`; the
// device outlives the place.
[[nodiscard]] std::shared_ptr<BatchPlace> make_image_place(Decoder decoder, Device& device);

// A loader whose images are decoded so; by the host where they are not files.
[[nodiscard]] std::unique_ptr<Loader> make_loader(const Dataset& data, const LoaderOptions& options,
                                                  Decoder decoder, Device& device);

}  // namespace ridgeline
