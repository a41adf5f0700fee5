// A processor that reports a unit and refuses its instructions is told so, and does not end the
// program.

#include "base/bf16_unit.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/try_instruction.h"

namespace ridgeline {
namespace {

// What no processor knows.
float illegal() {
#if defined(__x86_64__)
  __asm__ volatile("ud2");
#else
  __asm__ volatile(".inst 0");
#endif
  return 3.0F;
}
float three() { return 3.0F; }

TEST(TryInstruction, TellsRefusalsAndWrongResults) {
  EXPECT_EQ(try_instruction(illegal, 3.0F), Trial::refused);
  EXPECT_EQ(try_instruction(three, 3.0F), Trial::right);
  EXPECT_EQ(try_instruction(three, 4.0F), Trial::wrong);
  EXPECT_EQ(try_instruction(illegal, 3.0F), Trial::refused) << "the second time as the first";
}

TEST(TryInstructionDeathTest, LeavesOtherIllegalInstructionsToTheSystem) {
  EXPECT_EQ(try_instruction(illegal, 3.0F), Trial::refused);
  EXPECT_EXIT((void)illegal(), ::testing::KilledBySignal(SIGILL), "");
}

TEST(Bf16Units, OnesThatFailAreNamedAndNotUsed) {
  using enum UnitState;
  EXPECT_EQ(best_of({absent, absent}), Bf16Unit::none);
  EXPECT_EQ(best_of({works, absent}), Bf16Unit::avx512);
  EXPECT_EQ(best_of({works, refused}), Bf16Unit::avx512);
  EXPECT_EQ(best_of({works, works}), Bf16Unit::amx);
  EXPECT_EQ(best_of({refused, absent}), Bf16Unit::none);
  EXPECT_EQ(trouble_of({absent, absent}), "");
  EXPECT_EQ(trouble_of({works, works}), "");
  EXPECT_EQ(trouble_of({works, refused}),
            "the processor reports AMX, but refuses its instructions");
  EXPECT_EQ(trouble_of({wrong, absent}),
            "the processor reports AVX512-BF16, but its results are wrong");
}

}  // namespace
}  // namespace ridgeline
