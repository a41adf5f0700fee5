// Summaries, intervals, labels of series and steadiness. Known answers are NumPy's and SciPy's
// or tables'; coverage is checked on simulated series whose true median is known.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "analysis/stats/bootstrap.h"
#include "analysis/stats/distributions.h"
#include "analysis/stats/series.h"
#include "analysis/stats/steadiness.h"
#include "analysis/stats/summary.h"
#include "analysis/stats/trend.h"
#include "base/error.h"
#include "base/philox.h"

namespace ridgeline {
namespace {

const std::vector<double> kTen = {2.5, 0.3, 9.75, 4.0, 4.0, 1.25, 7.5, 3.0, 6.0, 100.0};

TEST(Summary, AgreesWithNumpy) {
  const Summary summary = summarise(kTen);
  EXPECT_EQ(summary.count, 10);
  EXPECT_DOUBLE_EQ(summary.median, 4.0);
  EXPECT_DOUBLE_EQ(summary.mean, 13.83);
  EXPECT_NEAR(summary.deviation, 30.411120042218474, 1e-12);  // ddof=1
  EXPECT_EQ(summary.min, 0.3);
  EXPECT_EQ(summary.max, 100.0);
  EXPECT_DOUBLE_EQ(summary.mad, 2.375);
}

TEST(Summary, OneSampleHasNoDeviation) {
  const Summary summary = summarise(std::vector<double>{3.0});
  EXPECT_EQ(summary.median, 3.0);
  EXPECT_EQ(summary.deviation, 0.0);
  EXPECT_EQ(percentile(std::vector<double>{3.0}, 99.0), 3.0);
}

TEST(Summary, PercentilesAgreeWithNumpy) {
  EXPECT_DOUBLE_EQ(percentile(kTen, 0.0), 0.3);
  EXPECT_DOUBLE_EQ(percentile(kTen, 5.0), 0.7275);
  EXPECT_DOUBLE_EQ(percentile(kTen, 25.0), 2.625);
  EXPECT_DOUBLE_EQ(percentile(kTen, 50.0), 4.0);
  EXPECT_DOUBLE_EQ(percentile(kTen, 90.0), 18.77499999999997);
  EXPECT_DOUBLE_EQ(percentile(kTen, 99.0), 91.87750000000001);
  EXPECT_DOUBLE_EQ(percentile(kTen, 100.0), 100.0);
}

TEST(Summary, NothingIsRefused) {
  EXPECT_THROW((void)summarise({}), Error);
  EXPECT_THROW((void)median_of({}), Error);
  EXPECT_THROW((void)percentile({}, 50.0), Error);
  EXPECT_THROW((void)percentile(kTen, 101.0), Error);
  EXPECT_THROW((void)block_bootstrap({}, {}), Error);
}

TEST(Distributions, QuantilesAgreeWithTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.005), -2.575829303548901, 1e-12);
  EXPECT_EQ(normal_quantile(0.5), 0.0);
  EXPECT_NEAR(student_quantile(0.975, 1.0), 12.706204736432102, 1e-8);
  EXPECT_NEAR(student_quantile(0.975, 9.0), 2.2621571627409915, 1e-9);
  EXPECT_NEAR(student_quantile(0.995, 4.0), 4.604094871415897, 1e-9);
  EXPECT_NEAR(student_quantile(0.025, 30.0), -2.0422724563012373, 1e-9);
  EXPECT_NEAR(student_quantile(0.975, std::numeric_limits<double>::infinity()), 1.959963984540054,
              1e-12);
  // Halves need no table: for 2 degrees t = (2p - 1) / sqrt(2 p (1 - p)).
  EXPECT_NEAR(student_quantile(0.9, 2.0), 0.8 / std::sqrt(0.18), 1e-9);
}

TEST(Distributions, HypergeometricTailIsExact) {
  // All five aces-like things among five drawn out of 100: 1 / C(100, 5).
  EXPECT_NEAR(hypergeometric_tail(100, 5, 5, 5) * 75287520.0, 1.0, 1e-9);
  // At least one of 4 marked in 5 of 52: 1 - C(48,5)/C(52,5).
  EXPECT_NEAR(hypergeometric_tail(52, 4, 5, 1), 1.0 - 1712304.0 / 2598960.0, 1e-12);
  EXPECT_NEAR(hypergeometric_tail(52, 4, 5, 0), 1.0, 1e-12);
  EXPECT_EQ(hypergeometric_tail(52, 4, 5, 5), 0.0);
}

// An autoregressive series around 1 with block effects, 2% deviation each.
struct Simulated {
  std::vector<double> samples;
  std::vector<std::int64_t> block;
};
struct SimulatedKind {
  int blocks, per_block;
  double correlation, block_effect;
};
Simulated simulate(const SimulatedKind& kind, std::uint64_t trial) {
  PhiloxSequence random(11, RandomStream::synthetic, trial);
  Simulated series;
  double state = random.normal();
  for (int b = 0; b < kind.blocks; ++b) {
    const double effect = kind.block_effect * random.normal();
    for (int i = 0; i < kind.per_block; ++i) {
      state = kind.correlation * state +
              std::sqrt(1.0 - kind.correlation * kind.correlation) * random.normal();
      series.samples.push_back(std::exp(0.02 * (state + effect)));
      series.block.push_back(b);
    }
  }
  return series;
}

TEST(Bootstrap, ResampledMediansAreExact) {
  // Every unit's multiplicity against the median of the multiset written out.
  const Simulated series = simulate({7, 91, 0.3, 1.0}, 3);
  UnitLabels labels;
  for (const std::int64_t block : series.block) {
    labels.unit.push_back(static_cast<std::int32_t>(block));
  }
  labels.count = 7;
  const MedianResampler resampler(series.samples, labels);
  std::vector<std::int32_t> times(7);
  for (std::uint64_t replicate = 0; replicate < 50; ++replicate) {
    UnitDraw(replicate).draw(times);
    std::int32_t drawn = 0;
    std::vector<double> written_out;
    for (const std::int32_t t : times) drawn += t;
    EXPECT_EQ(drawn, 7);
    for (std::size_t i = 0; i < series.samples.size(); ++i) {
      const auto unit = static_cast<std::size_t>(labels.unit[i]);
      written_out.insert(written_out.end(), static_cast<std::size_t>(times[unit]),
                         series.samples[i]);
    }
    EXPECT_EQ(resampler.median(times), median_of(written_out));
  }
}

TEST(Bootstrap, SameSamplesSameInterval) {
  const Simulated series = simulate({12, 10, 0.5, 0.5}, 1);
  const MedianInterval once = block_bootstrap(series.samples, series.block);
  const MedianInterval again = block_bootstrap(series.samples, series.block);
  EXPECT_EQ(once.low, again.low);
  EXPECT_EQ(once.high, again.high);
  EXPECT_EQ(once.median, median_of(series.samples));
  EXPECT_LT(once.low, once.median);
  EXPECT_GT(once.high, once.median);
}

TEST(Bootstrap, CorrelationLengthIsThatOfTheSeries) {
  EXPECT_NEAR(correlation_length(simulate({1, 20000, 0.0, 0.0}, 2).samples), 1.0, 0.2);
  // Indicators of an autoregressive normal series: rho_k = 2 / pi asin(phi^k).
  double expected = 1.0;
  for (int k = 1; k < 200; ++k) {
    expected += 4.0 / std::acos(-1.0) * std::asin(std::pow(0.8, k));
  }
  EXPECT_NEAR(correlation_length(simulate({1, 20000, 0.8, 0.0}, 2).samples), expected,
              0.2 * expected);
}

TEST(Bootstrap, CoversTheTrueMedianOfCorrelatedSeries) {
  // With 200 trials 95% have a standard error of 1.5%; a bootstrap over single samples covers
  // about 60% of the last ones.
  for (const SimulatedKind& kind : {SimulatedKind{1, 10, 0.5, 0.0}, SimulatedKind{1, 20, 0.5, 0.0},
                                    SimulatedKind{2, 10, 0.3, 0.5}, SimulatedKind{1, 60, 0.0, 0.0},
                                    SimulatedKind{1, 200, 0.5, 0.0}, SimulatedKind{4, 25, 0.3, 0.5},
                                    SimulatedKind{6, 10, 0.5, 0.5}, SimulatedKind{10, 10, 0.5, 1.0},
                                    SimulatedKind{20, 10, 0.8, 0.0}}) {
    constexpr int kTrials = 200;
    int covered = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Simulated series = simulate(kind, static_cast<std::uint64_t>(trial));
      const MedianInterval interval = block_bootstrap(series.samples, series.block);
      covered += interval.low <= 1.0 && interval.high >= 1.0 ? 1 : 0;
    }
    EXPECT_GE(covered, 176) << kind.blocks << " blocks of " << kind.per_block << ", correlation "
                            << kind.correlation;
    EXPECT_LE(covered, 199);  // one that is always right is too wide
  }
}

TEST(Bootstrap, IntervalsShrinkWithTheSquareRootOfTheBlocks) {
  const auto width = [](int blocks) {
    double sum = 0.0;
    for (std::uint64_t trial = 0; trial < 20; ++trial) {
      const Simulated series = simulate({blocks, 10, 0.5, 0.5}, trial);
      const MedianInterval interval = block_bootstrap(series.samples, series.block);
      sum += interval.high - interval.low;
    }
    return sum;
  };
  EXPECT_NEAR(width(25) / width(100), 2.1, 0.4);  // 2, and Student's factor
}

TEST(Bootstrap, UnitsJoinAndCut) {
  const Simulated many = simulate({1000, 5, 0.0, 0.0}, 1);
  EXPECT_EQ(unit_labels(many.samples, many.block).count, 200);
  const Simulated ten = simulate({10, 10, 0.0, 0.0}, 1);
  EXPECT_EQ(unit_labels(ten.samples, ten.block).count, 10);
  const Simulated one = simulate({1, 100, 0.0, 0.0}, 1);
  EXPECT_GE(unit_labels(one.samples, one.block).count, 10);
  // Three blocks at three levels stay three.
  const Simulated levels = simulate({3, 20, 0.0, 10.0}, 1);
  EXPECT_EQ(unit_labels(levels.samples, levels.block).count, 3);
}

TEST(Bootstrap, FewSamplesGiveTheirRange) {
  const std::vector<double> three = {1.0, 3.0, 2.0};
  const MedianInterval interval = block_bootstrap(three, std::vector<std::int64_t>{0, 0, 0});
  EXPECT_EQ(interval.median, 2.0);
  EXPECT_EQ(interval.low, 1.0);
  EXPECT_EQ(interval.high, 3.0);
}

TEST(Bootstrap, FewSamplesNeverLeaveTheirRange) {
  for (std::uint64_t trial = 0; trial < 100; ++trial) {
    const Simulated series = simulate({1, 10, 0.3, 0.0}, trial);
    const MedianInterval interval = block_bootstrap(series.samples, series.block);
    const Summary summary = summarise(series.samples);
    EXPECT_GE(interval.low, summary.min);
    EXPECT_LE(interval.high, summary.max);
    EXPECT_LT(interval.low, interval.median);
    EXPECT_GT(interval.high, interval.median);
  }
}

TEST(Summary, NeighboursThatCountAsOneWidenTheInterval) {
  std::vector<double> samples;
  for (int i = 0; i < 40; ++i) samples.push_back(i);
  // Of 40 independent ones the 14th and the 27th, of 20 the 6th and the 15th, of 5 the first and
  // last.
  const auto ends = [&](double neighbours) {
    const MedianInterval interval = median_interval(samples, neighbours);
    return std::pair(interval.low, interval.high);
  };
  EXPECT_EQ(ends(1.0), std::pair(13.0, 26.0));
  EXPECT_EQ(ends(2.0), std::pair(10.0, 29.0));
  EXPECT_EQ(ends(8.0), std::pair(0.0, 39.0));
}

std::vector<double> noise(std::size_t count, std::uint64_t trial, double deviation = 0.03) {
  PhiloxSequence random(5, RandomStream::synthetic, trial);
  std::vector<double> samples;
  for (std::size_t i = 0; i < count; ++i) {
    samples.push_back(0.1 * std::exp(deviation * random.normal()));
  }
  return samples;
}

std::vector<Sample> as_samples(const std::vector<double>& seconds) {
  std::vector<Sample> samples;
  for (const double value : seconds) {
    Sample sample;
    sample.iteration = static_cast<std::int64_t>(samples.size());
    sample.wall_seconds = value;
    samples.push_back(sample);
  }
  return samples;
}

std::optional<Finding> named(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return finding;
  }
  return std::nullopt;
}

TEST(Series, EveryTenthSampleThatIsFasterIsFound) {
  // Study 3: without synchronisation every tenth row is 2.3 times "faster".
  std::vector<double> samples = noise(100, 1);
  for (std::size_t i = 9; i < samples.size(); i += 10) samples[i] /= 2.3;
  const auto pattern = find_period(samples);
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->period, 10);
  EXPECT_EQ(pattern->phase, 9);
  EXPECT_EQ(pattern->members, 10);
  EXPECT_NEAR(1.0 / pattern->ratio, 2.3, 0.1);
  EXPECT_LT(pattern->chance, 1e-9);
  const auto finding = named(series_findings(as_samples(samples)), "periodic samples");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->evidence.find("every 10th sample"), std::string::npos) << finding->evidence;
  EXPECT_NE(finding->evidence.find("times faster"), std::string::npos) << finding->evidence;
}

TEST(Series, TheBeginningOfSharedTurnsIsNoPeriod) {
  const std::vector<double> walls = noise(800, 3);
  const auto turns = [&](bool shared) {
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < walls.size(); ++i) {
      Sample sample;
      sample.block = static_cast<std::int64_t>(i / 20) + 1;
      sample.wall_seconds = walls[i];
      if (i % 20 == 0) {
        sample.kind = SampleKind::warmup;
        if (shared) samples.push_back(sample);
        sample.wall_seconds *= 1.2;  // caches that others have used
      }
      sample.kind = SampleKind::measured;
      samples.push_back(sample);
    }
    return samples;
  };
  EXPECT_FALSE(named(series_findings(turns(true)), "periodic samples"));
  EXPECT_TRUE(named(series_findings(turns(false)), "periodic samples"));
}

TEST(Series, SlowSamplesOfOtherPeriodsAreFound) {
  for (const std::int64_t period : {3, 7, 16, 20}) {
    std::vector<double> samples = noise(200, 2);
    for (std::size_t i = 1; i < samples.size(); i += static_cast<std::size_t>(period)) {
      samples[i] *= 1.3;
    }
    const auto pattern = find_period(samples);
    ASSERT_TRUE(pattern) << period;
    EXPECT_EQ(pattern->period, period);
    EXPECT_EQ(pattern->phase, 1);
    EXPECT_NEAR(pattern->ratio, 1.3, 0.05);
  }
}

TEST(Series, EverySecondSampleMayBeCalledFastOrSlow) {
  std::vector<double> samples = noise(60, 2);
  for (std::size_t i = 1; i < samples.size(); i += 2) samples[i] *= 1.3;
  const auto pattern = find_period(samples);
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->period, 2);
  EXPECT_NEAR(pattern->phase == 1 ? pattern->ratio : 1.0 / pattern->ratio, 1.3, 0.05);
}

TEST(Series, NoiseHasNoPeriod) {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    EXPECT_FALSE(find_period(noise(100, trial, 0.2))) << trial;
  }
  // Bursts and drifts are no periods either.
  for (std::uint64_t trial = 0; trial < 50; ++trial) {
    std::vector<double> samples = noise(300, trial, 0.02);
    for (std::size_t i = 40 + trial; i < 60 + trial; ++i) samples[i] *= 2.0;
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] *= 1.0 + 0.001 * double(i);
    EXPECT_FALSE(find_period(samples)) << trial;
  }
}

TEST(Series, OneOutlierIsNoPeriod) {
  std::vector<double> samples = noise(100, 3);
  samples[50] *= 20.0;
  EXPECT_FALSE(find_period(samples));
  EXPECT_FALSE(find_period(std::vector<double>(100, 1.0)));
}

TEST(Series, OutliersAreLabelledAndKept) {
  std::vector<double> samples = noise(100, 4, 0.01);
  samples[17] *= 1.1;
  samples[60] *= 5.0;
  const std::vector<Outlier> labels = label_outliers(samples);
  ASSERT_EQ(labels.size(), samples.size());
  EXPECT_EQ(labels[17], Outlier::far);
  EXPECT_EQ(labels[60], Outlier::very_far);
  EXPECT_EQ(std::count(labels.begin(), labels.end(), Outlier::none), 98);
  const auto finding = named(series_findings(as_samples(samples)), "outliers");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->evidence.find("2 of 100 samples"), std::string::npos) << finding->evidence;
}

TEST(Series, ACoarseClockMakesNoOutliers) {
  std::vector<double> samples(100, 1.0);
  samples[3] = 1.01;  // one tick
  samples[70] = 4.0;
  const std::vector<Outlier> labels = label_outliers(samples);
  EXPECT_EQ(labels[3], Outlier::none);
  EXPECT_EQ(labels[70], Outlier::very_far);
}

TEST(Series, DriftIsFoundAndNoiseIsNone) {
  std::vector<double> samples = noise(120, 6);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] *= 1.0 + 0.2 * double(i) / 120.0;
  const auto drift = find_drift(samples);
  ASSERT_TRUE(drift);
  EXPECT_NEAR(drift->change, 0.15 / 1.025, 0.03);  // between the middles of the outer quarters
  const auto finding = named(series_findings(as_samples(samples)), "drift");
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->evidence.find("slower"), std::string::npos);
  int false_alarms = 0;
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    false_alarms += find_drift(noise(100, trial, 0.2)) ? 1 : 0;
  }
  EXPECT_LE(false_alarms, 2);
  EXPECT_FALSE(find_drift(noise(10, 1)));
}

TEST(Series, LoaderStallsAndLoaderBoundAreTold) {
  std::vector<Sample> samples = as_samples(noise(100, 7));
  for (Sample& sample : samples) sample.data_wait_seconds = 0.0005;
  EXPECT_FALSE(named(series_findings(samples), "loader-bound"));
  EXPECT_FALSE(named(series_findings(samples), "loader stalls"));
  for (const std::size_t i : {20, 41, 77}) {
    samples[i].wall_seconds += 0.2;
    samples[i].data_wait_seconds = 0.2;
  }
  EXPECT_TRUE(named(series_findings(samples), "loader stalls"));
  for (Sample& sample : samples) sample.data_wait_seconds = 0.04;
  EXPECT_TRUE(named(series_findings(samples), "loader-bound"));
}

TEST(Series, WarmUpIsNoPartOfIt) {
  std::vector<Sample> samples = as_samples(noise(50, 8));
  for (std::size_t i = 0; i < 5; ++i) {
    samples[i].wall_seconds = 10.0;
    samples[i].kind = SampleKind::warmup;
  }
  EXPECT_TRUE(series_findings(samples).empty());
}

TEST(Steadiness, FallingTimesAreNotSteadyAndFlatOnesAre) {
  std::vector<double> seconds = {3.0, 0.4, 0.2, 0.15, 0.13, 0.12, 0.115, 0.11, 0.108, 0.107};
  EXPECT_FALSE(steady_end(seconds));
  for (int i = 0; i < 20; ++i) seconds.push_back(0.105 + 0.0001 * (i % 3));
  EXPECT_TRUE(steady_end(seconds));
}

TEST(Steadiness, NeedsTwoWindowsAfterTheFirstStep) {
  EXPECT_FALSE(steady_end({}));
  EXPECT_FALSE(steady_end(std::vector<double>(6, 1.0)));
  EXPECT_TRUE(steady_end(std::vector<double>{9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}));
}

TEST(Steadiness, NoisyStepsAreHeldAgainstTheirNoise) {
  int ended = 0;
  for (std::uint64_t trial = 0; trial < 50; ++trial) {
    ended += steady_end(noise(30, trial, 0.1)) ? 1 : 0;
  }
  EXPECT_GE(ended, 35);
  for (std::uint64_t trial = 0; trial < 50; ++trial) {
    std::vector<double> seconds = noise(30, trial, 0.01);
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] *= std::exp(-0.02 * double(i));
    EXPECT_FALSE(steady_end(seconds)) << trial;
  }
}

// Iterations until steady_end says so, asked after every second one; 0: never.
std::size_t steps_until_steady(const std::vector<double>& seconds) {
  for (std::size_t n = 20; n <= seconds.size(); n += 2) {
    if (steady_end(std::span(seconds).first(n))) return n;
  }
  return 0;
}

TEST(Steadiness, ASlowSlopeIsNotSteady) {
  // 0.1% from step to step: 1% from window to window, which no comparison of two windows sees.
  std::vector<double> rising;
  for (int i = 0; i < 200; ++i) rising.push_back(1.0 + 0.001 * i);
  EXPECT_EQ(steps_until_steady(rising), 0U);
  std::reverse(rising.begin(), rising.end());
  EXPECT_EQ(steps_until_steady(rising), 0U);
  // With noise no test can be sure every time, but it takes far longer than without a slope.
  int early = 0, early_flat = 0;
  for (std::uint64_t trial = 0; trial < 50; ++trial) {
    std::vector<double> sloped = noise(60, trial, 0.005);
    const std::size_t flat_end = steps_until_steady(sloped);
    early_flat += flat_end > 0 && flat_end <= 30 ? 1 : 0;
    for (std::size_t i = 0; i < sloped.size(); ++i) {
      sloped[i] *= 1.0 + 0.002 * static_cast<double>(i);
    }
    const std::size_t end = steps_until_steady(sloped);
    early += end > 0 && end <= 30 ? 1 : 0;
  }
  EXPECT_GE(early_flat, 45);
  EXPECT_LE(early, 10);
}

TEST(Steadiness, ADecayIsSteadyOnlyWhenItHasDied) {
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    std::vector<double> seconds = noise(200, trial, 0.005);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      seconds[i] *= 1.0 + 0.5 * std::exp(-static_cast<double>(i) / 15.0);
    }
    const std::size_t end = steps_until_steady(seconds);
    ASSERT_GT(end, 0U) << "it does end";
    EXPECT_LT(0.5 * std::exp(-static_cast<double>(end) / 15.0), 0.05) << end;
  }
}

TEST(Steadiness, AStepInTheWindowIsNotSteadyAndLaterOnesAreNoMatter) {
  std::vector<double> seconds = noise(60, 1, 0.005);
  for (std::size_t i = 50; i < 60; ++i) seconds[i] *= 1.1;
  EXPECT_FALSE(steady_end(seconds)) << "half of the last window is slower";
  // Throttling after a while: the warm-up has ended before, and must.
  std::vector<double> throttled = noise(200, 2, 0.005);
  for (std::size_t i = 100; i < 200; ++i) throttled[i] *= 1.3;
  const std::size_t end = steps_until_steady(throttled);
  EXPECT_GT(end, 0U);
  EXPECT_LE(end, 40U);
  EXPECT_TRUE(steady_end(throttled)) << "the slower speed is steady, too";
}

TEST(Trend, SlopeAndChance) {
  const Trend rising = trend_of(std::vector<double>{1.0, 2.0, 3.0, 40.0, 5.0, 6.0});
  EXPECT_DOUBLE_EQ(rising.slope, 1.0) << "an outlier does not bend it";
  EXPECT_EQ(rising.rises, 11.0);
  // S = 15 of 6 samples: 2 of 720 orders; the normal approximation says 0.0085.
  const Trend steep = trend_of(std::vector<double>{1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  EXPECT_NEAR(steep.chance, 0.0085, 0.0002);
  const Trend flat = trend_of(std::vector<double>{1.0, 1.0, 1.0});
  EXPECT_EQ(flat.slope, 0.0);
  EXPECT_EQ(flat.chance, 1.0);
}

TEST(BlockBootstrap, TimesNeverGetANegativeEnd) {
  const std::vector<double> seconds = {1.0, 1.1, 1.2, 9.0, 9.5, 10.0};
  const std::vector<std::int64_t> blocks = {0, 0, 0, 1, 1, 1};
  const MedianInterval interval = block_bootstrap(seconds, blocks);
  EXPECT_GT(interval.low, 0.0);
  EXPECT_LT(interval.low, 1.2);
  EXPECT_GT(interval.high, 9.0);
}

}  // namespace
}  // namespace ridgeline
