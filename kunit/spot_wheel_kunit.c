// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the wheel. Each is named after the clause of the contract that
 * it proves. They run twice: against the wheel that the module uses, and, by
 * spot_wheel8_kunit.c, against one with 8 slots a level, for which the contract
 * gives figures.
 */
#include <kunit/test.h>
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "../spot_overrun.h"
#include "../spot_wheel.h"

#ifndef WHEEL_SUITE
#define WHEEL_SUITE	"spot_wheel"
#endif

#define MS		((s64)NSEC_PER_MSEC)
#define NOBODY		-1
#define ENTRIES		1024
#define CROWD		100000

/* ticks that one slot of @level holds */
#define WIDTH(level)	(1ULL << ((level) * SPOT_WHEEL_BITS))

struct wheel_test {
	struct spot_wheel w;
	struct spot_wheel_entry *e;
};

/* ---- helpers ---- */

static void begin(struct wheel_test *t, u32 tick_ns, u64 now)
{
	struct spot_tick_len tick;

	spot_tick_len_init(&tick, tick_ns);
	spot_wheel_init(&t->w, &tick, now);
}

static u64 arm_slack(struct wheel_test *t, int i, s64 deadline, u32 slack)
{
	t->e[i].deadline = deadline;
	t->e[i].slack = slack;
	return spot_wheel_add(&t->w, &t->e[i]);
}

static u64 arm(struct wheel_test *t, int i, s64 deadline)
{
	return arm_slack(t, i, deadline, 0);
}

static u64 arm_tick(struct wheel_test *t, int i, u64 tick)
{
	return arm(t, i, tick * t->w.tick.ns);
}

static void disarm(struct wheel_test *t, int i)
{
	spot_wheel_remove(&t->w, &t->e[i]);
}

/*
 * Who comes out next at tick @now, within @budget; NOBODY if none does. What is
 * in the wheel and what is not hangs on that, so that a test ends when it is
 * wrong: it would arm a timer that is armed.
 */
static int fired_within(struct wheel_test *t, u64 now, unsigned int *budget)
{
	struct spot_wheel_entry *e = spot_wheel_expire(&t->w, now, budget);

	return e ? e - t->e : NOBODY;
}

static int fired(struct wheel_test *t, u64 now)
{
	unsigned int budget = UINT_MAX;

	return fired_within(t, now, &budget);
}

/* The same with the time in nanoseconds. */
static int fired_ns(struct wheel_test *t, s64 now)
{
	return fired(t, spot_tick_floor(&t->w.tick, now));
}

static bool in_bucket(struct wheel_test *t, int i, unsigned int level,
		      unsigned int slot)
{
	struct list_head *bucket = &t->w.bucket[level * SPOT_WHEEL_SLOTS + slot];
	struct spot_wheel_entry *e;

	list_for_each_entry(e, bucket, link)
		if (e == &t->e[i])
			return true;
	return false;
}

/* The tick of the next event, U64_MAX if there is none. */
static u64 next_event(struct wheel_test *t)
{
	u64 tick;

	return spot_wheel_next(&t->w, &tick) ? tick : U64_MAX;
}

/* @i comes out at @tick, and not before. */
static void expect_only_at(struct kunit *test, int i, u64 tick)
{
	struct wheel_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, fired(t, tick - 1), NOBODY);
	KUNIT_ASSERT_EQ(test, fired(t, tick), i);
	KUNIT_ASSERT_EQ(test, fired(t, tick), NOBODY);
}

static void expect_empty(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, next_event(t), U64_MAX);
	KUNIT_EXPECT_NULL(test, spot_wheel_first(&t->w));
}

/* @count timers in one coarse bucket: @i due on its last tick, 0 on its first */
static u64 fill_coarse_bucket(struct wheel_test *t, unsigned int count)
{
	u64 last = 2 * SPOT_WHEEL_SLOTS - 1;
	unsigned int i;

	arm_tick(t, 0, SPOT_WHEEL_SLOTS);
	for (i = 1; i < count; i++)
		arm_tick(t, i, last);
	return last;
}

/* One step of the cascade of that bucket, in a pass with a budget of one. */
static void cascade_one(struct kunit *test)
{
	unsigned int budget = 1;

	KUNIT_ASSERT_EQ(test, fired_within(test->priv, SPOT_WHEEL_SLOTS,
					   &budget), NOBODY);
	KUNIT_EXPECT_EQ(test, budget, 0);
}

/* ---- A3: rounding ---- */

static void a3_case2_deadline_rounds_up(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	arm(t, 0, 19 * MS);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 19 * MS), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 20 * MS), 0);
	arm(t, 0, 30 * MS);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 30 * MS - 1), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 30 * MS), 0);
	arm(t, 0, 40 * MS + 1);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 50 * MS - 1), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 50 * MS), 0);
}

/* The first half of the case; harness/ has all of it. */
static void a3_case1_polled_between_ticks(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	begin(t, 10, 0);
	arm(t, 0, 12);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 10), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 20), 0);
}

static void a3_case14_past_deadline_goes_to_next_tick(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	begin(t, 10 * MS, 1000);
	arm_tick(t, 0, 1010);
	KUNIT_EXPECT_EQ(test, arm(t, 1, 1), 1001);
	KUNIT_EXPECT_EQ(test, arm(t, 2, 0), 1001);
	KUNIT_EXPECT_EQ(test, arm(t, 3, S64_MIN), 1001);
	KUNIT_EXPECT_EQ(test, arm_tick(t, 4, 1000), 1001);
	KUNIT_EXPECT_EQ(test, t->w.processed, 1000);
	KUNIT_ASSERT_EQ(test, fired(t, 1000), NOBODY);
	KUNIT_ASSERT_EQ(test, fired(t, 1001), 1);
	KUNIT_ASSERT_EQ(test, fired(t, 1001), 2);
	KUNIT_ASSERT_EQ(test, fired(t, 1001), 3);
	KUNIT_ASSERT_EQ(test, fired(t, 1001), 4);
	expect_only_at(test, 0, 1010);
}

static void a3_case4_armed_into_the_tick_being_drained(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	arm_tick(t, 0, 10);
	arm_tick(t, 1, 10);
	KUNIT_ASSERT_EQ(test, fired(t, 10), 0);
	arm_tick(t, 0, 10);
	KUNIT_ASSERT_EQ(test, fired(t, 10), 1);
	KUNIT_ASSERT_EQ(test, fired(t, 10), NOBODY);
	expect_only_at(test, 0, 11);
}

/* ---- A4, A5: buckets and levels ---- */

#if SPOT_WHEEL_BITS == 3
static void a4_slots_hold_candidates(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	arm(t, 0, 25 * MS);
	arm(t, 1, 75 * MS);
	arm(t, 2, 105 * MS);
	KUNIT_EXPECT_EQ(test, spot_tick_ceil(&t->w.tick, 25 * MS), 3);
	KUNIT_EXPECT_EQ(test, spot_tick_ceil(&t->w.tick, 75 * MS), 8);
	KUNIT_EXPECT_EQ(test, spot_tick_ceil(&t->w.tick, 105 * MS), 11);
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 0, 0, 3));

	KUNIT_ASSERT_EQ(test, fired_ns(t, 25 * MS), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 30 * MS), 0);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 30 * MS), NOBODY);

	KUNIT_ASSERT_EQ(test, fired_ns(t, 79 * MS), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 80 * MS), 1);
	/* slot 3 again, one turn later */
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 2, 0, 3));
	KUNIT_ASSERT_EQ(test, fired_ns(t, 109 * MS), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 110 * MS), 2);
}

/* Target 8 goes to slot 0 when that turn begins, however long that takes. */
static void a4_slot_0_belongs_to_the_next_turn(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	unsigned int budget = 1;

	arm(t, 0, 75 * MS);
	arm(t, 1, 75 * MS);
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 0, 1, 1));
	KUNIT_ASSERT_EQ(test, fired_within(t, 8, &budget), NOBODY);
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 0, 0, 0));
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 1, 1, 1));
	KUNIT_ASSERT_EQ(test, fired(t, 8), 0);
	KUNIT_ASSERT_EQ(test, fired(t, 8), 1);
}

static void a5_cascade_keeps_deadline(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	/* the bucket of 80 to 160 ms */
	KUNIT_EXPECT_EQ(test, arm(t, 0, 105 * MS), 8);
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 0, 1, 1));

	KUNIT_ASSERT_EQ(test, fired_ns(t, 80 * MS - 1), NOBODY);
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 0, 1, 1));
	KUNIT_EXPECT_EQ(test, t->w.cascaded, 0);

	KUNIT_ASSERT_EQ(test, fired_ns(t, 80 * MS), NOBODY);
	KUNIT_EXPECT_FALSE(test, in_bucket(t, 0, 1, 1));
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 0, 0, 3));
	KUNIT_EXPECT_EQ(test, t->w.cascaded, 1);
	KUNIT_EXPECT_EQ(test, t->e[0].deadline, 105 * MS);

	KUNIT_ASSERT_EQ(test, fired_ns(t, 105 * MS), NOBODY);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 110 * MS), 0);
	KUNIT_EXPECT_EQ(test, t->e[0].deadline, 105 * MS);
}
#endif

/* A timer that waits for @tick from @start on: its bucket, and its tick. */
static void expect_edge(struct kunit *test, u64 start, u64 tick)
{
	struct wheel_test *t = test->priv;
	unsigned int level = 0;

	while (tick / WIDTH(level) / SPOT_WHEEL_SLOTS !=
	       start / WIDTH(level) / SPOT_WHEEL_SLOTS)
		level++;
	begin(t, 2, start);
	KUNIT_EXPECT_EQ(test, arm_tick(t, 0, tick), round_down(tick, WIDTH(level)));
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 0, level, tick / WIDTH(level) %
						       SPOT_WHEEL_SLOTS));
	expect_only_at(test, 0, tick);
	expect_empty(test);
}

/* k turns of each level, and a tick around that */
static void a5_case5_case7_every_level_edge(struct kunit *test)
{
	static const u64 starts[] = { 0, 1, SPOT_WHEEL_SLOTS - 1,
				      SPOT_WHEEL_SLOTS, SPOT_WHEEL_SLOTS + 1 };
	unsigned int level, i;
	u64 k;

	for (level = 1; WIDTH(level) * SPOT_WHEEL_SLOTS < 1ULL << 60; level++) {
		for (k = 1; k <= SPOT_WHEEL_SLOTS; k++) {
			for (i = 0; i < ARRAY_SIZE(starts); i++) {
				u64 edge = starts[i] + k * WIDTH(level);

				expect_edge(test, starts[i], edge - 1);
				expect_edge(test, starts[i], edge);
				expect_edge(test, starts[i], edge + 1);
			}
		}
	}
}

static void a5_order_of_registration(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	u64 tick = 3 * WIDTH(2) + 5;
	int i;

	/* from afar, from nearer, and from within the same turn */
	arm_tick(t, 0, tick);
	arm_tick(t, 1, tick);
	KUNIT_ASSERT_EQ(test, fired(t, 3 * WIDTH(2) - 1), NOBODY);
	arm_tick(t, 2, tick);
	KUNIT_ASSERT_EQ(test, fired(t, tick - 2), NOBODY);
	arm_tick(t, 3, tick);
	KUNIT_ASSERT_EQ(test, fired(t, tick - 1), NOBODY);
	arm_tick(t, 4, 0);
	for (i = 0; i < 5; i++)
		KUNIT_ASSERT_EQ(test, fired(t, tick), i);
	expect_empty(test);
}

static void a5_removal_within_a_cascade(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	u64 last = fill_coarse_bucket(t, 20);
	int i;

	for (i = 0; i < 10; i++)
		cascade_one(test);
	for (i = 0; i < 20; i += 2)
		disarm(t, i);
	for (i = 1; i < 20; i += 2)
		KUNIT_ASSERT_EQ(test, fired(t, last), i);
	KUNIT_ASSERT_EQ(test, fired(t, last), NOBODY);
	expect_empty(test);
}

static void a5_removal_while_due(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	arm_tick(t, 0, 5);
	arm_tick(t, 1, 5);
	arm_tick(t, 2, 5);
	KUNIT_ASSERT_EQ(test, fired(t, 5), 0);
	disarm(t, 1);
	KUNIT_ASSERT_EQ(test, fired(t, 5), 2);
	expect_empty(test);
}

/* ---- A6: horizon ---- */

static void a6_case8_ktime_max_waits_and_can_be_removed(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	KUNIT_EXPECT_GT(test, arm(t, 0, KTIME_MAX), t->w.processed);
	KUNIT_ASSERT_EQ(test, fired_ns(t, 100LL * 365 * 86400 * NSEC_PER_SEC),
			NOBODY);
	disarm(t, 0);
	expect_empty(test);

	arm(t, 0, KTIME_MAX);
	expect_only_at(test, 0, KTIME_MAX / (10 * MS) + 1);
}

/* longer than 2^32 and 2^36 ms, and than 37 hours in ns */
static void a6_case10_case11_far_deadlines_are_exact(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	static const u64 ticks[] = {
		37ULL * 3600 * 1000 + 1, (1ULL << 32) + 1, (1ULL << 36) + 1,
		(1ULL << 42) + 1,
	};
	int i;

	begin(t, MS, 0);
	for (i = 0; i < ARRAY_SIZE(ticks); i++)
		arm_tick(t, i, ticks[i]);
	for (i = 0; i < ARRAY_SIZE(ticks); i++)
		expect_only_at(test, i, ticks[i]);
}

static void a6_case10_case12_starts_near_powers_of_two(struct kunit *test)
{
	static const unsigned int bits[] = { 31, 32, 36, 42, 48, 60, 61 };
	struct wheel_test *t = test->priv;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		u64 start = (1ULL << bits[i]) - 21;

		begin(t, 2, start);
		for (j = 0; j < 40; j++)
			arm_tick(t, j, start + 1 + j);
		for (j = 0; j < 40; j++)
			expect_only_at(test, j, start + 1 + j);
	}
}

/* A clock that is beyond ktime's end, where every deadline is past. */
static void a6_case12_clocks_near_the_last_tick(struct kunit *test)
{
	static const u64 starts[] = { (1ULL << 63) - 20, U64_MAX - 40 };
	struct wheel_test *t = test->priv;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		begin(t, 2, starts[i]);
		for (j = 1; j <= 40; j++) {
			KUNIT_EXPECT_EQ(test, arm(t, 0, KTIME_MAX),
					starts[i] + j);
			expect_only_at(test, 0, starts[i] + j);
		}
	}
}

/* Conversions where a reciprocal that is off by one would show. */
static void a6_ticks_agree_with_division(struct kunit *test)
{
	static const u32 lengths[] = {
		2, 3, 7, 99999, 100000, 999999, 1000000, 10000000, 1000000000,
		U32_MAX
	};
	struct spot_tick_len tick;
	int i, bit;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		spot_tick_len_init(&tick, lengths[i]);
		for (bit = 0; bit < 63; bit++) {
			u64 n = ((1ULL << bit) - 1) % (S64_MAX / lengths[i]);
			s64 ns = n * lengths[i];

			KUNIT_EXPECT_EQ(test, spot_tick_floor(&tick, ns), n);
			KUNIT_EXPECT_EQ(test, spot_tick_ceil(&tick, ns), n);
			KUNIT_EXPECT_EQ(test, spot_tick_floor(&tick, ns + 1), n);
			KUNIT_EXPECT_EQ(test, spot_tick_ceil(&tick, ns + 1), n + 1);
			ns += lengths[i];
			KUNIT_EXPECT_EQ(test, spot_tick_floor(&tick, ns - 1), n);
			KUNIT_EXPECT_EQ(test, spot_tick_ceil(&tick, ns - 1), n + 1);
		}
		KUNIT_EXPECT_EQ(test, spot_tick_floor(&tick, S64_MAX),
				S64_MAX / lengths[i]);
		KUNIT_EXPECT_EQ(test, spot_tick_floor(&tick, S64_MIN), 0);
		KUNIT_EXPECT_EQ(test, spot_tick_ceil(&tick, S64_MIN), 0);
	}
}

/* ---- A7: the next event ---- */

static void a7_next_is_the_next_occupied_bucket(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, next_event(t), U64_MAX);
	arm_tick(t, 0, 5);
	KUNIT_EXPECT_EQ(test, next_event(t), 5);
	arm_tick(t, 1, 2 * SPOT_WHEEL_SLOTS + 3);
	KUNIT_EXPECT_EQ(test, next_event(t), 5);
	KUNIT_ASSERT_EQ(test, fired(t, 5), 0);
	/* where its bucket begins, then its tick: two events, not a turn's */
	KUNIT_EXPECT_EQ(test, next_event(t), 2 * SPOT_WHEEL_SLOTS);
	KUNIT_ASSERT_EQ(test, fired(t, 2 * SPOT_WHEEL_SLOTS), NOBODY);
	KUNIT_EXPECT_EQ(test, next_event(t), 2 * SPOT_WHEEL_SLOTS + 3);
	KUNIT_ASSERT_EQ(test, fired(t, 2 * SPOT_WHEEL_SLOTS + 3), 1);
	expect_empty(test);

	arm_tick(t, 0, t->w.processed + 1000);
	disarm(t, 0);
	expect_empty(test);
}

static void a7_case17_earlier_timer_moves_next_event(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	arm_tick(t, 0, 200);
	KUNIT_EXPECT_GT(test, next_event(t), 10);
	arm_tick(t, 1, 10);
	KUNIT_EXPECT_LE(test, next_event(t), 10);
	KUNIT_ASSERT_EQ(test, fired(t, 9), NOBODY);
	KUNIT_ASSERT_EQ(test, fired(t, 11), 1);
	expect_only_at(test, 0, 200);
}

static void a7_next_event_has_come_while_some_are_due(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	u64 last;

	arm_tick(t, 0, 5);
	arm_tick(t, 1, 5);
	arm_tick(t, 2, 6);
	KUNIT_ASSERT_EQ(test, fired(t, 6), 0);
	KUNIT_EXPECT_EQ(test, next_event(t), 5);
	disarm(t, 1);
	KUNIT_EXPECT_EQ(test, next_event(t), 6);
	disarm(t, 2);
	expect_empty(test);

	/* nor does the rest of a cascade wait for anything */
	begin(t, 10 * MS, 0);
	last = fill_coarse_bucket(t, 3);
	cascade_one(test);
	KUNIT_EXPECT_LE(test, next_event(t), SPOT_WHEEL_SLOTS);
	KUNIT_ASSERT_EQ(test, fired(t, SPOT_WHEEL_SLOTS), 0);
	KUNIT_ASSERT_EQ(test, fired(t, SPOT_WHEEL_SLOTS), NOBODY);
	KUNIT_EXPECT_EQ(test, next_event(t), last);
}

/* Going from event to event, a timer on each level comes out on its tick. */
static void expect_one_per_level(struct kunit *test, u64 start)
{
	struct wheel_test *t = test->priv;
	int level, count = 60 / SPOT_WHEEL_BITS;

	begin(t, 2, start);
	for (level = count; level--;)
		arm_tick(t, level, start + WIDTH(level));
	for (level = 0; level < count; level++) {
		unsigned int stops = 0;
		int i;

		do {
			u64 next = next_event(t);

			KUNIT_ASSERT_GT(test, next, t->w.processed);
			KUNIT_ASSERT_LE(test, next, start + WIDTH(level));
			KUNIT_ASSERT_LE(test, ++stops, SPOT_WHEEL_LEVELS);
			i = fired(t, next);
		} while (i == NOBODY);
		KUNIT_EXPECT_EQ(test, i, level);
		KUNIT_EXPECT_EQ(test, t->w.processed, start + WIDTH(level));
	}
	expect_empty(test);
}

static void a7_case19_next_event_is_over_all_levels(struct kunit *test)
{
	unsigned int level;

	for (level = 0; WIDTH(level) < 1ULL << 58; level++) {
		expect_one_per_level(test, WIDTH(level) - 1);
		expect_one_per_level(test, WIDTH(level));
		expect_one_per_level(test, WIDTH(level) + 1);
	}
}

static void a7_empty_within_a_cascade(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	int i;

	fill_coarse_bucket(t, 10);
	cascade_one(test);
	for (i = 0; i < 10; i++)
		disarm(t, i);
	expect_empty(test);
	spot_wheel_forward(&t->w, 1000);
	arm_tick(t, 0, 1010);
	expect_only_at(test, 0, 1010);
}

/* ---- A8: stalls ---- */

/* Jump over @ticks ticks, in which there are @count timers. */
static void expect_jump(struct kunit *test, u64 ticks, unsigned int count)
{
	struct wheel_test *t = test->priv;
	unsigned int i, level, out = 0;
	u64 last = 0, most = 0;

	begin(t, MS, 0);
	for (i = 0; i < count; i++)
		arm_tick(t, i, 1 + hash_64(i + 1, 60) % ticks);
	arm_tick(t, count, ticks + 1);
	for (;;) {
		int e = fired(t, ticks);

		if (e == NOBODY)
			break;
		KUNIT_EXPECT_LT(test, e, count);
		KUNIT_EXPECT_GE(test, t->e[e].deadline, last);
		KUNIT_EXPECT_LE(test, t->e[e].deadline, ticks * MS);
		last = t->e[e].deadline;
		out++;
	}
	KUNIT_EXPECT_EQ(test, out, count);
	/*
	 * Of each level no more buckets are opened than there are timers, or
	 * buckets in that time: empty ones cost nothing.
	 */
	for (level = 0; level < SPOT_WHEEL_LEVELS && WIDTH(level) <= ticks; level++)
		most += min(count + 1ULL, ticks / WIDTH(level) + 1);
	KUNIT_EXPECT_LE(test, t->w.opened, most);
	KUNIT_EXPECT_LE(test, t->w.cascaded, (u64)(count + 1) * level);
	KUNIT_EXPECT_EQ(test, t->w.processed, ticks);
	expect_only_at(test, count, ticks + 1);
}

static void a8_jumps_cost_no_ticks(struct kunit *test)
{
	const u64 hour = 3600 * MSEC_PER_SEC, month = 30 * 24 * hour;

	expect_jump(test, hour, 0);
	expect_jump(test, hour, 500);
	expect_jump(test, hour, CROWD);
	expect_jump(test, month, 0);
	expect_jump(test, month, 1);
	expect_jump(test, month, 500);
	expect_jump(test, month, CROWD);
}

static void a8_empty_jump_opens_nothing(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, fired(t, 100000000), NOBODY);
	KUNIT_EXPECT_EQ(test, t->w.opened, 0);
	KUNIT_EXPECT_EQ(test, t->w.processed, 100000000);
}

static void a8_case13_case20_idle_wheel_is_brought_up_to_date(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	const u64 hour = 3600 * MSEC_PER_SEC;

	begin(t, MS, 0);
	spot_wheel_forward(&t->w, hour);
	arm_tick(t, 0, hour + 5);
	expect_only_at(test, 0, hour + 5);

	spot_wheel_forward(&t->w, 2 * hour);
	arm_tick(t, 0, hour);
	expect_only_at(test, 0, 2 * hour + 1);
}

static void a8_forward_passes_nothing_over(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	arm_tick(t, 0, 1000);
	spot_wheel_forward(&t->w, 1000000);
	KUNIT_EXPECT_EQ(test, t->w.processed, 0);
	KUNIT_ASSERT_EQ(test, fired(t, 1000000), 0);
	spot_wheel_forward(&t->w, 999);
	KUNIT_EXPECT_EQ(test, t->w.processed, 1000);
}

/* ---- A9: budget ---- */

static void a9_budget_counts_cascades_and_timers(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	u64 last = fill_coarse_bucket(t, ENTRIES);
	unsigned int passes = 0;
	int i, out = 0;

	while (out < ENTRIES) {
		u64 moved = t->w.cascaded;
		int before = out;
		unsigned int budget = 64;

		while ((i = fired_within(t, last, &budget)) != NOBODY)
			KUNIT_ASSERT_EQ(test, i, out++);
		KUNIT_ASSERT_EQ(test, budget, 0);
		KUNIT_EXPECT_EQ(test, t->w.cascaded - moved + out - before, 64);
		passes++;
	}
	/* each moved once and taken out once */
	KUNIT_EXPECT_EQ(test, passes, 2 * ENTRIES / 64);
	expect_empty(test);
}

static void a9_no_budget_no_work(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	unsigned int budget = 0;

	arm_tick(t, 0, 1);
	arm_tick(t, 1, 100000);
	KUNIT_ASSERT_EQ(test, fired_within(t, 200000, &budget), NOBODY);
	KUNIT_ASSERT_EQ(test, fired(t, 200000), 0);
	KUNIT_ASSERT_EQ(test, fired_within(t, 200000, &budget), NOBODY);
	KUNIT_EXPECT_EQ(test, budget, 0);
	KUNIT_EXPECT_EQ(test, t->w.cascaded, 0);
	KUNIT_ASSERT_EQ(test, fired(t, 200000), 1);
}

static void a9_order_holds_within_a_cascade(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	u64 last = fill_coarse_bucket(t, 100);
	int i;

	for (i = 0; i < 10; i++)
		cascade_one(test);
	arm_tick(t, 100, last);
	arm_tick(t, 101, 0);
	KUNIT_EXPECT_TRUE(test, in_bucket(t, 101, 1, 1));

	KUNIT_ASSERT_EQ(test, fired(t, last), 0);
	KUNIT_ASSERT_EQ(test, fired(t, last), 101);
	for (i = 1; i < 101; i++)
		KUNIT_ASSERT_EQ(test, fired(t, last), i);
	expect_empty(test);
}

/* Whoever adds to the bucket that is being cascaded moves it on himself. */
static void a9_cascade_ends_however_many_arrive(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	u64 last = fill_coarse_bucket(t, 200);
	int i, count = 200;

	for (;;) {
		cascade_one(test);
		KUNIT_ASSERT_LE(test, count, 300);
		arm_tick(t, count, last);
		if (!in_bucket(t, count++, 1, 1))
			break;
	}
	for (i = 0; i < count; i++)
		KUNIT_ASSERT_EQ(test, fired(t, last), i);
	expect_empty(test);
}

/* armed while a budget stops the tick that is being worked off */
static void a9_case7_armed_within_a_budgeted_tick(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	unsigned int budget = 50;
	int i;

	for (i = 0; i < 100; i++)
		arm_tick(t, 512 + i, 5);
	for (i = 0; i < 50; i++)
		KUNIT_ASSERT_EQ(test, fired_within(t, 5, &budget), 512 + i);
	KUNIT_ASSERT_EQ(test, fired_within(t, 5, &budget), NOBODY);
	for (i = 0; i < 512; i++)
		arm_tick(t, i, 6 + i);
	for (i = 50; i < 100; i++)
		KUNIT_ASSERT_EQ(test, fired(t, 5), 512 + i);
	for (i = 0; i < 512; i++)
		expect_only_at(test, i, 6 + i);
}

/* ---- A12, A14, C5 ---- */

/* To hand its timers over, a wheel is emptied first to last in each bucket. */
static void a12_first_keeps_order(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	int i;

	arm_tick(t, 0, 5);
	arm_tick(t, 1, 5);
	arm_tick(t, 2, 1000);
	arm_tick(t, 3, 1000);
	arm_tick(t, 4, 1000000);
	KUNIT_ASSERT_EQ(test, fired(t, 5), 0);
	for (i = 1; i < 5; i++) {
		KUNIT_ASSERT_PTR_EQ(test, spot_wheel_first(&t->w), &t->e[i]);
		disarm(t, i);
	}
	expect_empty(test);
}

static void a14_slack_takes_the_roundest_tick(struct kunit *test)
{
	static const struct {
		u64 tick;
		u32 slack;
		u64 target;
	} cases[] = {
		{ 5, 0, 5 }, { 5, 1, 6 }, { 5, 2, 6 }, { 5, 3, 8 }, { 8, 7, 8 },
		{ 9, 6, 12 }, { 9, 7, 16 }, { 17, 100, 64 }, { 1000, 23, 1008 },
		{ 1000, 24, 1024 }, { 1, U32_MAX, 1ULL << 32 },
	};
	struct wheel_test *t = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(t, MS, 0);
		arm_slack(t, 0, cases[i].tick * MS - 1, cases[i].slack);
		KUNIT_EXPECT_GE(test, cases[i].target, cases[i].tick);
		expect_only_at(test, 0, cases[i].target);
	}
}

static void a14_slack_shares_wakeups(struct kunit *test)
{
	struct wheel_test *t = test->priv;
	unsigned int wakeups = 0;
	u64 tick;
	int i, out = 0;

	for (i = 0; i < 160; i++)
		arm_slack(t, i, (1 + i) * 10 * MS, 15);
	for (tick = 1; tick <= 176; tick++) {
		i = fired(t, tick);
		wakeups += i != NOBODY;
		for (; i != NOBODY; i = fired(t, tick)) {
			KUNIT_EXPECT_GE(test, tick, 1 + i);
			KUNIT_EXPECT_LE(test, tick, 1 + i + 15);
			out++;
		}
	}
	KUNIT_EXPECT_EQ(test, out, 160);
	KUNIT_EXPECT_LE(test, wakeups, 11);
}

/* The end of ktime, or a time before its start, with all the slack there is. */
static void a14_slack_at_the_ends(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	begin(t, 2, 7);
	arm_slack(t, 0, -1, U32_MAX);
	expect_only_at(test, 0, 8);
	arm_slack(t, 0, S64_MAX, U32_MAX);
	expect_only_at(test, 0, 1ULL << 62);
}

/* A period of 1.5 ms on ticks of 1 ms: due at 1.5, 3, 4.5 …, at 2, 3, 5 … */
static void c5_case21_no_drift(struct kunit *test)
{
	static const u64 fires[] = { 2, 3, 5, 6, 8, 9, 11, 12, 14, 15 };
	struct wheel_test *t = test->priv;
	const s64 period = 1500000;
	struct spot_overrun overrun;
	struct spot_tick record;
	s64 due = period;
	u64 tick, n = 0;

	begin(t, MS, 0);
	spot_overrun_init(&overrun, period, SPOT_SKIP_LATE);
	arm(t, 0, due);
	for (tick = 1; tick <= 3000; tick++) {
		if (fired(t, tick) == NOBODY)
			continue;
		if (n < ARRAY_SIZE(fires))
			KUNIT_EXPECT_EQ(test, tick, fires[n]);
		spot_overrun_take(&overrun, &due, tick * MS, &record);
		n++;
		KUNIT_EXPECT_EQ(test, record.delivery_index, n);
		KUNIT_EXPECT_EQ(test, record.scheduled_index, n);
		KUNIT_EXPECT_EQ(test, record.skipped_ticks, 0);
		KUNIT_EXPECT_EQ(test, due, (s64)(n + 1) * period);
		arm(t, 0, due);
	}
	KUNIT_EXPECT_EQ(test, n, 2000);
}

/* ---- the suite ---- */

static int wheel_test_init(struct kunit *test)
{
	struct wheel_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->e = kvcalloc(CROWD + 1, sizeof(*t->e), GFP_KERNEL);
	if (!t->e)
		return -ENOMEM;
	begin(t, 10 * MS, 0);
	test->priv = t;
	return 0;
}

static void wheel_test_exit(struct kunit *test)
{
	struct wheel_test *t = test->priv;

	if (t)
		kvfree(t->e);
}

static struct kunit_case wheel_test_cases[] = {
	KUNIT_CASE(a3_case2_deadline_rounds_up),
	KUNIT_CASE(a3_case1_polled_between_ticks),
	KUNIT_CASE(a3_case14_past_deadline_goes_to_next_tick),
	KUNIT_CASE(a3_case4_armed_into_the_tick_being_drained),
#if SPOT_WHEEL_BITS == 3
	KUNIT_CASE(a4_slots_hold_candidates),
	KUNIT_CASE(a4_slot_0_belongs_to_the_next_turn),
	KUNIT_CASE(a5_cascade_keeps_deadline),
#endif
	KUNIT_CASE(a5_case5_case7_every_level_edge),
	KUNIT_CASE(a5_order_of_registration),
	KUNIT_CASE(a5_removal_within_a_cascade),
	KUNIT_CASE(a5_removal_while_due),
	KUNIT_CASE(a6_case8_ktime_max_waits_and_can_be_removed),
	KUNIT_CASE(a6_case10_case11_far_deadlines_are_exact),
	KUNIT_CASE(a6_case10_case12_starts_near_powers_of_two),
	KUNIT_CASE(a6_case12_clocks_near_the_last_tick),
	KUNIT_CASE(a6_ticks_agree_with_division),
	KUNIT_CASE(a7_next_is_the_next_occupied_bucket),
	KUNIT_CASE(a7_case17_earlier_timer_moves_next_event),
	KUNIT_CASE(a7_next_event_has_come_while_some_are_due),
	KUNIT_CASE(a7_case19_next_event_is_over_all_levels),
	KUNIT_CASE(a7_empty_within_a_cascade),
	KUNIT_CASE(a8_jumps_cost_no_ticks),
	KUNIT_CASE(a8_empty_jump_opens_nothing),
	KUNIT_CASE(a8_case13_case20_idle_wheel_is_brought_up_to_date),
	KUNIT_CASE(a8_forward_passes_nothing_over),
	KUNIT_CASE(a9_budget_counts_cascades_and_timers),
	KUNIT_CASE(a9_no_budget_no_work),
	KUNIT_CASE(a9_order_holds_within_a_cascade),
	KUNIT_CASE(a9_cascade_ends_however_many_arrive),
	KUNIT_CASE(a9_case7_armed_within_a_budgeted_tick),
	KUNIT_CASE(a12_first_keeps_order),
	KUNIT_CASE(a14_slack_takes_the_roundest_tick),
	KUNIT_CASE(a14_slack_shares_wakeups),
	KUNIT_CASE(a14_slack_at_the_ends),
	KUNIT_CASE(c5_case21_no_drift),
	{}
};

static struct kunit_suite wheel_test_suite = {
	.name = WHEEL_SUITE,
	.init = wheel_test_init,
	.exit = wheel_test_exit,
	.test_cases = wheel_test_cases,
};

kunit_test_suite(wheel_test_suite);
