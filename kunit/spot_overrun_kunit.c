// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the overrun arithmetic. Each is named after the clause of the
 * contract that it proves.
 */
#include <kunit/test.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/prandom.h>
#include <linux/time64.h>

#include "../spot_overrun.h"

#define MS		((s64)NSEC_PER_MSEC)
#define SEC		((s64)NSEC_PER_SEC)
#define YEARS_100	(100LL * 365 * 86400 * NSEC_PER_SEC)

struct overrun_test {
	struct spot_overrun o;
	s64 due;
	u64 delivered;
};

/* ---- helpers ---- */

static void begin(struct kunit *test, s64 first, u64 period, u32 max)
{
	struct overrun_test *t = test->priv;

	spot_overrun_init(&t->o, period, max);
	t->due = first;
	t->delivered = 0;
}

static void take(struct kunit *test, s64 now, struct spot_tick *tick)
{
	struct overrun_test *t = test->priv;

	KUNIT_ASSERT_LE(test, t->due, now);
	spot_overrun_take(&t->o, &t->due, now, tick);
	/* C2: without a gap */
	KUNIT_EXPECT_EQ(test, tick->delivery_index, ++t->delivered);
}

/* A record taken at @now is for tick @scheduled, after @skipped others. */
static void takes(struct kunit *test, s64 now, u64 scheduled, u64 skipped)
{
	struct spot_tick tick;

	take(test, now, &tick);
	KUNIT_EXPECT_EQ(test, tick.scheduled_index, scheduled);
	KUNIT_EXPECT_EQ(test, tick.skipped_ticks, skipped);
}

static void completes(struct kunit *test, s64 now)
{
	struct overrun_test *t = test->priv;

	spot_overrun_complete(&t->o, &t->due, now);
}

static void skips(struct kunit *test, s64 until, bool left)
{
	struct overrun_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, spot_overrun_skip(&t->o, &t->due, until), left);
}

static void expect_due(struct kunit *test, s64 due)
{
	struct overrun_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, t->due, due);
}

/* ---- C: tick records ---- */

static const u32 policies[] = { SPOT_DELAY_NEXT, SPOT_SKIP_LATE, 2, 5, INT_MAX };

static void c2_c3_c4_hold_for_any_delay(struct kunit *test)
{
	struct rnd_state rnd;
	struct spot_tick tick;
	int i, n;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		struct overrun_test *t = test->priv;
		u64 last = 0;

		begin(test, 10, 10, policies[i]);
		for (n = 1; n <= 1000; n++) {
			s64 now = t->due + prandom_u32_state(&rnd) % 70;

			take(test, now, &tick);
			KUNIT_EXPECT_GT(test, tick.scheduled_index, last);
			KUNIT_EXPECT_GE(test, tick.scheduled_index,
					tick.delivery_index);
			KUNIT_EXPECT_EQ(test, tick.skipped_ticks,
					tick.scheduled_index - last - 1);
			last = tick.scheduled_index;
			completes(test, now + prandom_u32_state(&rnd) % 70);
		}
	}
}

static void c5_case21_no_drift(struct kunit *test)
{
	struct overrun_test *t = test->priv;
	const s64 first = 1234567, period = 1500001;
	struct rnd_state rnd;
	struct spot_tick tick;
	int i;

	prandom_seed_state(&rnd, 21);
	begin(test, first, period, SPOT_SKIP_LATE);
	for (i = 0; i < 10000; i++) {
		s64 now = t->due + prandom_u32_state(&rnd) % (3 * period);
		s64 nominal;

		take(test, now, &tick);
		nominal = first + (s64)(tick.scheduled_index - 1) * period;
		/* the newest one that is due */
		KUNIT_EXPECT_LE(test, nominal, now);
		KUNIT_EXPECT_GT(test, nominal + period, now);
		expect_due(test, nominal + period);
	}
}

/* A period of 300 from 0, taken at 1, (101,) 301 and 951 */
static void c5_d2_case16_phase_is_kept(struct kunit *test)
{
	begin(test, 0, 300, SPOT_SKIP_LATE);
	takes(test, 1, 1, 0);
	expect_due(test, 300);	/* nothing to take at 101 */
	takes(test, 301, 2, 0);
	takes(test, 951, 4, 1);
	expect_due(test, 1200);
}

static void c3_one_tick_only(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		begin(test, 10, 0, policies[i]);
		skips(test, 9, true);
		takes(test, 1000, 1, 0);
		skips(test, 1000, false);

		begin(test, 10, 0, policies[i]);
		skips(test, 10, false);
	}
}

/* ---- D: overrun ---- */

/* Period 10 ms, first due at 10: taken at 10, completed at 47. */
static void begin_d2(struct kunit *test, u32 max)
{
	begin(test, 10 * MS, 10 * MS, max);
	takes(test, 10 * MS, 1, 0);
	completes(test, 47 * MS);
}

static void d2_skip_late_figures(struct kunit *test)
{
	begin_d2(test, SPOT_SKIP_LATE);
	takes(test, 47 * MS, 4, 2);
	expect_due(test, 50 * MS);
}

/* A tick that falls due at this very moment is due. */
static void d2_d3_due_this_moment(struct kunit *test)
{
	begin(test, 10, 10, SPOT_SKIP_LATE);
	takes(test, 19, 1, 0);
	takes(test, 30, 3, 1);
	expect_due(test, 40);

	begin(test, 10, 10, 5);
	takes(test, 20, 1, 0);
	expect_due(test, 20);
	takes(test, 20, 2, 0);
}

static void d3_catch_up_figures(struct kunit *test)
{
	begin_d2(test, 2);
	takes(test, 47 * MS, 3, 1);
	expect_due(test, 40 * MS);
	takes(test, 47 * MS, 4, 0);
	expect_due(test, 50 * MS);
}

/* It covers what was due when it opened, not what comes due meanwhile. */
static void d3_catch_up_ends(struct kunit *test)
{
	begin(test, 10, 10, 3);
	takes(test, 10, 1, 0);
	takes(test, 65, 4, 2);	/* 2 to 6 are due: 4, 5, 6 */
	takes(test, 85, 5, 0);
	takes(test, 95, 6, 0);
	takes(test, 105, 8, 1);	/* 7 to 10 are due: 8, 9, 10 */
	takes(test, 105, 9, 0);
	takes(test, 109, 10, 0);
	expect_due(test, 110);
}

static void d3_catch_up_of_any_size(struct kunit *test)
{
	u64 max, missed, i;

	for (max = 1; max < 12; max++) {
		for (missed = 1; missed < 25; missed++) {
			u64 skipped = missed > max ? missed - max : 0;
			s64 now = 7 + 7 * missed + 6;

			begin(test, 7, 7, max);
			takes(test, 7, 1, 0);
			for (i = 2 + skipped; i < 2 + missed; i++) {
				takes(test, now, i, skipped);
				skipped = 0;
			}
			expect_due(test, now + 1);
		}
	}
}

static void d4_delay_next_figures(struct kunit *test)
{
	begin_d2(test, SPOT_DELAY_NEXT);
	expect_due(test, 57 * MS);
	takes(test, 57 * MS, 2, 0);
}

/* A period of 1 s, a stall of 10 s */
static void d2_case15_skip_late_after_a_stall(struct kunit *test)
{
	begin(test, SEC, SEC, SPOT_SKIP_LATE);
	takes(test, SEC, 1, 0);
	takes(test, 11 * SEC, 11, 9);
	expect_due(test, 12 * SEC);

	begin(test, SEC, SEC, SPOT_SKIP_LATE);
	takes(test, SEC + SEC / 2, 1, 0);
	takes(test, 12 * SEC, 12, 10);
	expect_due(test, 13 * SEC);
}

static void d3_case15_catch_up_after_a_stall(struct kunit *test)
{
	begin(test, SEC, SEC, 3);
	takes(test, SEC, 1, 0);
	takes(test, 11 * SEC, 9, 7);
	takes(test, 11 * SEC, 10, 0);
	takes(test, 11 * SEC, 11, 0);
	expect_due(test, 12 * SEC);
}

static void d4_case15_delay_next_after_a_stall(struct kunit *test)
{
	begin(test, SEC, SEC, SPOT_DELAY_NEXT);
	takes(test, SEC, 1, 0);
	completes(test, SEC);
	takes(test, 11 * SEC, 2, 0);
	completes(test, 11 * SEC);
	expect_due(test, 12 * SEC);
}

static void d5_d6_years_of_nanoseconds(struct kunit *test)
{
	const u64 newest = YEARS_100 + 1;

	begin(test, 0, 1, SPOT_SKIP_LATE);
	takes(test, YEARS_100, newest, newest - 1);
	expect_due(test, YEARS_100 + 1);

	begin(test, 0, 1, INT_MAX);
	takes(test, YEARS_100, newest - INT_MAX + 1, newest - INT_MAX);
	takes(test, YEARS_100, newest - INT_MAX + 2, 0);
	skips(test, YEARS_100, true);
	expect_due(test, YEARS_100 + 1);

	begin(test, 0, 1, SPOT_DELAY_NEXT);
	takes(test, YEARS_100, 1, 0);
	completes(test, YEARS_100);
	expect_due(test, YEARS_100 + 1);
}

static void d6_end_of_ktime(struct kunit *test)
{
	begin(test, 0, 1, SPOT_SKIP_LATE);
	takes(test, KTIME_MAX, 1ULL << 63, KTIME_MAX);
	expect_due(test, KTIME_MAX);

	begin(test, 0, 1, SPOT_SKIP_LATE);
	skips(test, KTIME_MAX - 1, true);
	expect_due(test, KTIME_MAX);

	begin(test, KTIME_MAX, KTIME_MAX, 2);
	takes(test, KTIME_MAX, 1, 0);
	expect_due(test, KTIME_MAX);
}

static void d6_longest_period(struct kunit *test)
{
	begin(test, 0, S64_MAX, SPOT_SKIP_LATE);
	takes(test, KTIME_MAX - 1, 1, 0);
	expect_due(test, KTIME_MAX);
	takes(test, KTIME_MAX, 2, 0);

	begin(test, 5, S64_MAX, SPOT_DELAY_NEXT);
	takes(test, 7, 1, 0);
	completes(test, KTIME_MAX);
	expect_due(test, KTIME_MAX);
}

/* ---- passing ticks over, as a lost lease does ---- */

static void g4_skip_passes_over(struct kunit *test)
{
	begin(test, 10, 10, SPOT_SKIP_LATE);
	skips(test, 9, true);
	expect_due(test, 10);
	skips(test, 10, true);
	expect_due(test, 20);
	skips(test, 59, true);
	expect_due(test, 60);
	takes(test, 60, 6, 5);
}

static void g4_skip_ends_a_catch_up(struct kunit *test)
{
	begin(test, 10, 10, 5);
	takes(test, 48, 1, 0);
	skips(test, 48, true);
	expect_due(test, 50);
	takes(test, 120, 8, 6);	/* 5 to 12 are due, all of them anew */
	takes(test, 120, 9, 0);
}

static void g4_skip_delays_delay_next(struct kunit *test)
{
	begin(test, 10, 10, SPOT_DELAY_NEXT);
	takes(test, 10, 1, 0);
	completes(test, 12);
	skips(test, 21, true);
	expect_due(test, 22);
	skips(test, 47, true);
	expect_due(test, 57);
	takes(test, 57, 2, 0);
}

/* ---- the suite ---- */

static int overrun_test_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct overrun_test), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static struct kunit_case overrun_test_cases[] = {
	KUNIT_CASE(c2_c3_c4_hold_for_any_delay),
	KUNIT_CASE(c3_one_tick_only),
	KUNIT_CASE(c5_case21_no_drift),
	KUNIT_CASE(c5_d2_case16_phase_is_kept),
	KUNIT_CASE(d2_skip_late_figures),
	KUNIT_CASE(d2_case15_skip_late_after_a_stall),
	KUNIT_CASE(d2_d3_due_this_moment),
	KUNIT_CASE(d3_catch_up_figures),
	KUNIT_CASE(d3_catch_up_ends),
	KUNIT_CASE(d3_catch_up_of_any_size),
	KUNIT_CASE(d3_case15_catch_up_after_a_stall),
	KUNIT_CASE(d4_delay_next_figures),
	KUNIT_CASE(d4_case15_delay_next_after_a_stall),
	KUNIT_CASE(d5_d6_years_of_nanoseconds),
	KUNIT_CASE(d6_end_of_ktime),
	KUNIT_CASE(d6_longest_period),
	KUNIT_CASE(g4_skip_passes_over),
	KUNIT_CASE(g4_skip_ends_a_catch_up),
	KUNIT_CASE(g4_skip_delays_delay_next),
	{}
};

static struct kunit_suite overrun_test_suite = {
	.name = "spot_overrun",
	.init = overrun_test_init,
	.test_cases = overrun_test_cases,
};

kunit_test_suite(overrun_test_suite);
