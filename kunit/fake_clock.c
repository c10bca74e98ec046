// SPDX-License-Identifier: GPL-2.0
/*
 * Clocks for KUnit that stand still unless a test moves them.
 *
 * The tests stay on CPU 0, whose wheels therefore see time only go on from test to
 * test, whichever suite it is of. What runs elsewhere has the real clocks.
 */
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/sched.h>

#include "fake_clock.h"

static s64 fake_time = 1000 * (s64)NSEC_PER_SEC;

static s64 fake_clock_now(enum spot_clock clock)
{
	struct fake_clock *c = kunit_get_current_test()->priv;

	c->now += c->step;
	return clock == SPOT_REALTIME ? c->now + c->wall : c->now;
}

static void fake_base_arm(struct spot_base *base, s64 time)
{
	struct fake_clock *c = kunit_get_current_test()->priv;

	/* a test may look on from another CPU for a while */
	if (base->cpu->nr == 0)
		c->armed[base->clock] = time;
}

/* A test may be run in another thread than its beginning and its end. */
void fake_clock_stay(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
}

void fake_clock_init(struct kunit *test, struct fake_clock *c)
{
	unsigned int clock;

	fake_clock_stay(test);
	/* each test begins with a wheel tick */
	c->now = roundup(fake_time, MS);
	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
		c->armed[clock] = KTIME_MAX;
	test->priv = c;
	kunit_activate_static_stub(test, spot_clock_now, fake_clock_now);
	kunit_activate_static_stub(test, spot_base_arm, fake_base_arm);
}

void fake_clock_exit(struct kunit *test)
{
	struct fake_clock *c = test->priv;

	fake_clock_stay(test);
	if (!c)
		return;
	/* wakes that are still armed come to nothing */
	fake_clock_advance(c, c->now + 86400 * (s64)NSEC_PER_SEC);
	fake_time = c->now;
}

/* The clock that has the next pass, and when that is on those that are not set. */
enum spot_clock fake_clock_next(struct fake_clock *c, s64 *time)
{
	unsigned int clock, first = 0;

	*time = KTIME_MAX;
	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++) {
		s64 at = c->armed[clock];

		if (clock == SPOT_REALTIME && at != KTIME_MAX)
			at -= c->wall;
		if (at < *time) {
			*time = at;
			first = clock;
		}
	}
	return first;
}

/* Run the passes that are armed, up to @time; it is @time then. */
void fake_clock_advance(struct fake_clock *c, s64 time)
{
	for (;;) {
		s64 next;
		enum spot_clock clock = fake_clock_next(c, &next);

		if (next > time)
			break;
		c->now = max(c->now, next);
		c->armed[clock] = KTIME_MAX;
		local_bh_disable();
		spot_base_pass(spot_base_here(clock));
		local_bh_enable();
	}
	c->now = max(c->now, time);
}
