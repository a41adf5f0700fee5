#include "data/jpeg.h"

// libjpeg's header needs FILE and size_t from its user.
#include <cstddef>
#include <cstdio>
// then
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <new>

#include "base/error.h"
#include "data/exif.h"
#include "data/huffman.h"

namespace ridgeline {
namespace {

// Every 8x8 block of a component takes a bit at least, so that a file that claims more pixels is
// cut off or hostile. What is allocated for a file stays in proportion to it.
constexpr std::int64_t kMostPixelsPerByte = 512;
// A progressive file may refine the whole image again and again; honest ones have about ten scans.
constexpr int kMostScans = 200;
// The library's own memory: coefficients of a progressive image of kMostPixels do not fit.
constexpr long kMostMemory = 1L << 30;
// Means of blocks lie within 1024 and half a step of quantisation. Beyond it the file is damaged,
// and what the library makes of it depends on the instructions that it uses.
constexpr std::int64_t kMostMean = 2048;
// Neighbours that the smooth upsampling of colours looks at, with room to spare.
constexpr int kMargin = 8;

struct ErrorManager {
  jpeg_error_mgr base;  // first: the library knows only this part
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  int warnings;
};

ErrorManager& manager_of(j_common_ptr info) { return *reinterpret_cast<ErrorManager*>(info->err); }

extern "C" void on_error(j_common_ptr info) {
  ErrorManager& manager = manager_of(info);
  manager.base.format_message(info, manager.message);
  std::longjmp(manager.jump, 1);
}

extern "C" void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // tracing
  ErrorManager& manager = manager_of(info);
  ++manager.warnings;
  // The library would fill the rest with grey.
  if (manager.base.msg_code == JWRN_JPEG_EOF) {
    std::strcpy(manager.message, "truncated: the file ends in the middle of the image");
    std::longjmp(manager.jump, 1);
  }
}

extern "C" void on_output(j_common_ptr) {}

extern "C" void on_progress(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= kMostScans) return;
  ErrorManager& manager = manager_of(info);
  std::strcpy(manager.message, "more scans than any honest image has");
  std::longjmp(manager.jump, 1);
}

int orientation_of(const jpeg_decompress_struct& info) {
  static constexpr std::array<std::uint8_t, 6> kExif = {'E', 'x', 'i', 'f', 0, 0};
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr;
       marker = marker->next) {
    const std::span<const std::uint8_t> data(marker->data, marker->data_length);
    if (marker->marker != JPEG_APP0 + 1 || data.size() < kExif.size()) continue;
    if (!std::equal(kExif.begin(), kExif.end(), data.begin())) continue;
    return exif_orientation(data.subspan(kExif.size()));
  }
  return 1;
}

// Inks to light, in place. Files hold inks inverted (Adobe's way, which all writers follow), so
// that each colour is the product of two numbers out of 255, rounded.
void cmyk_to_rgb(std::uint8_t* row, int width) {
  for (int x = 0; x < width; ++x, row += 4) {
    for (int c = 0; c < 3; ++c) {
      const int product = row[c] * row[3] + 128;
      row[c] = static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
    }
  }
}

std::int32_t samples_along(JDIMENSION size, int shift) {
  return static_cast<std::int32_t>((size + static_cast<JDIMENSION>(shift)) >> shift);
}

// Of pixels first to first + size - 1; where colours grow, one sample more on each side counts.
void blocks_along(int first, int size, int shift, int samples, std::int32_t& from,
                  std::int32_t& count) {
  from = std::max(0, (first >> shift) - shift) / kBlockSide;
  count = std::min(samples - 1, ((first + size - 1) >> shift) + shift) / kBlockSide + 1 - from;
}

int units_along(std::int32_t samples, int blocks) {
  const int wide = blocks * kBlockSide;
  return (samples + wide - 1) / wide;
}

}  // namespace

// How a channel's blocks follow each other in a scan of all channels.
struct ScanChannel {
  const HuffmanTable *dc = nullptr, *ac = nullptr;
  int across = 1, down = 1;  // blocks of a unit
  std::int32_t predicted = 0;
};

struct JpegReader::State {
  jpeg_decompress_struct info{};
  ErrorManager errors{};
  jpeg_progress_mgr progress{};
  std::string name;
  // Kept here: locals that change between setjmp and longjmp are lost.
  DecodedArea result;
  std::vector<JSAMPROW> rows;
  // Of read_blocks().
  std::array<HuffmanTable, 6> tables;
  std::vector<std::uint8_t> scan;

  [[noreturn]] void refuse() {
    jpeg_abort_decompress(&info);
    // Of the cases of this error, 2 and 4 are allocations; the others are sizes beyond reason.
    const int which = errors.base.msg_parm.i[0];
    if (errors.base.msg_code == JERR_OUT_OF_MEMORY && (which == 2 || which == 4)) {
      throw std::bad_alloc();
    }
    bad_input("{}: is not a valid JPEG image: {}", name, errors.message);
  }
};

JpegReader::JpegReader() : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.info.err = jpeg_std_error(&s.errors.base);
  s.errors.base.error_exit = on_error;
  s.errors.base.emit_message = on_message;
  s.errors.base.output_message = on_output;
  s.progress.progress_monitor = on_progress;
  if (setjmp(s.errors.jump) != 0) fail("libjpeg could not start: {}", s.errors.message);
  jpeg_create_decompress(&s.info);
  s.info.progress = &s.progress;
  s.info.mem->max_memory_to_use = kMostMemory;
  jpeg_save_markers(&s.info, JPEG_APP0 + 1, 0xFFFF);
}

JpegReader::~JpegReader() { jpeg_destroy_decompress(&state_->info); }

int JpegReader::warnings() const { return state_->errors.warnings; }

ImageHeader JpegReader::open(std::span<const std::uint8_t> bytes, const std::string& name) {
  State& s = *state_;
  s.name = name;
  s.errors.warnings = 0;
  if (setjmp(s.errors.jump) != 0) s.refuse();
  jpeg_abort_decompress(&s.info);
  jpeg_mem_src(&s.info, bytes.data(), bytes.size());
  jpeg_read_header(&s.info, TRUE);
  const std::int64_t pixels = std::int64_t{s.info.image_width} * s.info.image_height;
  if (pixels > kMostPixels) {
    bad_input("{}: {}x{} pixels are more than {} can be", name, s.info.image_width,
              s.info.image_height, kMostPixels);
  }
  if (pixels > kMostPixelsPerByte * static_cast<std::int64_t>(bytes.size())) {
    bad_input("{}: is not a valid JPEG image: {} bytes cannot hold {}x{} pixels", name,
              bytes.size(), s.info.image_width, s.info.image_height);
  }
  return {.format = ImageFormat::jpeg,
          .width = static_cast<int>(s.info.image_width),
          .height = static_cast<int>(s.info.image_height),
          .orientation = orientation_of(s.info)};
}

DecodedArea JpegReader::decode(const PixelArea& area, int eighths,
                               std::vector<std::uint8_t>& buffer) {
  State& s = *state_;
  if (setjmp(s.errors.jump) != 0) s.refuse();
  const bool inks = s.info.jpeg_color_space == JCS_CMYK || s.info.jpeg_color_space == JCS_YCCK;
  s.info.out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
  s.info.scale_num = static_cast<unsigned>(eighths);
  s.info.scale_denom = 8;
  s.info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&s.info);

  // The area in pixels of the scaled image, with a margin.
  const auto scaled_down = [&](int at) { return at * std::int64_t{eighths} / 8; };
  const auto scaled_up = [&](int at) { return (at * std::int64_t{eighths} + 7) / 8; };
  const std::int64_t width = s.info.output_width, height = s.info.output_height;
  const auto left = std::max<std::int64_t>(0, scaled_down(area.x) - kMargin);
  const auto right = std::min(width, scaled_up(area.x + area.width) + kMargin);
  const auto top = std::max<std::int64_t>(0, scaled_down(area.y) - kMargin);
  const auto bottom = std::min(height, scaled_up(area.y + area.height) + kMargin);

  auto first_column = static_cast<JDIMENSION>(left);
  auto columns = static_cast<JDIMENSION>(right - left);
  if (left > 0 || right < width) jpeg_crop_scanline(&s.info, &first_column, &columns);
  if (top > 0) jpeg_skip_scanlines(&s.info, static_cast<JDIMENSION>(top));

  const std::size_t stride = std::size_t{4} * s.info.output_width;
  const auto count = static_cast<std::size_t>(bottom - top);
  if (buffer.size() < stride * count) buffer.resize(stride * count);
  s.rows.resize(count);
  for (std::size_t y = 0; y < count; ++y) s.rows[y] = buffer.data() + y * stride;
  const auto end = static_cast<JDIMENSION>(bottom), begin = static_cast<JDIMENSION>(top);
  while (s.info.output_scanline < end) {
    const JDIMENSION done = s.info.output_scanline - begin;
    jpeg_read_scanlines(&s.info, s.rows.data() + done, end - s.info.output_scanline);
  }
  if (inks) {
    for (std::size_t y = 0; y < count; ++y) {
      cmyk_to_rgb(s.rows[y], static_cast<int>(s.info.output_width));
    }
  }
  s.result = {.pixels = {.data = buffer.data(),
                         .stride = stride,
                         .width = static_cast<int>(s.info.output_width),
                         .height = static_cast<int>(count)},
              .x = static_cast<int>(first_column),
              .y = static_cast<int>(top),
              .eighths = eighths};
  if (bottom == height) {
    jpeg_finish_decompress(&s.info);
  } else {
    jpeg_abort_decompress(&s.info);
  }
  return s.result;
}

bool JpegReader::usual() const {
  const jpeg_decompress_struct& info = state_->info;
  if (info.progressive_mode || info.arith_code || info.data_precision != 8) return false;
  if (info.comps_in_scan != info.num_components) return false;
  if (info.jpeg_color_space == JCS_GRAYSCALE) return info.num_components == 1;
  if (info.jpeg_color_space != JCS_YCbCr || info.num_components != 3) return false;
  const jpeg_component_info& light = info.comp_info[0];
  for (int c = 1; c < 3; ++c) {
    const jpeg_component_info& colour = info.comp_info[c];
    if (colour.h_samp_factor != 1 || colour.v_samp_factor != 1) return false;
  }
  const bool known = (light.h_samp_factor == 1 && light.v_samp_factor == 1) ||
                     (light.h_samp_factor == 2 && light.v_samp_factor <= 2);
  // Narrower colours are not smoothed.
  return known && info.image_width > 4;
}

// The same area as in decode(), so that positions in it are the same numbers.
void JpegReader::lay_out(const PixelArea& area, JpegBlocks& blocks) const {
  const jpeg_decompress_struct& info = state_->info;
  const bool grey = info.num_components == 1;
  const int across = grey ? 1 : info.comp_info[0].h_samp_factor;
  const int down = grey ? 1 : info.comp_info[0].v_samp_factor;
  const int wide = kBlockSide * across;
  blocks.x = std::max(0, area.x - kMargin) / wide * wide;
  blocks.y = std::max(0, area.y - kMargin);
  blocks.width = area.x + area.width - blocks.x;
  blocks.height = area.y + area.height - blocks.y;
  blocks.channels = info.num_components;
  std::int32_t count = 0;
  for (int c = 0; c < blocks.channels; ++c) {
    BlockChannel& channel = blocks.channel[static_cast<std::size_t>(c)];
    channel = {};
    channel.shift_x = c > 0 ? across - 1 : 0;
    channel.shift_y = c > 0 ? down - 1 : 0;
    channel.samples_x = samples_along(info.image_width, channel.shift_x);
    channel.samples_y = samples_along(info.image_height, channel.shift_y);
    blocks_along(blocks.x, blocks.width, channel.shift_x, channel.samples_x, channel.first_x,
                 channel.columns);
    blocks_along(blocks.y, blocks.height, channel.shift_y, channel.samples_y, channel.first_y,
                 channel.rows);
    channel.first_block = count;
    count += channel.columns * channel.rows;
  }
  blocks.starts.resize(static_cast<std::size_t>(count));
}

bool JpegReader::read_blocks(const PixelArea& area, JpegBlocks& blocks) {
  State& s = *state_;
  lay_out(area, blocks);
  std::array<ScanChannel, 3> scan;
  for (std::size_t c = 0; c < static_cast<std::size_t>(blocks.channels); ++c) {
    const jpeg_component_info& component = s.info.comp_info[c];
    const auto none = [](int number, int tables) { return number < 0 || number >= tables; };
    if (none(component.quant_tbl_no, NUM_QUANT_TBLS) || none(component.dc_tbl_no, NUM_HUFF_TBLS) ||
        none(component.ac_tbl_no, NUM_HUFF_TBLS)) {
      return false;
    }
    const JQUANT_TBL* quantisation = s.info.quant_tbl_ptrs[component.quant_tbl_no];
    const JHUFF_TBL* dc = s.info.dc_huff_tbl_ptrs[component.dc_tbl_no];
    const JHUFF_TBL* ac = s.info.ac_huff_tbl_ptrs[component.ac_tbl_no];
    if (quantisation == nullptr || dc == nullptr || ac == nullptr) return false;
    HuffmanTable &dc_table = s.tables[2 * c], &ac_table = s.tables[2 * c + 1];
    if (!dc_table.set(dc->bits + 1, dc->huffval, 15) ||
        !ac_table.set(ac->bits + 1, ac->huffval, 255)) {
      return false;
    }
    std::copy_n(quantisation->quantval, kBlockPixels, blocks.channel[c].quantisation);
    scan[c] = {.dc = &dc_table, .ac = &ac_table};
    if (blocks.channels == 1) continue;
    scan[c].across = component.h_samp_factor;
    scan[c].down = component.v_samp_factor;
  }
  return read_scan({scan.data(), static_cast<std::size_t>(blocks.channels)}, blocks);
}

// Unit by unit, each of all channels, as far down as blocks are needed.
bool JpegReader::read_scan(std::span<ScanChannel> scan, JpegBlocks& blocks) {
  const jpeg_decompress_struct& info = state_->info;
  ScanDecoder decoder({info.src->next_input_byte, info.src->bytes_in_buffer}, state_->scan);
  const BlockChannel& light = blocks.channel[0];
  const int units_across = units_along(light.samples_x, scan[0].across);
  // decode() reads a margin and looks a unit ahead: what it would find fault with is found here
  // too.
  const int units_down =
      std::min(units_along(light.samples_y, scan[0].down),
               units_along(blocks.y + blocks.height + kMargin, scan[0].down) + 1);
  std::size_t used = 0;
  unsigned units = 0;
  for (int unit_y = 0; unit_y < units_down; ++unit_y) {
    for (int unit_x = 0; unit_x < units_across; ++unit_x, ++units) {
      if (info.restart_interval > 0 && units > 0 && units % info.restart_interval == 0) {
        if (!decoder.restart(static_cast<int>((units / info.restart_interval - 1) % 8))) {
          return false;
        }
        for (ScanChannel& channel : scan) channel.predicted = 0;
      }
      for (std::size_t c = 0; c < scan.size(); ++c) {
        ScanChannel& coding = scan[c];
        const BlockChannel& channel = blocks.channel[c];
        for (int i = 0; i < coding.across * coding.down; ++i) {
          const int x = unit_x * coding.across + i % coding.across - channel.first_x;
          const int y = unit_y * coding.down + i / coding.across - channel.first_y;
          const bool needed = x >= 0 && x < channel.columns && y >= 0 && y < channel.rows;
          if (blocks.coefficients.size() < used + kBlockPixels) {
            blocks.coefficients.resize(2 * used + kBlockPixels);
          }
          const int count = decoder.block(*coding.dc, *coding.ac, coding.predicted,
                                          blocks.coefficients.data() + used);
          const std::int64_t mean = std::int64_t{coding.predicted} * channel.quantisation[0];
          if (count < 0 || mean < -kMostMean || mean > kMostMean) return false;
          if (!needed) continue;
          blocks.starts[static_cast<std::size_t>(channel.first_block + y * channel.columns + x)] =
              block_start(used, count);
          used += static_cast<std::size_t>(count);
        }
      }
    }
  }
  blocks.coefficient_count = used;
  return decoder.ends_with_marker();
}

}  // namespace ridgeline
