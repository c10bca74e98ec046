// SPDX-License-Identifier: GPL-2.0
/*
 * The overrun policies against a model that counts nominal ticks one by one,
 * the contract's own figures, and the ends of the range.
 */
#include <linux/limits.h>

#include "spot_overrun.h"
#include "tap.h"

#define MS		1000000LL
#define SEC		(1000 * MS)
#define YEARS_100	(100LL * 365 * 24 * 3600 * SEC)

/* the timer that the figures are about */
static struct spot_overrun timer;
static s64 due;

static void begin(s64 first, u64 period, u32 max)
{
	spot_overrun_init(&timer, period, max);
	due = first;
}

static void takes(s64 now, u64 delivery, u64 scheduled, u64 skipped)
{
	struct spot_tick tick;

	CHECK(due <= now);
	spot_overrun_take(&timer, &due, now, &tick);
	CHECK_EQ(tick.scheduled_index, scheduled);
	CHECK_EQ(tick.delivery_index, delivery);
	CHECK_EQ(tick.skipped_ticks, skipped);
}

static void completes(s64 now)
{
	spot_overrun_complete(&timer, &due, now);
}

/* ---- the contract's figures ---- */

/* Period 10, first due at 10, taken then, completed at 47. */
static void begin_d2(u32 max)
{
	begin(10 * MS, 10 * MS, max);
	takes(10 * MS, 1, 1, 0);
	completes(47 * MS);
}

static void skip_late_figures(void)
{
	begin_d2(SPOT_SKIP_LATE);
	takes(47 * MS, 2, 4, 2);
	CHECK_EQ(due, 50 * MS);
}

/* A tick that falls due at this very moment is due. */
static void due_this_moment(void)
{
	begin(10, 10, SPOT_SKIP_LATE);
	takes(19, 1, 1, 0);
	takes(30, 2, 3, 1);
	CHECK_EQ(due, 40);

	begin(10, 10, 5);
	takes(20, 1, 1, 0);
	CHECK_EQ(due, 20);
	takes(20, 2, 2, 0);
}

static void catch_up_figures(void)
{
	begin_d2(2);
	takes(47 * MS, 2, 3, 1);
	CHECK_EQ(due, 40 * MS);
	takes(47 * MS, 3, 4, 0);
	CHECK_EQ(due, 50 * MS);
}

static void delay_next_figures(void)
{
	begin_d2(SPOT_DELAY_NEXT);
	CHECK_EQ(due, 57 * MS);
	takes(57 * MS, 2, 2, 0);
}

/* A catch-up covers what was due when it opened, not what comes due in it. */
static void catch_up_ends(void)
{
	begin(10, 10, 3);
	takes(10, 1, 1, 0);
	takes(65, 2, 4, 2);	/* 2 to 6 are due: 4, 5, 6 */
	takes(85, 3, 5, 0);
	takes(95, 4, 6, 0);
	takes(105, 5, 8, 1);	/* 7 to 10 are due: 8, 9, 10 */
	takes(105, 6, 9, 0);
	takes(109, 7, 10, 0);
	CHECK_EQ(due, 110);
	takes(110, 8, 11, 0);
	takes(129, 9, 12, 0);
}

/* A period of 1 s, a stall of 10 s */
static void stall(void)
{
	begin(SEC, SEC, SPOT_SKIP_LATE);
	takes(SEC, 1, 1, 0);
	takes(11 * SEC, 2, 11, 9);
	CHECK_EQ(due, 12 * SEC);

	begin(SEC, SEC, SPOT_SKIP_LATE);
	takes(SEC + SEC / 2, 1, 1, 0);
	takes(12 * SEC, 2, 12, 10);

	begin(SEC, SEC, 3);
	takes(SEC, 1, 1, 0);
	takes(11 * SEC, 2, 9, 7);
	takes(11 * SEC, 3, 10, 0);
	takes(11 * SEC, 4, 11, 0);
	CHECK_EQ(due, 12 * SEC);

	begin(SEC, SEC, SPOT_DELAY_NEXT);
	takes(SEC, 1, 1, 0);
	completes(SEC);
	takes(11 * SEC, 2, 2, 0);
	completes(11 * SEC);
	CHECK_EQ(due, 12 * SEC);
}

/* A period of 300 from 0, taken at 1, (101,) 301 and 951 */
static void phase_is_kept(void)
{
	begin(0, 300, SPOT_SKIP_LATE);
	takes(1, 1, 1, 0);
	CHECK_EQ(due, 300);	/* nothing to take at 101 */
	takes(301, 2, 2, 0);
	CHECK_EQ(due, 600);
	takes(951, 3, 4, 1);
	CHECK_EQ(due, 1200);
}

static void no_drift(void)
{
	const s64 first = 1234567, period = 1500001;
	unsigned int i;
	u64 n = 1;

	rnd_state = 21;
	begin(first, period, SPOT_SKIP_LATE);
	for (i = 1; i <= 100000; i++) {
		s64 late = one_in(10) ? rnd_below(100 * MS) :
					rnd_below(period);
		u64 last = n;

		n += late / period;
		takes(due + late, i, n, i == 1 ? n - 1 : n - last);
		CHECK_EQ(due, first + (s64)n * period);
		n++;
	}
}

/* ---- passing ticks over ---- */

static void skip_passes_over(void)
{
	begin(10, 10, SPOT_SKIP_LATE);
	CHECK(spot_overrun_skip(&timer, &due, 9));
	CHECK_EQ(due, 10);
	CHECK(spot_overrun_skip(&timer, &due, 10));
	CHECK_EQ(due, 20);
	CHECK(spot_overrun_skip(&timer, &due, 59));
	CHECK_EQ(due, 60);
	takes(60, 1, 6, 5);

	/* what a catch-up had still to deliver is passed over, too */
	begin(10, 10, 5);
	takes(48, 1, 1, 0);
	CHECK(spot_overrun_skip(&timer, &due, 48));
	CHECK_EQ(due, 50);
	takes(120, 2, 8, 6);	/* 5 to 12 are due, all of them anew */
	takes(120, 3, 9, 0);

	begin(10, 10, SPOT_DELAY_NEXT);
	takes(10, 1, 1, 0);
	completes(12);
	CHECK(spot_overrun_skip(&timer, &due, 21));
	CHECK_EQ(due, 22);
	CHECK(spot_overrun_skip(&timer, &due, 47));
	CHECK_EQ(due, 57);
	takes(57, 2, 2, 0);
}

static void one_tick_only(void)
{
	static const u32 policies[] = { SPOT_DELAY_NEXT, SPOT_SKIP_LATE, 7 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		begin(10, 0, policies[i]);
		CHECK(spot_overrun_skip(&timer, &due, 9));
		CHECK(!spot_overrun_skip(&timer, &due, 10));
		takes(1000, 1, 1, 0);
		CHECK(!spot_overrun_skip(&timer, &due, 1000));
	}
}

/* ---- the ends of the range (D6) ---- */

static void years_of_nanoseconds(void)
{
	unsigned int i;
	u64 newest = YEARS_100 + 1;

	begin(0, 1, SPOT_SKIP_LATE);
	takes(YEARS_100, 1, newest, newest - 1);
	CHECK_EQ(due, YEARS_100 + 1);

	begin(0, 1, INT_MAX);
	takes(YEARS_100, 1, newest - INT_MAX + 1, newest - INT_MAX);
	for (i = 2; i < 1000; i++)
		takes(YEARS_100, i, newest - INT_MAX + i, 0);
	CHECK_EQ(timer.left, INT_MAX - 999);
	CHECK(spot_overrun_skip(&timer, &due, YEARS_100));
	CHECK_EQ(due, YEARS_100 + 1);

	begin(0, 1, SPOT_DELAY_NEXT);
	takes(YEARS_100, 1, 1, 0);
	completes(YEARS_100);
	CHECK_EQ(due, YEARS_100 + 1);
}

static void the_end_of_ktime(void)
{
	begin(0, 1, SPOT_SKIP_LATE);
	takes(S64_MAX, 1, 1ULL << 63, S64_MAX);
	CHECK_EQ(due, S64_MAX);

	begin(0, 1, SPOT_SKIP_LATE);
	CHECK(spot_overrun_skip(&timer, &due, S64_MAX - 1));
	CHECK_EQ(due, S64_MAX);
	CHECK(spot_overrun_skip(&timer, &due, S64_MAX));
	CHECK_EQ(due, S64_MAX);

	begin(S64_MAX, S64_MAX, 2);
	CHECK(spot_overrun_skip(&timer, &due, S64_MAX - 1));
	takes(S64_MAX, 1, 1, 0);
	CHECK_EQ(due, S64_MAX);
}

static void the_longest_period(void)
{
	begin(0, S64_MAX, SPOT_SKIP_LATE);
	takes(S64_MAX - 1, 1, 1, 0);
	CHECK_EQ(due, S64_MAX);
	takes(S64_MAX, 2, 2, 0);

	begin(0, S64_MAX, INT_MAX);
	takes(S64_MAX, 1, 1, 0);
	takes(S64_MAX, 2, 2, 0);

	begin(5, S64_MAX, SPOT_DELAY_NEXT);
	takes(7, 1, 1, 0);
	CHECK_EQ(due, S64_MAX);
	completes(S64_MAX);
	CHECK_EQ(due, S64_MAX);
}

/* Any first time, period and delay: the newest tick by a wide division. */
static void newest_tick_anywhere(void)
{
	unsigned int i;

	rnd_state = 6;
	for (i = 0; i < 1000000; i++) {
		s64 first = rnd_bits(63);
		s64 now = first + rnd_below((u64)(S64_MAX - first) + 1);
		u64 period = 1 + rnd_bits(63) % S64_MAX;
		u64 newest = (u64)(now - first) / period + 1;
		__int128_t after = first + (__int128_t)newest * period;
		s64 next = after < S64_MAX ? after : S64_MAX;

		tap_where("first %llu, now %llu", first, now);
		begin(first, period, SPOT_SKIP_LATE);
		takes(now, 1, newest, newest - 1);
		CHECK_EQ(due, next);

		begin(first, period, SPOT_SKIP_LATE);
		CHECK(spot_overrun_skip(&timer, &due, now));
		CHECK_EQ(due, next);
		CHECK_EQ(timer.next, newest + 1);
	}
}

/* ---- against the model ---- */

static struct {
	s64 first;
	u64 period;
	u32 max;
	u64 next, last, delivered;
	u64 until;		/* last tick of the open catch-up */
	s64 delayed;		/* due time where that is not by the number */
} model;

static s64 model_due(u64 n)
{
	return model.max == SPOT_DELAY_NEXT ? model.delayed :
	       model.first + (s64)((n - 1) * model.period);
}

static void model_take(s64 now, struct spot_tick *tick)
{
	if (model.max != SPOT_DELAY_NEXT && model.until < model.next) {
		u64 count = 1;

		model.until = model.next;
		while (model_due(model.until + 1) <= now) {
			model.until++;
			count++;
		}
		for (; count > model.max; count--)
			model.next++;
	}
	model.delivered++;
	tick->delivery_index = model.delivered;
	tick->scheduled_index = model.next;
	tick->skipped_ticks = model.next - model.last - 1;
	model.last = model.next;
	model.next++;
	model.delayed += model.period;
}

static void model_skip(s64 until)
{
	if (model.max == SPOT_DELAY_NEXT) {
		if (model.delayed <= until)
			model.delayed = until + model.period;
		return;
	}
	while (model_due(model.next) <= until) {
		model.next++;
		model.until = 0;
	}
}

static void take_both(s64 now)
{
	struct spot_tick is, expected;
	u64 previous = timer.last;

	model_take(now, &expected);
	spot_overrun_take(&timer, &due, now, &is);
	CHECK_EQ(is.delivery_index, expected.delivery_index);
	CHECK_EQ(is.scheduled_index, expected.scheduled_index);
	CHECK_EQ(is.skipped_ticks, expected.skipped_ticks);

	/* C3, C4, C5, D4, in their own words */
	CHECK(is.scheduled_index > previous);
	CHECK(is.scheduled_index >= is.delivery_index);
	CHECK_EQ(is.skipped_ticks, is.scheduled_index - previous - 1);
	if (model.max == SPOT_DELAY_NEXT)
		CHECK_EQ(is.scheduled_index, is.delivery_index);
	else
		CHECK(model_due(is.scheduled_index) <= now);
}

static void skip_both(s64 until)
{
	model_skip(until);
	CHECK(spot_overrun_skip(&timer, &due, until));
	CHECK(due > until);
}

static void complete_both(s64 now)
{
	if (model.max == SPOT_DELAY_NEXT)
		model.delayed = now + (s64)model.period;
	completes(now);
}

static void generation(void)
{
	static const u32 policies[] = {
		SPOT_DELAY_NEXT, SPOT_SKIP_LATE, 2, 3, 5, 40, INT_MAX
	};
	s64 now = rnd_below(50);
	unsigned int i;

	model.first = rnd_below(100);
	model.delayed = model.first;
	model.period = 1 + rnd_below(12);
	model.max = policies[rnd_below(ARRAY_SIZE(policies))];
	model.next = 1;
	model.last = 0;
	model.delivered = 0;
	model.until = 0;
	begin(model.first, model.period, model.max);

	for (i = 0; i < 500; i++) {
		now += rnd_below(one_in(8) ? 20 * model.period : 3);
		if (due <= now && !one_in(8)) {
			take_both(now);
			now += one_in(2) ? rnd_below(5 * model.period) : 0;
			complete_both(now);
		} else if (one_in(8)) {
			skip_both(now - (s64)rnd_below(now + 1) / 8);
		}
		CHECK_EQ(due, model_due(model.next));
	}
}

static void against_model(void)
{
	u64 seed;

	for (seed = 1; seed <= 8000; seed++) {
		tap_where("seed %llu", seed, 0);
		rnd_state = seed;
		generation();
	}
}

/* D3 as a whole: the newest ones, at most as many as allowed, in order */
static void catch_up_of_any_size(void)
{
	u32 max, missed, i;

	for (max = 1; max < 20; max++) {
		for (missed = 1; missed < 40; missed++) {
			u32 count = missed < max ? missed : max;

			tap_where("%llu missed, at most %llu", missed, max);
			begin(7, 7, max);
			takes(7, 1, 1, 0);
			for (i = 0; i < count; i++)
				takes(7 + 7 * missed + 6, 2 + i,
				      2 + missed - count + i,
				      i ? 0 : missed - count);
			CHECK_EQ(due, 7 + 7 * (missed + 1));
		}
	}
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "d2_skip_late_figures", skip_late_figures },
		{ "d2_d3_due_this_moment", due_this_moment },
		{ "d3_catch_up_figures", catch_up_figures },
		{ "d3_catch_up_ends", catch_up_ends },
		{ "d3_catch_up_of_any_size", catch_up_of_any_size },
		{ "d4_delay_next_figures", delay_next_figures },
		{ "d2_d3_d4_case15_stall_of_ten_seconds", stall },
		{ "c5_d2_case16_phase_is_kept", phase_is_kept },
		{ "c5_case21_no_drift", no_drift },
		{ "g4_skip_passes_over", skip_passes_over },
		{ "c3_one_tick_only", one_tick_only },
		{ "d5_d6_years_of_nanoseconds", years_of_nanoseconds },
		{ "d6_the_end_of_ktime", the_end_of_ktime },
		{ "d6_the_longest_period", the_longest_period },
		{ "d6_newest_tick_anywhere", newest_tick_anywhere },
		{ "c2_c3_c4_c5_d2_d3_d4_against_model", against_model },
	};

	return tap_run(tests, ARRAY_SIZE(tests));
}
