// SPDX-License-Identifier: GPL-2.0
/*
 * What the wheel promises, one promise at a time. Where the number of cases
 * allows it, all of them are tried: that is what the compile at 8 slots is for.
 * Times are in wheel ticks unless a unit stands there.
 */
#include <linux/limits.h>

#include "spot_wheel.h"
#include "tap.h"

#define TICK_NS		10
#define MS		1000000LL
#define HOUR		(3600 * 1000 * MS)
/* starts and distances that are all tried: the edges of the first levels */
#define NEAR		1100
#define ENTRIES		4096

static struct spot_wheel wheel;
static struct spot_wheel_entry entries[ENTRIES];

/* ---- helpers ---- */

static void begin(u32 tick_ns, u64 now)
{
	struct spot_tick_len tick;

	spot_tick_len_init(&tick, tick_ns);
	spot_wheel_init(&wheel, &tick, now);
}

/* Arm @e for @tick, somewhere within the tick before so that it rounds up. */
static u64 arm(struct spot_wheel_entry *e, u64 tick)
{
	e->deadline = tick * wheel.tick.ns - tick % wheel.tick.ns;
	e->slack = 0;
	return spot_wheel_add(&wheel, e);
}

static u64 arm_ns(struct spot_wheel_entry *e, s64 deadline)
{
	e->deadline = deadline;
	e->slack = 0;
	return spot_wheel_add(&wheel, e);
}

/* The next entry that is due at @now, whatever it costs. */
static struct spot_wheel_entry *expire(u64 now)
{
	unsigned int budget = ~0U;

	return spot_wheel_expire(&wheel, now, &budget);
}

static void fires_at(struct spot_wheel_entry *e, u64 tick)
{
	CHECK(!expire(tick - 1));
	CHECK(expire(tick) == e);
	CHECK(!expire(tick));
}

/* The next event, of which there must be one. */
static u64 next(void)
{
	u64 tick;

	CHECK(spot_wheel_next(&wheel, &tick));
	return tick;
}

static void is_empty(void)
{
	u64 tick;

	CHECK(!spot_wheel_next(&wheel, &tick));
	CHECK(!spot_wheel_first(&wheel));
}

/* ---- rounding, levels ---- */

/* A wheel that is empty is a wheel that was just made: spare the making. */
static void begin_again(u64 now)
{
	is_empty();
	wheel.processed = now;
	wheel.until = now;
}

/* One timer by itself, the clock going from event to event, or in one jump. */
static void check_alone(u64 start, u64 distance)
{
	u64 target = start + (distance ? distance : 1);
	struct spot_wheel_entry *e = &entries[0];
	unsigned int stops = 0;
	u64 look;

	tap_where("from %llu to %llu", start, start + distance);
	begin_again(start);
	look = arm(e, start + distance);
	CHECK_EQ(next(), look);
	while (next() < target) {
		CHECK(next() > wheel.processed);
		CHECK(!expire(next()));
		stops++;
	}
	CHECK(stops < SPOT_WHEEL_LEVELS);
	CHECK_EQ(next(), target);
	fires_at(e, target);

	begin_again(start);
	arm(e, start + distance);
	fires_at(e, target);
}

static void every_start_and_distance(void)
{
	u64 start, distance;

	begin(TICK_NS, 0);
	for (start = 0; start <= NEAR; start++)
		for (distance = 0; distance <= NEAR; distance++)
			check_alone(start, distance);
}

/* All distances at once, the far ones registered first; tick by tick. */
static void check_all_distances(u64 start)
{
	u64 distance, count = NEAR + 1;

	tap_where("from %llu", start, 0);
	begin(TICK_NS, start);
	while (count--)
		arm(&entries[count], start + count);
	for (distance = 1; distance <= NEAR; distance++) {
		CHECK(expire(start + distance) == &entries[distance]);
		if (distance == 1)
			CHECK(expire(start + 1) == &entries[0]);
		CHECK(!expire(start + distance));
	}
	is_empty();
}

static void all_distances_at_once(void)
{
	u64 start;

	for (start = 0; start <= NEAR; start++)
		check_all_distances(start);
}

static const int around[] = { -2, -1, 0, 1, 2 };

/* From the edges of every level to the edges of every level. */
static void every_level_edge(void)
{
	unsigned int bit, shift, i, j;

	begin(2, 0);
	for (bit = 3; bit < 61; bit++) {
		for (shift = SPOT_WHEEL_BITS; shift < 61;
		     shift += SPOT_WHEEL_BITS) {
			u64 width = 1ULL << shift;

			for (i = 0; i < ARRAY_SIZE(around); i++) {
				u64 from = (1ULL << bit) + around[i];

				for (j = 0; j < ARRAY_SIZE(around); j++)
					check_alone(from, width + around[j]);
				/* to where the next such bucket starts */
				check_alone(from, width - from % width);
			}
		}
	}
}

/* Forty timers, on every tick around the edge */
static void check_around(u64 edge)
{
	u64 start = edge - 21;
	unsigned int i;

	tap_where("around %llu", edge, 0);
	begin(2, start);
	for (i = 0; i < 40; i++)
		arm(&entries[i], start + 1 + i);
	for (i = 0; i < 40; i++)
		fires_at(&entries[i], start + 1 + i);
	is_empty();
}

static void late_starts(void)
{
	unsigned int bit;

	for (bit = 5; bit < 62; bit++)
		check_around(1ULL << bit);
	/* the last deadline that ktime has, on the shortest tick */
	check_around((1ULL << 62) - 20);
}

/* No deadline is as late as these clocks: each timer goes to the next tick. */
static void check_past_at(u64 start)
{
	unsigned int i;

	tap_where("from %llu", start, 0);
	begin(2, start);
	for (i = 0; i < 40; i++) {
		CHECK_EQ(arm_ns(&entries[0], i & 1 ? S64_MAX : 1),
			 start + i + 1);
		CHECK_EQ(next(), start + i + 1);
		fires_at(&entries[0], start + i + 1);
		is_empty();
	}
}

static void clocks_beyond_ktime(void)
{
	check_past_at((1ULL << 62) + 1);
	check_past_at((1ULL << 63) - 20);
	check_past_at((1ULL << 63) + (1ULL << 62) - 20);
	check_past_at(U64_MAX - 40);
}

static void polled_between_ticks(void)
{
	unsigned int fired = 0;
	s64 t;

	begin(10, 0);
	arm_ns(&entries[0], 12);
	CHECK(!expire(spot_tick_floor(&wheel.tick, 10)));
	CHECK(expire(spot_tick_floor(&wheel.tick, 20)) == &entries[0]);

	begin(2000, 0);
	arm_ns(&entries[0], 11000);
	for (t = 0; t < 40000; t += 1800) {
		if (!expire(spot_tick_floor(&wheel.tick, t)))
			continue;
		CHECK_EQ(t, 12600);
		fired++;
	}
	CHECK_EQ(fired, 1);
}

/* What the exhaustive ones do not have: re-arming */
static void rearmed_timer_keeps_last_deadline(void)
{
	unsigned int i;

	begin(TICK_NS, 0);
	arm(&entries[0], 5);
	spot_wheel_remove(&wheel, &entries[0]);
	arm(&entries[0], 10);
	fires_at(&entries[0], 10);

	for (i = 0; i < 256; i++) {
		u64 now = wheel.processed;

		arm(&entries[0], now + 258);
		CHECK(!expire(now + 257));
		spot_wheel_remove(&wheel, &entries[0]);
	}
	is_empty();
}

/* armed while a budget stops the tick that is being worked off */
static void armed_within_a_budgeted_tick(void)
{
	unsigned int i, budget = 50;

	begin(TICK_NS, 0);
	for (i = 0; i < 100; i++)
		arm(&entries[512 + i], 5);
	for (i = 0; i < 50; i++)
		CHECK(spot_wheel_expire(&wheel, 5, &budget) ==
		      &entries[512 + i]);
	CHECK(!spot_wheel_expire(&wheel, 5, &budget));
	for (i = 0; i < 512; i++)
		arm(&entries[i], 6 + i);
	for (i = 50; i < 100; i++)
		CHECK(expire(5) == &entries[512 + i]);
	for (i = 0; i < 512; i++)
		fires_at(&entries[i], 6 + i);
	is_empty();
}

static void armed_into_the_tick_being_drained(void)
{
	begin(TICK_NS, 0);
	arm(&entries[0], 10);
	arm(&entries[1], 10);
	CHECK(expire(10) == &entries[0]);
	CHECK_EQ(arm(&entries[0], 10), 11);
	CHECK(expire(10) == &entries[1]);
	CHECK(!expire(10));
	fires_at(&entries[0], 11);
}

/* ---- horizon ---- */

static void far_deadlines(void)
{
	static const s64 delays[] = {
		37 * HOUR, 40 * HOUR, 400 * 24 * HOUR, 100 * 365 * 24 * HOUR
	};
	unsigned int i;

	begin(MS, 0);
	for (i = 0; i < ARRAY_SIZE(delays); i++)
		check_alone(12345, delays[i] / MS);

	tap_where(NULL, 0, 0);
	CHECK(arm_ns(&entries[0], S64_MAX) > wheel.processed);
	CHECK(!expire(wheel.processed + 100000000));
	spot_wheel_remove(&wheel, &entries[0]);
	is_empty();

	arm_ns(&entries[0], S64_MAX);
	fires_at(&entries[0], S64_MAX / MS + 1);
}

/* ---- idle, stall, next event ---- */

static void idle_wheel_is_brought_up_to_date(void)
{
	u64 now = HOUR / MS;

	begin(MS, 0);
	spot_wheel_forward(&wheel, now);
	CHECK_EQ(wheel.processed, now);
	CHECK_EQ(arm(&entries[0], now + 5), next());
	fires_at(&entries[0], now + 5);
	/* what is past goes to the next tick of now, not of an hour ago */
	spot_wheel_forward(&wheel, 2 * now);
	CHECK_EQ(arm(&entries[0], now), 2 * now + 1);
	fires_at(&entries[0], 2 * now + 1);
}

static void forward_passes_nothing_over(void)
{
	begin(TICK_NS, 0);
	arm(&entries[0], 20);
	spot_wheel_forward(&wheel, next());
	CHECK_EQ(wheel.processed, 0);
	spot_wheel_forward(&wheel, next() - 1);
	CHECK_EQ(wheel.processed, next() - 1);
	spot_wheel_forward(&wheel, 1000);
	CHECK(expire(1000) == &entries[0]);
	/* and never backward */
	spot_wheel_forward(&wheel, 20);
	CHECK(!expire(1000));
	spot_wheel_forward(&wheel, 20);
	CHECK_EQ(wheel.processed, 1000);
}

static void past_deadline_does_not_move_base(void)
{
	begin(TICK_NS, 1000);
	arm(&entries[0], 1010);
	CHECK_EQ(arm(&entries[1], 3), 1001);
	CHECK_EQ(arm_ns(&entries[2], S64_MIN), 1001);
	CHECK_EQ(arm_ns(&entries[3], 0), 1001);
	CHECK_EQ(wheel.processed, 1000);
	CHECK(!expire(1000));
	CHECK(expire(1001) == &entries[1]);
	CHECK(expire(1001) == &entries[2]);
	CHECK(expire(1001) == &entries[3]);
	fires_at(&entries[0], 1010);
}

static void earlier_timer_moves_next_event(void)
{
	begin(TICK_NS, 0);
	arm(&entries[0], 200);
	CHECK(next() > 10);
	CHECK(arm(&entries[1], 10) <= 10);
	CHECK(next() <= 10);
	CHECK(expire(11) == &entries[1]);
	CHECK(!expire(199));
	CHECK(expire(200) == &entries[0]);
}

static void next_event_has_come_while_some_are_due(void)
{
	begin(TICK_NS, 0);
	arm(&entries[0], 5);
	arm(&entries[1], 5);
	arm(&entries[2], 6);
	CHECK(expire(6) == &entries[0]);
	CHECK_EQ(next(), 5);
	spot_wheel_remove(&wheel, &entries[1]);
	CHECK_EQ(next(), 6);
	spot_wheel_remove(&wheel, &entries[2]);
	is_empty();
}

/* A timer on each level, from the edges of every level */
static void check_next_from(u64 start)
{
	unsigned int count = 60 / SPOT_WHEEL_BITS + 1, i;

	tap_where("from %llu", start, 0);
	begin_again(start);
	for (i = 0; i < count; i++)
		arm(&entries[i], start + (1ULL << (i * SPOT_WHEEL_BITS)));
	/* without the nearest one, it is the next nearest */
	for (i = 0; i < count; i++) {
		u64 target = spot_tick_ceil(&wheel.tick, entries[i].deadline);

		CHECK(next() > start);
		CHECK(next() <= target);
		spot_wheel_remove(&wheel, &entries[i]);
	}
	is_empty();

	for (i = count; i--;)
		arm(&entries[i], start + (1ULL << (i * SPOT_WHEEL_BITS)));
	for (i = 0; i < count; i++) {
		unsigned int stops = 0;
		struct spot_wheel_entry *e;

		do {
			CHECK(next() > start);
			e = expire(next());
			CHECK(++stops <= SPOT_WHEEL_LEVELS);
		} while (!e);
		CHECK(e == &entries[i]);
	}
	is_empty();
}

static void next_event_is_over_all_levels(void)
{
	unsigned int bit, i;

	begin(2, 0);
	for (bit = 2; bit < 60; bit++)
		for (i = 0; i < ARRAY_SIZE(around); i++)
			check_next_from((1ULL << bit) + around[i]);
}

/* A jump of @ticks over @count timers that lie in it, and as many beyond. */
static void check_jump(u64 ticks, unsigned int count)
{
	unsigned int i, out = 0;
	u64 last = 0;

	tap_where("%llu ticks, %llu timers", ticks, count);
	begin(MS, 12345);
	rnd_state = ticks + count;
	for (i = 0; i < count; i++) {
		arm(&entries[2 * i], 12345 + 1 + rnd_below(ticks));
		arm(&entries[2 * i + 1], 12345 + ticks + 1 + rnd_below(ticks));
	}
	for (;;) {
		struct spot_wheel_entry *e = expire(12345 + ticks);

		if (!e)
			break;
		CHECK_EQ((e - entries) % 2, 0);
		CHECK(wheel.processed >= last);
		last = wheel.processed;
		out++;
	}
	CHECK_EQ(out, count);
	/* each bucket that was opened brought a timer a level nearer */
	CHECK(wheel.opened <= SPOT_WHEEL_LEVELS * (count + !!count));
}

static void jumps_cost_no_ticks(void)
{
	static const u64 jumps[] = {
		100000000, HOUR / MS, 30 * 24 * (HOUR / MS), 1ULL << 42
	};
	static const unsigned int counts[] = { 0, 1, 2, 100, 2000 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(jumps); i++)
		for (j = 0; j < ARRAY_SIZE(counts); j++)
			check_jump(jumps[i], counts[j]);
}

/* Many timers close together, far away: buckets, not timers, are the steps. */
static void crowds_cost_few_buckets(void)
{
	unsigned int i;

	begin(MS, 0);
	for (i = 0; i < ENTRIES; i++)
		arm(&entries[i], 100000000 + i % 2);
	for (i = 0; i < ENTRIES; i++)
		CHECK(expire(100000001));
	CHECK(!expire(100000001));
	CHECK(wheel.opened <= SPOT_WHEEL_LEVELS + 2);
}

/* ---- budget ---- */

/* Fill the first bucket of level 1; all but the first in the last tick. */
static u64 fill_coarse_bucket(unsigned int count)
{
	u64 last = 2 * SPOT_WHEEL_SLOTS - 1;
	unsigned int i;

	for (i = 0; i < count; i++)
		arm(&entries[i], i ? last : SPOT_WHEEL_SLOTS);
	return last;
}

static void one_expire_call(void)
{
	unsigned int budget = 1;

	CHECK(!spot_wheel_expire(&wheel, SPOT_WHEEL_SLOTS, &budget));
	CHECK_EQ(budget, 0);
}

static void cascade_is_resumed(void)
{
	unsigned int passes = 0, out = 0;
	u64 last;

	begin(TICK_NS, 0);
	last = fill_coarse_bucket(ENTRIES);
	while (out < ENTRIES) {
		unsigned int budget = 64;
		struct spot_wheel_entry *e;
		u64 moved = wheel.cascaded;

		while ((e = spot_wheel_expire(&wheel, last, &budget)))
			CHECK(e == &entries[out++]);
		CHECK(wheel.cascaded - moved <= 64);
		CHECK(budget == 0 || out == ENTRIES);
		passes++;
	}
	/* each was moved once and taken out once */
	CHECK_EQ(wheel.cascaded, ENTRIES);
	CHECK_EQ(passes, 2 * ENTRIES / 64);
	is_empty();
}

static void no_budget_no_work(void)
{
	unsigned int budget = 0;

	begin(TICK_NS, 0);
	arm(&entries[0], 1);
	arm(&entries[1], 100000);
	CHECK(!spot_wheel_expire(&wheel, 200000, &budget));
	CHECK(!spot_wheel_expire(&wheel, 200000, &budget));
	CHECK_EQ(wheel.cascaded, 0);
	CHECK_EQ(budget, 0);
	CHECK(expire(200000) == &entries[0]);
	CHECK(!spot_wheel_expire(&wheel, 200000, &budget));
	CHECK(expire(200000) == &entries[1]);
}

/* Whoever arrives in the middle comes after those that were there before. */
static void order_holds_within_a_cascade(void)
{
	unsigned int i;
	u64 last;

	begin(TICK_NS, 0);
	last = fill_coarse_bucket(100);
	for (i = 0; i < 10; i++)
		one_expire_call();
	CHECK(wheel.cascading);
	arm(&entries[100], last);
	arm(&entries[101], 0);
	CHECK(wheel.cascading);

	CHECK(expire(last) == &entries[0]);
	CHECK(expire(last) == &entries[101]);
	for (i = 1; i < 101; i++)
		CHECK(expire(last) == &entries[i]);
	is_empty();
}

static void removal_within_a_cascade(void)
{
	unsigned int i;
	u64 last;

	begin(TICK_NS, 0);
	last = fill_coarse_bucket(100);
	for (i = 0; i < 50; i++)
		one_expire_call();
	/* moved and not yet moved ones */
	for (i = 0; i < 100; i += 2)
		spot_wheel_remove(&wheel, &entries[i]);
	for (i = 1; i < 100; i += 2)
		CHECK(expire(last) == &entries[i]);
	CHECK(!expire(last));
	is_empty();
}

static void all_removed_within_a_cascade(void)
{
	unsigned int i;

	begin(TICK_NS, 0);
	fill_coarse_bucket(10);
	one_expire_call();
	for (i = 0; i < 10; i++)
		spot_wheel_remove(&wheel, &entries[i]);
	is_empty();
	spot_wheel_forward(&wheel, 1000);
	arm(&entries[0], 1010);
	fires_at(&entries[0], 1010);
}

static void removal_while_due(void)
{
	begin(TICK_NS, 0);
	arm(&entries[0], 5);
	arm(&entries[1], 5);
	arm(&entries[2], 5);
	CHECK(expire(5) == &entries[0]);
	spot_wheel_remove(&wheel, &entries[1]);
	CHECK(expire(5) == &entries[2]);
	is_empty();

	arm(&entries[0], 6);
	arm(&entries[1], 6);
	CHECK(expire(6) == &entries[0]);
	spot_wheel_remove(&wheel, &entries[1]);
	is_empty();
}

/* Whoever adds to the bucket that is being cascaded moves it on himself. */
static void check_adversary(bool expires)
{
	unsigned int count = 1000, adds = 0;
	u64 last;

	begin(TICK_NS, 0);
	last = fill_coarse_bucket(count);
	one_expire_call();
	CHECK(wheel.cascading);
	for (;;) {
		CHECK(count + adds < ENTRIES);
		arm(&entries[count + adds++], last);
		if (list_empty(&wheel.bucket[SPOT_WHEEL_SLOTS + 1]))
			break;
		if (expires)
			one_expire_call();
	}
	CHECK(adds <= (expires ? count / 2 : count));

	CHECK(expire(last) == &entries[0]);
	CHECK(!wheel.cascading);
	while (expire(last))
		adds--;
	CHECK_EQ(count + adds, 1);
}

static void cascade_ends_however_many_arrive(void)
{
	check_adversary(true);
	check_adversary(false);
}

/*
 * One that is added again with a deadline that is past, while an
 * advance over a long time still has others to take out.
 */
static void added_again_in_an_advance(void)
{
	const u64 far = 10000000;
	unsigned int budget;

	begin(TICK_NS, 0);
	arm(&entries[0], 5);
	arm(&entries[1], far);
	CHECK(expire(far) == &entries[0]);
	arm(&entries[0], 5);
	arm(&entries[2], far - 1);
	CHECK(expire(far) == &entries[1]);
	CHECK(!expire(far));
	/* next time, in the order in which they were added */
	CHECK_EQ(next(), far + 1);
	CHECK(expire(far + 1) == &entries[0]);
	CHECK(expire(far + 1) == &entries[2]);
	CHECK(!expire(far + 1));

	/* where the budget has ended an advance, it goes on in order */
	begin(TICK_NS, 0);
	arm(&entries[0], 5);
	arm(&entries[1], far);
	budget = 1;
	CHECK(spot_wheel_expire(&wheel, far, &budget) == &entries[0]);
	arm(&entries[0], 5);
	arm(&entries[2], far);
	spot_wheel_remove(&wheel, &entries[2]);
	CHECK_EQ(next(), wheel.processed);
	CHECK(!spot_wheel_expire(&wheel, far, &budget));
	arm(&entries[2], far - 1);
	CHECK(expire(far) == &entries[0]);
	CHECK(expire(far) == &entries[2]);
	CHECK(expire(far) == &entries[1]);
	CHECK(!expire(far));
	is_empty();
}

/* ---- slack ---- */

static unsigned int low_zeros(u64 tick)
{
	unsigned int zeros = 0;

	while (tick && tick % 2 == 0) {
		tick /= 2;
		zeros++;
	}
	return zeros;
}

static u64 roundest(u64 low, u64 high)
{
	u64 best = low, tick;

	for (tick = low; tick <= high; tick++)
		if (low_zeros(tick) > low_zeros(best))
			best = tick;
	return best;
}

static void arm_slack(struct spot_wheel_entry *e, u64 tick, u32 slack)
{
	e->deadline = tick * TICK_NS - tick % TICK_NS;
	e->slack = slack;
	spot_wheel_add(&wheel, e);
}

static void slack_takes_the_roundest_tick(void)
{
	u64 low;
	u32 slack;

	begin(TICK_NS, 0);
	for (low = 1; low < 300; low++) {
		for (slack = 0; slack < 140; slack++) {
			tap_where("%llu, slack %llu", low, slack);
			begin_again(0);
			arm_slack(&entries[0], low, slack);
			fires_at(&entries[0], roundest(low, low + slack));
			/* late already: the next tick, or one in the slack */
			begin_again(low + 70);
			arm_slack(&entries[0], low, slack);
			fires_at(&entries[0],
				 roundest(low, low + slack) > low + 70 ?
				 roundest(low, low + slack) : low + 71);
		}
	}
}

static void slack_at_the_ends(void)
{
	/* all of 2^62..2^62 + 2^32 - 1 begins with the roundest one */
	begin(2, 0);
	entries[0].deadline = S64_MAX;
	entries[0].slack = U32_MAX;
	spot_wheel_add(&wheel, &entries[0]);
	fires_at(&entries[0], 1ULL << 62);

	begin(2, 7);
	entries[0].deadline = -1;
	entries[0].slack = U32_MAX;
	CHECK_EQ(spot_wheel_add(&wheel, &entries[0]), 8);
	fires_at(&entries[0], 8);
}

/* A time up to @most ticks after @start, and not always on a tick. */
static s64 rnd_deadline(u64 start, u64 most)
{
	return (start + 1 + rnd_below(most)) * TICK_NS - rnd_below(TICK_NS);
}

/*
 * However far away it is, no timer is later than a wheel tick and its slack,
 * nor early, the clock going from event to event. Without cascades it would
 * be late by as much as a bucket of its level holds.
 */
static void late_by_a_tick_and_slack(void)
{
	unsigned int shift, i, out;
	u64 start, tick;

	for (shift = 2; shift < 58; shift++) {
		tap_where("up to 2^%llu ticks", shift, 0);
		rnd_state = shift;
		start = rnd_below(1ULL << shift);
		begin(TICK_NS, start);
		for (i = 0; i < ENTRIES; i++) {
			entries[i].deadline = rnd_deadline(start, 1ULL << shift);
			entries[i].slack = one_in(2) ? 0 :
				rnd_below(1ULL << (shift < 32 ? shift : 31));
			spot_wheel_add(&wheel, &entries[i]);
		}
		for (out = 0; spot_wheel_next(&wheel, &tick);) {
			struct spot_wheel_entry *e;

			while ((e = expire(tick))) {
				u64 late = tick * TICK_NS - e->deadline;

				CHECK(late < (1 + (u64)e->slack) * TICK_NS);
				out++;
			}
		}
		CHECK_EQ(out, ENTRIES);
	}
}

/* On how many ticks a thousand timers with @slack make the wheel work. */
static unsigned int wakeups(u32 slack)
{
	unsigned int i, ticks = 0, out = 0;
	u64 tick;

	begin(TICK_NS, 0);
	for (i = 0; i < 1000; i++)
		arm_slack(&entries[i], 1 + i, slack);
	for (tick = 1; tick < 3000; tick++) {
		struct spot_wheel_entry *e = expire(tick);

		ticks += !!e;
		for (; e; e = expire(tick)) {
			u64 low = spot_tick_ceil(&wheel.tick, e->deadline);

			CHECK(tick >= low && tick <= low + slack);
			out++;
		}
	}
	CHECK_EQ(out, 1000);
	return ticks;
}

static void slack_shares_wakeups(void)
{
	CHECK_EQ(wakeups(0), 1000);
	CHECK(wakeups(1) <= 501);
	CHECK(wakeups(15) <= 63);
	CHECK(wakeups(255) <= 5);
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "a3_case5_case7_every_start_and_distance", every_start_and_distance },
		{ "a3_case5_case7_all_distances_at_once", all_distances_at_once },
		{ "a3_case1_polled_between_ticks", polled_between_ticks },
		{ "a3_case14_past_deadline_does_not_move_base",
		  past_deadline_does_not_move_base },
		{ "a3_case7_rearmed_timer_keeps_last_deadline",
		  rearmed_timer_keeps_last_deadline },
		{ "a5_case5_every_level_edge", every_level_edge },
		{ "a5_order_holds_within_a_cascade",
		  order_holds_within_a_cascade },
		{ "a5_removal_within_a_cascade", removal_within_a_cascade },
		{ "a5_removal_while_due", removal_while_due },
		{ "a6_case10_case12_late_starts", late_starts },
		{ "a6_case12_clocks_beyond_ktime", clocks_beyond_ktime },
		{ "a6_case8_case11_far_deadlines", far_deadlines },
		{ "a7_all_removed_within_a_cascade",
		  all_removed_within_a_cascade },
		{ "a7_case17_earlier_timer_moves_next_event",
		  earlier_timer_moves_next_event },
		{ "a7_next_event_has_come_while_some_are_due",
		  next_event_has_come_while_some_are_due },
		{ "a7_case19_next_event_is_over_all_levels",
		  next_event_is_over_all_levels },
		{ "a8_case13_case20_idle_wheel_is_brought_up_to_date",
		  idle_wheel_is_brought_up_to_date },
		{ "a8_forward_passes_nothing_over",
		  forward_passes_nothing_over },
		{ "a8_jumps_cost_no_ticks", jumps_cost_no_ticks },
		{ "a8_crowds_cost_few_buckets", crowds_cost_few_buckets },
		{ "a9_cascade_is_resumed", cascade_is_resumed },
		{ "a9_no_budget_no_work", no_budget_no_work },
		{ "a9_cascade_ends_however_many_arrive",
		  cascade_ends_however_many_arrive },
		{ "a8_case4_added_again_in_an_advance", added_again_in_an_advance },
		{ "a9_case7_armed_within_a_budgeted_tick",
		  armed_within_a_budgeted_tick },
		{ "a9_case4_armed_into_the_tick_being_drained",
		  armed_into_the_tick_being_drained },
		{ "a14_slack_takes_the_roundest_tick",
		  slack_takes_the_roundest_tick },
		{ "a14_slack_at_the_ends", slack_at_the_ends },
		{ "a5_a14_case6_late_by_a_tick_and_slack",
		  late_by_a_tick_and_slack },
		{ "a14_slack_shares_wakeups", slack_shares_wakeups },
	};

	return tap_run(tests, ARRAY_SIZE(tests));
}
