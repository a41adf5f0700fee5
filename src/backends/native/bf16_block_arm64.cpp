#include "backends/native/bf16_block.h"
#include "base/error.h"

namespace ridgeline::native::bf16 {
namespace {

[[noreturn]] void no_unit() { fail("{}", refuse_bf16()); }

}  // namespace

// Never called: problems in bf16 are refused where there is no unit.
UnitScope::UnitScope(Bf16Unit unit) : unit_(unit) {}
UnitScope::~UnitScope() = default;
void multiply_block(Bf16Unit, const BlockCall&) { no_unit(); }
void store_block(const StoreCall&) { no_unit(); }
void pack_rows(const BFloat16* const*, std::int64_t, std::int64_t, BFloat16*) { no_unit(); }
void pack_columns(const BFloat16* const*, std::int64_t, BFloat16*) { no_unit(); }
void transpose_rows(const BFloat16* const*, std::int64_t, std::int64_t, BFloat16*, std::int64_t) {
  no_unit();
}
void transpose_sums(const float*, int, std::int64_t, BFloat16*, std::int64_t) { no_unit(); }
void copy_elements(const BFloat16*, std::int64_t, BFloat16*) { no_unit(); }
void clear_elements(BFloat16*, std::int64_t) { no_unit(); }

}  // namespace ridgeline::native::bf16
