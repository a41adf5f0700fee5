// How many images a second a loader brings to a device, without any training.
//
//   batches DECODER FOLDER [SIDE [BATCH [WORKERS [SECONDS]]]]
//
// DECODER is one of `train --decoder`. Random crops of FOLDER's training images, shuffled; with
// `cpu` batches are staged as training stages them. Prints images a second of the second half.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "data/catalog.h"
#include "devices/image_place.h"

namespace ridgeline {
namespace {

Decoder decoder_named(const std::string& name) {
  for (std::size_t i = 0; i < kDecoderNames.size(); ++i) {
    if (kDecoderNames[i] == name) return static_cast<Decoder>(i);
  }
  bad_input("unknown decoder {}", name);
}

double images_a_second(Loader& loader, Device& device, std::size_t batch_bytes, double seconds) {
  const DeviceMemory memory(device, batch_bytes);
  std::int64_t images = 0, epoch = 0;
  Clock::time_point start = Clock::now();
  const Clock::time_point begin = start;
  bool warm = false;
  loader.start_epoch(epoch);
  while (seconds_since(begin) < seconds) {
    const std::optional<Batch> batch = loader.next();
    if (!batch) {
      loader.start_epoch(++epoch);
      continue;
    }
    if (batch->place != nullptr) {
      batch->place->deliver(batch->slot, static_cast<std::size_t>(batch->rows), memory.data());
    } else {
      device.stage(memory.data(), batch->pixels.data(), batch->pixels.size());
    }
    device.synchronize();
    images += batch->rows;
    if (!warm && seconds_since(begin) > seconds / 2) {
      warm = true;
      images = 0;
      start = Clock::now();
    }
  }
  return static_cast<double>(images) / seconds_since(start);
}

int run(int argc, char** argv) {
  if (argc < 3) bad_input("batches DECODER FOLDER [SIDE [BATCH [WORKERS [SECONDS]]]]");
  const auto number = [&](int at, int usual) { return argc > at ? std::atoi(argv[at]) : usual; };
  const Decoder decoder = decoder_named(argv[1]);
  const int side = number(3, 224);
  const std::unique_ptr<Device> device = make_device(cuda_unavailable().empty() ? "cuda:0" : "cpu");
  if (const std::string reason = refuse(decoder, *device); !reason.empty()) {
    bad_input("{}: {}", argv[1], reason);
  }
  const Split data = load_dataset(argv[2], {.image = {side, side}});
  const auto loader = make_loader(data.train,
                                  {.batch = number(4, 128),
                                   .shuffle = true,
                                   .last_batch = LastBatch::drop,
                                   .workers = number(5, 16),
                                   .crop = true},
                                  decoder, *device);
  const std::size_t bytes = static_cast<std::size_t>(number(4, 128)) * data.train.sample_bytes();
  std::printf("%.0f\n", images_a_second(*loader, *device, bytes, number(6, 4)));
  return 0;
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  try {
    return ridgeline::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "batches: %s\n", error.what());
    return 2;
  }
}
