/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clocks for KUnit that stand still unless a test moves them. No hrtimer is
 * armed: the test runs the passes that it would run.
 */
#ifndef KUNIT_FAKE_CLOCK_H
#define KUNIT_FAKE_CLOCK_H

#include <kunit/test.h>
#include <linux/time64.h>

#include "spot_engine.h"

#define MS		((s64)NSEC_PER_MSEC)

/**
 * struct fake_clock - the clocks of a test, the first thing in its private data
 * @now: the time, on clocks that are not set
 * @wall: how far CLOCK_REALTIME is ahead of that
 * @step: how far it goes on each time that somebody looks
 * @armed: when the hrtimers of CPU 0 would fire
 */
struct fake_clock {
	s64 now;
	s64 wall;
	s64 step;
	s64 armed[SPOT_NR_CLOCKS];
};

void fake_clock_stay(struct kunit *test);
void fake_clock_init(struct kunit *test, struct fake_clock *clock);
void fake_clock_exit(struct kunit *test);
enum spot_clock fake_clock_next(struct fake_clock *clock, s64 *time);
void fake_clock_advance(struct fake_clock *clock, s64 time);

#endif /* KUNIT_FAKE_CLOCK_H */
