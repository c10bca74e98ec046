// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of timers that call a function, through spot_timer.h as other
 * modules see it. Those whose function runs in softirq have a clock of the test;
 * those with a workqueue and several threads have the real one.
 */
#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "fake_clock.h"
#include "spot_lease.h"
#include "spot_timer.h"

#define NR_TICKS	16

/* A timer that writes down what is asked of it */
struct call_test {
	struct fake_clock clock;
	struct spot_timer timer;
	struct spot_timer other;
	struct spot_lease lease;
	struct spot_tick tick[NR_TICKS];
	int ticks;
	s64 runs;		/* how long the function takes */
	int busy;		/* times to say so, before it is done */
	void (*act)(struct kunit *test);
	u64 released[NR_TICKS];
	int releases;
	int result;
};

static struct call_test *call_test(struct kunit *test)
{
	return test->priv;
}

static enum spot_verdict call_fn(struct spot_timer *timer,
				 const struct spot_tick *tick)
{
	struct kunit *test = kunit_get_current_test();
	struct call_test *c = call_test(test);

	if (c->busy) {
		c->busy--;
		return SPOT_BUSY;
	}
	if (c->ticks < NR_TICKS)
		c->tick[c->ticks] = *tick;
	c->ticks++;
	c->clock.now += c->runs;
	if (c->act)
		c->act(test);
	return SPOT_DONE;
}

static int call_release(struct spot_timer *timer, u64 generation)
{
	struct call_test *c = call_test(kunit_get_current_test());

	if (c->releases < NR_TICKS)
		c->released[c->releases] = generation;
	c->releases++;
	return c->result;
}

static s64 call_start(struct call_test *c, s64 first, u64 period, u32 max)
{
	const struct spot_schedule when = {
		.first = first, .period = period, .max = max,
	};

	return spot_timer_start(&c->timer, &when);
}

static void call_expect(struct kunit *test, int i, u64 delivery, u64 scheduled,
			u64 skipped)
{
	struct call_test *c = call_test(test);

	KUNIT_ASSERT_LT(test, i, c->ticks);
	KUNIT_EXPECT_EQ(test, c->tick[i].delivery_index, delivery);
	KUNIT_EXPECT_EQ(test, c->tick[i].scheduled_index, scheduled);
	KUNIT_EXPECT_EQ(test, c->tick[i].skipped_ticks, skipped);
}

static enum spot_state call_state(struct call_test *c)
{
	struct spot_timer_info info;

	spot_timer_query(&c->timer, &info);
	return info.state;
}

/*
 * Policies
 */

static void c1_i1_one_tick(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	struct spot_end end;
	s64 generation = call_start(c, t + 10 * MS, 0, SPOT_SKIP_LATE);

	KUNIT_EXPECT_EQ(test, generation, 1);
	fake_clock_advance(&c->clock, t + 10 * MS - 1);
	KUNIT_EXPECT_EQ(test, c->ticks, 0);
	KUNIT_EXPECT_EQ(test, call_state(c), SPOT_PENDING);
	fake_clock_advance(&c->clock, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
	call_expect(test, 0, 1, 1, 0);
	KUNIT_EXPECT_EQ(test, c->tick[0].generation, 1);
	KUNIT_EXPECT_EQ(test, call_state(c), SPOT_IDLE);

	/* it has ended by itself, with a result (E5, E6) */
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 1, &end), 0);
	KUNIT_EXPECT_EQ(test, end.generation, 1);
	KUNIT_EXPECT_EQ(test, end.started, 1);
	KUNIT_EXPECT_EQ(test, end.result, 0);
	fake_clock_advance(&c->clock, t + 100 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
}

/* The case of contract D2, the function being late from 10 to 47 */
static void call_late_once(struct kunit *test, u32 max)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;

	call_start(c, t + 10 * MS, 10 * MS, max);
	c->runs = 37 * MS;
	fake_clock_advance(&c->clock, t + 10 * MS);
	c->runs = 0;
	KUNIT_EXPECT_EQ(test, c->clock.now, t + 47 * MS);
	fake_clock_advance(&c->clock, t + 58 * MS);
	call_expect(test, 0, 1, 1, 0);
}

static void c5_d2_i1_skip_late(struct kunit *test)
{
	struct call_test *c = call_test(test);

	call_late_once(test, SPOT_SKIP_LATE);
	KUNIT_EXPECT_EQ(test, c->ticks, 3);
	call_expect(test, 1, 2, 4, 2);
	call_expect(test, 2, 3, 5, 0);
}

static void d3_i1_catch_up(struct kunit *test)
{
	struct call_test *c = call_test(test);

	call_late_once(test, 2);
	KUNIT_EXPECT_EQ(test, c->ticks, 4);
	call_expect(test, 1, 2, 3, 1);
	call_expect(test, 2, 3, 4, 0);
	call_expect(test, 3, 4, 5, 0);
}

static void d4_i1_delay_next(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;

	call_late_once(test, SPOT_DELAY_NEXT);
	KUNIT_EXPECT_EQ(test, c->ticks, 2);
	call_expect(test, 1, 2, 2, 0);
	/* that was at 57 */
	fake_clock_advance(&c->clock, t + 67 * MS - 1);
	KUNIT_EXPECT_EQ(test, c->ticks, 2);
	fake_clock_advance(&c->clock, t + 67 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 3);
}

static void h1_i1_what_is_not_valid_changes_nothing(struct kunit *test)
{
	static const struct spot_schedule wrong[] = {
		{ .first = -1, .max = SPOT_SKIP_LATE },
		{ .first = S64_MIN },
		{ .period = (u64)S64_MAX + 1, .max = SPOT_SKIP_LATE },
		{ .period = U64_MAX },
		{ .period = MS, .max = (u32)INT_MAX + 1 },
		{ .period = MS, .max = U32_MAX },
	};
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, call_start(c, t + 10 * MS, 0, SPOT_SKIP_LATE), 1);
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ(test, spot_timer_start(&c->timer, &wrong[i]),
				-EINVAL);
	fake_clock_advance(&c->clock, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
	/* the ends of what is valid */
	KUNIT_EXPECT_EQ(test, call_start(c, KTIME_MAX, S64_MAX, INT_MAX), 2);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 0, NULL), 0);
}

static void a14_i1_slack(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = roundup(c->clock.now, 64 * MS);
	const struct spot_schedule when = {
		.first = t + 10 * MS, .slack = 60 * MS, .max = SPOT_SKIP_LATE,
	};

	spot_timer_start(&c->timer, &when);
	fake_clock_advance(&c->clock, t + 64 * MS - 1);
	KUNIT_EXPECT_EQ(test, c->ticks, 0);
	fake_clock_advance(&c->clock, t + 64 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
}

static void a9_i1_a_critical_one_comes_first(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	const struct spot_schedule when = {
		.first = t + 10 * MS, .max = SPOT_SKIP_LATE,
	};

	spot_timer_setup(&c->other, call_fn, SPOT_BOOTTIME, SPOT_CRITICAL);
	call_start(c, t + 9 * MS, MS, SPOT_SKIP_LATE);
	spot_timer_start(&c->timer, &when);
	spot_timer_start(&c->other, &when);
	spot_timer_start(&c->other, &when);
	fake_clock_advance(&c->clock, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, c->ticks, 2);
	KUNIT_EXPECT_EQ(test, c->tick[0].generation, 2);	/* of both */
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 1, NULL), -ESTALE);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->other, 1, NULL), -ESTALE);
}

/*
 * From the function itself
 */

static void act_start_again(struct kunit *test)
{
	struct call_test *c = call_test(test);

	if (c->ticks < 3)
		call_start(c, c->clock.now + 20 * MS, 0, SPOT_SKIP_LATE);
}

/* A time counts from when it is said, not from the tick. */
static void a1_case3_b2_i2_a_function_starts_its_timer_again(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	int i;

	c->act = act_start_again;
	c->runs = 50 * MS;
	c->timer.release = call_release;
	call_start(c, t + 10 * MS, 5 * MS, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 80 * MS - 1);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
	fake_clock_advance(&c->clock, t + 80 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 2);
	fake_clock_advance(&c->clock, t + 500 * MS);
	KUNIT_ASSERT_EQ(test, c->ticks, 3);
	/* each its own generation, which ends before the next one's handler */
	KUNIT_ASSERT_EQ(test, c->releases, 3);
	for (i = 0; i < 3; i++) {
		call_expect(test, i, 1, 1, 0);
		KUNIT_EXPECT_EQ(test, c->tick[i].generation, i + 1);
		KUNIT_EXPECT_EQ(test, c->released[i], i + 1);
	}
}

static void act_start_past(struct kunit *test)
{
	struct call_test *c = call_test(test);

	call_start(c, max(c->clock.now - 3600 * 1000 * MS * (c->ticks % 3), 0),
		   0, SPOT_SKIP_LATE);
}

/* Due now or before, it waits for the next tick all the same. */
static void a3_case4_i2_started_again_it_waits_for_the_next_tick(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t;
	int k;

	c->act = act_start_past;
	call_start(c, c->clock.now + MS, 0, SPOT_SKIP_LATE);
	/* late by an hour */
	c->clock.now += 3600 * 1000 * MS;
	t = c->clock.now;
	for (k = 1; k <= 6; k++) {
		fake_clock_advance(&c->clock, t + k * MS - 1);
		KUNIT_EXPECT_EQ(test, c->ticks, k);
	}
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&c->timer, 0, NULL), 0);
}

static void act_cancel(struct kunit *test)
{
	struct call_test *c = call_test(test);
	struct spot_end end = {};

	KUNIT_EXPECT_EQ(test, call_state(c), SPOT_RUNNING);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 0, &end),
			-EINPROGRESS);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&c->timer, 0, &end),
			-EINPROGRESS);
	KUNIT_EXPECT_EQ(test, end.generation, 0);
}

static void e4_case25_i2_a_function_cancels_its_own_timer(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	struct spot_end end;

	c->act = act_cancel;
	c->timer.release = call_release;
	c->result = -EIO;
	call_start(c, t + 10 * MS, 10 * MS, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 100 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
	KUNIT_EXPECT_EQ(test, c->releases, 1);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&c->timer, 1, &end), 0);
	KUNIT_EXPECT_EQ(test, end.started, 1);
	KUNIT_EXPECT_EQ(test, end.result, -EIO);
	KUNIT_EXPECT_EQ(test, c->releases, 1);
}

static void act_cancel_other(struct kunit *test)
{
	struct call_test *c = call_test(test);

	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->other, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&c->other, 0, NULL), 0);
}

static void e1_case22_i2_one_cancels_another_of_the_same_pass(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	const struct spot_schedule when = {
		.first = t + 10 * MS, .period = MS, .max = SPOT_SKIP_LATE,
	};

	c->act = act_cancel_other;
	spot_timer_setup(&c->other, call_fn, SPOT_MONOTONIC, 0);
	call_start(c, t + 10 * MS, 0, SPOT_SKIP_LATE);
	spot_timer_start(&c->other, &when);
	fake_clock_advance(&c->clock, t + 50 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
}

struct call_freed {
	struct spot_timer timer;
	int *called;
};

static enum spot_verdict call_free(struct spot_timer *timer,
				   const struct spot_tick *tick)
{
	struct call_freed *f = container_of(timer, struct call_freed, timer);

	(*f->called)++;
	memset(f, 0x5a, sizeof(*f));
	kfree(f);
	return SPOT_FREED;
}

static void i1_a_function_frees_its_timer(struct kunit *test)
{
	struct call_freed *f = kzalloc(sizeof(*f), GFP_KERNEL);
	struct call_test *c = call_test(test);
	const struct spot_schedule when = {
		.first = c->clock.now + MS, .max = SPOT_SKIP_LATE,
	};
	int called = 0;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->called = &called;
	spot_timer_setup(&f->timer, call_free, SPOT_MONOTONIC, 0);
	spot_timer_start(&f->timer, &when);
	fake_clock_advance(&c->clock, c->clock.now + 100 * MS);
	KUNIT_EXPECT_EQ(test, called, 1);
}

/*
 * The gate is busy
 */

static void f5_i2_a_tick_that_meets_a_busy_gate_is_kept(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	struct spot_end end;

	c->busy = 3;
	call_start(c, t + 10 * MS, 0, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 12 * MS);
	KUNIT_EXPECT_EQ(test, c->busy, 0);
	KUNIT_EXPECT_EQ(test, c->ticks, 0);
	KUNIT_EXPECT_EQ(test, call_state(c), SPOT_PENDING);
	/* once a wheel tick it is tried again, and counts when it was handled */
	fake_clock_advance(&c->clock, t + 13 * MS);
	KUNIT_ASSERT_EQ(test, c->ticks, 1);
	call_expect(test, 0, 1, 1, 0);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 0, &end), 0);
	KUNIT_EXPECT_EQ(test, end.started, 1);
}

static void f5_i2_what_it_misses_merges_as_the_policy_says(struct kunit *test)
{
	static const u32 max[] = { SPOT_SKIP_LATE, 2, SPOT_DELAY_NEXT };
	struct call_test *c = call_test(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(max); i++) {
		s64 t = c->clock.now;

		c->ticks = 0;
		c->busy = 25;
		call_start(c, t + 10 * MS, 10 * MS, max[i]);
		fake_clock_advance(&c->clock, t + 36 * MS);
		spot_timer_cancel(&c->timer, 0, NULL);
		if (max[i] == SPOT_SKIP_LATE) {
			KUNIT_EXPECT_EQ(test, c->ticks, 1);
			call_expect(test, 0, 1, 3, 2);
		} else if (max[i] == SPOT_DELAY_NEXT) {
			KUNIT_EXPECT_EQ(test, c->ticks, 1);
			call_expect(test, 0, 1, 1, 0);
		} else {
			KUNIT_EXPECT_EQ(test, c->ticks, 2);
			call_expect(test, 0, 1, 2, 1);
			call_expect(test, 1, 2, 3, 0);
		}
	}
}

static enum spot_verdict call_cancel_busy(struct spot_timer *timer,
					  const struct spot_tick *tick)
{
	call_fn(timer, tick);
	return SPOT_BUSY;
}

/* Cancelled or started again by a function that is busy, it does not go on. */
static void e6_f5_i2_busy_but_cancelled(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	struct spot_end end;

	spot_timer_setup(&c->timer, call_cancel_busy, SPOT_MONOTONIC, 0);
	c->act = act_cancel;
	call_start(c, t + 10 * MS, 0, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 50 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 1, &end), 0);
	/* it handled nothing, as it said */
	KUNIT_EXPECT_EQ(test, end.started, 0);
}

/*
 * Ends
 */

static void e2_e3_e5_i1_each_generation_is_released_once(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;
	struct spot_end end;

	c->timer.release = call_release;
	c->result = -ENOSPC;
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 0, &end), -ENOENT);
	/* 1 ends by being replaced, 2 by a cancel, 3 by itself */
	call_start(c, t + 10 * MS, 10 * MS, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 20 * MS);
	call_start(c, t + 30 * MS, 0, SPOT_SKIP_LATE);
	KUNIT_EXPECT_EQ(test, c->releases, 1);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 1, &end), 0);
	KUNIT_EXPECT_EQ(test, end.started, 2);
	KUNIT_EXPECT_EQ(test, end.result, -ENOSPC);

	c->result = -EDOM;
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 3, &end), -ENOENT);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 2, &end), 0);
	KUNIT_EXPECT_EQ(test, end.started, 0);
	KUNIT_EXPECT_EQ(test, end.result, -EDOM);
	c->result = 0;
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&c->timer, 0, &end), 0);
	KUNIT_EXPECT_EQ(test, end.generation, 2);
	KUNIT_EXPECT_EQ(test, end.result, -EDOM);
	/* of the older ones nothing is remembered */
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 1, &end), -ESTALE);

	call_start(c, t + 40 * MS, 0, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 40 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 3);
	KUNIT_EXPECT_EQ(test, c->releases, 3);
	KUNIT_EXPECT_EQ(test, c->released[2], 3);
}

static void act_replace_twice(struct kunit *test)
{
	struct call_test *c = call_test(test);

	if (c->ticks > 1)
		return;
	call_start(c, c->clock.now + MS, 0, SPOT_SKIP_LATE);
	call_start(c, c->clock.now + 5 * MS, 0, SPOT_SKIP_LATE);
	/* nothing of what is over is released before the handler has returned */
	KUNIT_EXPECT_EQ(test, c->releases, 0);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 2, NULL),
			-EINPROGRESS);
}

static void b2_e1_i1_what_was_replaced_ends_after_the_handler(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;

	c->timer.release = call_release;
	c->act = act_replace_twice;
	call_start(c, t + 10 * MS, 10 * MS, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, c->releases, 2);
	KUNIT_EXPECT_EQ(test, c->released[0], 1);
	KUNIT_EXPECT_EQ(test, c->released[1], 2);
	fake_clock_advance(&c->clock, t + 50 * MS);
	KUNIT_ASSERT_EQ(test, c->ticks, 2);
	KUNIT_EXPECT_EQ(test, c->tick[1].generation, 3);
	KUNIT_EXPECT_EQ(test, c->releases, 3);
}

/*
 * Leases
 */

static void g2_g4_i1_a_lease_holds_the_timer(struct kunit *test)
{
	struct call_test *c = call_test(test);
	struct spot_lease *lease = &c->lease;
	s64 t = c->clock.now;

	spot_lease_init(lease, NULL);
	c->timer.core.lease = lease;
	spot_lease_grant(lease, 1, t + 25 * MS, false);
	call_start(c, t + 10 * MS, 10 * MS, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 55 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 2);
	KUNIT_EXPECT_EQ(test, call_state(c), SPOT_HELD);
	KUNIT_EXPECT_EQ(test, spot_lease_renew(lease, t + 100 * MS),
			-EKEYEXPIRED);

	KUNIT_EXPECT_FALSE(test, spot_lease_revoke(lease));
	spot_lease_grant(lease, 2, t + 1000 * MS, false);
	spot_timer_resume(&c->timer);
	KUNIT_EXPECT_EQ(test, call_state(c), SPOT_PENDING);
	fake_clock_advance(&c->clock, t + 60 * MS);
	KUNIT_ASSERT_EQ(test, c->ticks, 3);
	/* the ticks at 30, 40 and 50 were missed */
	call_expect(test, 2, 3, 6, 3);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&c->timer, 0, NULL), 0);
	spot_lease_revoke(lease);
}

static void g4_i1_its_only_tick_was_missed(struct kunit *test)
{
	struct call_test *c = call_test(test);
	struct spot_lease *lease = &c->lease;
	s64 t = c->clock.now;
	struct spot_end end;

	spot_lease_init(lease, NULL);
	c->timer.core.lease = lease;
	c->timer.release = call_release;
	spot_lease_grant(lease, 1, t + 5 * MS, false);
	call_start(c, t + 10 * MS, 0, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 20 * MS);
	spot_lease_revoke(lease);
	spot_lease_grant(lease, 2, t + 1000 * MS, false);
	spot_timer_resume(&c->timer);
	KUNIT_EXPECT_EQ(test, call_state(c), SPOT_IDLE);
	KUNIT_EXPECT_EQ(test, c->releases, 1);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&c->timer, 1, &end), 0);
	KUNIT_EXPECT_EQ(test, end.started, 0);
	KUNIT_EXPECT_EQ(test, c->ticks, 0);
	spot_lease_revoke(lease);
}

static void act_adopt(struct kunit *test)
{
	struct call_test *c = call_test(test);

	if (c->ticks > 1)
		return;
	KUNIT_EXPECT_FALSE(test, spot_lease_revoke(&c->lease));
	spot_lease_grant(&c->lease, 2, c->clock.now + 1000 * MS, false);
}

/* The lease runs out and is adopted while the function runs, or waits. */
static void g4_i1_what_was_missed_does_not_come_in_a_burst(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;

	spot_lease_init(&c->lease, NULL);
	c->timer.core.lease = &c->lease;
	spot_lease_grant(&c->lease, 1, t + 25 * MS, false);
	call_start(c, t + 10 * MS, 10 * MS, INT_MAX);
	c->act = act_adopt;
	c->runs = 37 * MS;
	fake_clock_advance(&c->clock, t + 10 * MS);
	c->runs = 0;
	fake_clock_advance(&c->clock, t + 65 * MS);
	KUNIT_ASSERT_EQ(test, c->ticks, 3);
	call_expect(test, 1, 2, 5, 3);
	call_expect(test, 2, 3, 6, 0);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&c->timer, 0, NULL), 0);
	spot_lease_revoke(&c->lease);
}

static void act_set_back(struct kunit *test)
{
	struct call_test *c = call_test(test);

	c->act = NULL;
	c->clock.wall -= 3600 * 1000 * MS;
	call_start(c, c->clock.now + c->clock.wall + 1000 * MS, 0,
		   SPOT_SKIP_LATE);
}

/* The pass goes on by its own time, and must not take what was started then. */
static void a3_a13_i1_the_clock_is_set_back_during_a_pass(struct kunit *test)
{
	struct call_test *c = call_test(test);
	s64 t = c->clock.now;

	c->clock.wall = 86400 * (s64)NSEC_PER_SEC * 10000;
	spot_timer_setup(&c->timer, call_fn, SPOT_REALTIME, 0);
	c->act = act_set_back;
	call_start(c, t + c->clock.wall + 10 * MS, 0, SPOT_SKIP_LATE);
	fake_clock_advance(&c->clock, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
	fake_clock_advance(&c->clock, t + 1010 * MS - 1);
	KUNIT_EXPECT_EQ(test, c->ticks, 1);
	fake_clock_advance(&c->clock, t + 1010 * MS);
	KUNIT_EXPECT_EQ(test, c->ticks, 2);
}

static int call_init(struct kunit *test)
{
	struct call_test *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	fake_clock_init(test, &c->clock);
	spot_timer_setup(&c->timer, call_fn, SPOT_MONOTONIC, 0);
	return 0;
}

static void call_exit(struct kunit *test)
{
	struct call_test *c = call_test(test);

	fake_clock_stay(test);
	if (c)
		spot_timer_cancel_sync(&c->timer, 0, NULL);
	fake_clock_exit(test);
}

static struct kunit_case call_cases[] = {
	KUNIT_CASE(c1_i1_one_tick),
	KUNIT_CASE(c5_d2_i1_skip_late),
	KUNIT_CASE(d3_i1_catch_up),
	KUNIT_CASE(d4_i1_delay_next),
	KUNIT_CASE(h1_i1_what_is_not_valid_changes_nothing),
	KUNIT_CASE(a14_i1_slack),
	KUNIT_CASE(a9_i1_a_critical_one_comes_first),
	KUNIT_CASE(a1_case3_b2_i2_a_function_starts_its_timer_again),
	KUNIT_CASE(a3_case4_i2_started_again_it_waits_for_the_next_tick),
	KUNIT_CASE(e4_case25_i2_a_function_cancels_its_own_timer),
	KUNIT_CASE(e1_case22_i2_one_cancels_another_of_the_same_pass),
	KUNIT_CASE(i1_a_function_frees_its_timer),
	KUNIT_CASE(f5_i2_a_tick_that_meets_a_busy_gate_is_kept),
	KUNIT_CASE(f5_i2_what_it_misses_merges_as_the_policy_says),
	KUNIT_CASE(e6_f5_i2_busy_but_cancelled),
	KUNIT_CASE(e2_e3_e5_i1_each_generation_is_released_once),
	KUNIT_CASE(b2_e1_i1_what_was_replaced_ends_after_the_handler),
	KUNIT_CASE(g2_g4_i1_a_lease_holds_the_timer),
	KUNIT_CASE(g4_i1_its_only_tick_was_missed),
	KUNIT_CASE(g4_i1_what_was_missed_does_not_come_in_a_burst),
	KUNIT_CASE(a3_a13_i1_the_clock_is_set_back_during_a_pass),
	{}
};

static struct kunit_suite call_suite = {
	.name = "spot_timer",
	.init = call_init,
	.exit = call_exit,
	.test_cases = call_cases,
};

/*
 * With a workqueue, and several threads: on other CPUs than the one of the tests
 * with a clock of their own, where time is years ahead. The works are bound to
 * the CPU of the pass for that reason. Order is all that is looked at.
 */

struct work_test {
	struct spot_timer timer;
	struct cpumask cpus;	/* where all of this happens */
	struct workqueue_struct *wq;
	struct completion entered;	/* the function has been called */
	struct completion leave;	/* it may return */
	atomic_t inside;
	atomic_t together;
	atomic_t called;
	atomic_t releases;
	atomic_t returned;
	bool waits;
	int sleeps;
	int result;
	struct spot_tick last;
	int self;
};

static struct work_test *work_test(struct spot_timer *timer)
{
	return container_of(timer, struct work_test, timer);
}

static enum spot_verdict work_fn(struct spot_timer *timer,
				 const struct spot_tick *tick)
{
	struct work_test *w = work_test(timer);

	if (atomic_inc_return(&w->inside) > 1)
		atomic_inc(&w->together);
	atomic_inc(&w->called);
	w->last = *tick;
	if (w->sleeps)
		msleep(w->sleeps);
	if (w->waits) {
		complete(&w->entered);
		wait_for_completion(&w->leave);
	}
	atomic_inc(&w->returned);
	atomic_dec(&w->inside);
	return SPOT_DONE;
}

static enum spot_verdict work_cancel_self(struct spot_timer *timer,
					  const struct spot_tick *tick)
{
	struct work_test *w = work_test(timer);

	w->self = spot_timer_cancel_sync(timer, 0, NULL);
	complete(&w->entered);
	return SPOT_DONE;
}

static int work_release(struct spot_timer *timer, u64 generation)
{
	struct work_test *w = work_test(timer);

	atomic_inc(&w->releases);
	return w->result;
}

static s64 work_start(struct work_test *w, s64 delay, u64 period, u32 max)
{
	const struct spot_schedule when = {
		.first = spot_clock_now(SPOT_MONOTONIC) + delay,
		.period = period, .max = max,
	};

	return spot_timer_start(&w->timer, &when);
}

static void d1_i2_handlers_that_outlast_their_period(struct kunit *test)
{
	struct work_test *w = test->priv;
	struct spot_end end;

	w->sleeps = 20;
	work_start(w, MS, 2 * MS, SPOT_SKIP_LATE);
	while (atomic_read(&w->called) < 5)
		usleep_range(500, 1000);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&w->timer, 0, &end), 0);
	/* one after the other, none is running any more, and none follows */
	KUNIT_EXPECT_EQ(test, atomic_read(&w->together), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->inside), 0);
	KUNIT_EXPECT_EQ(test, end.started, atomic_read(&w->called));
	KUNIT_EXPECT_EQ(test, w->last.delivery_index, end.started);
	KUNIT_EXPECT_GT(test, w->last.scheduled_index, w->last.delivery_index);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->called), end.started);
}

static void b2_i2_a_new_generation_waits_for_the_handler(struct kunit *test)
{
	struct work_test *w = test->priv;
	struct spot_timer_info info;

	w->waits = true;
	KUNIT_EXPECT_EQ(test, work_start(w, MS, 0, SPOT_SKIP_LATE), 1);
	wait_for_completion(&w->entered);
	spot_timer_query(&w->timer, &info);
	KUNIT_EXPECT_EQ(test, info.state, SPOT_RUNNING);
	KUNIT_EXPECT_EQ(test, work_start(w, 0, 0, SPOT_SKIP_LATE), 2);
	do {
		usleep_range(500, 1000);
		spot_timer_query(&w->timer, &info);
	} while (info.state == SPOT_PENDING);
	/* due, and so it stays until the other one has returned */
	KUNIT_EXPECT_EQ(test, info.state, SPOT_READY);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->called), 1);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel(&w->timer, 1, NULL),
			-EINPROGRESS);
	w->waits = false;
	complete(&w->leave);
	while (atomic_read(&w->called) < 2)
		usleep_range(500, 1000);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&w->timer, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, w->last.generation, 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->together), 0);
}

static void e4_i2_cancelled_by_its_own_work(struct kunit *test)
{
	struct work_test *w = test->priv;
	struct spot_end end;

	w->timer.fn = work_cancel_self;
	w->timer.release = work_release;
	w->result = -EPIPE;
	work_start(w, MS, MS, SPOT_SKIP_LATE);
	wait_for_completion(&w->entered);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&w->timer, 1, &end), 0);
	KUNIT_EXPECT_EQ(test, w->self, -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, end.started, 1);
	KUNIT_EXPECT_EQ(test, end.result, -EPIPE);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->releases), 1);
}

/* A thread that is to be stopped by kthread_stop(), and then put. */
static struct task_struct *work_thread(struct kunit *test, int (*fn)(void *),
				       void *data)
{
	struct work_test *w = test->priv;
	struct task_struct *task = kthread_create(fn, data, "spot_timer_kunit");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	set_cpus_allowed_ptr(task, &w->cpus);
	wake_up_process(task);
	return task;
}

static void work_join(struct task_struct *task)
{
	kthread_stop(task);
	put_task_struct(task);
}

#define NR_CANCELLERS	32

struct canceller {
	struct work_test *w;
	struct task_struct *task;
	struct spot_end end;
	int ret;
	int returned;	/* handlers that had returned by then */
};

static int canceller_fn(void *data)
{
	struct canceller *c = data;

	c->ret = spot_timer_cancel_sync(&c->w->timer, 1, &c->end);
	c->returned = atomic_read(&c->w->returned);
	return 0;
}

static void e2_i1_all_who_cancel_see_it_end_alike(struct kunit *test)
{
	struct work_test *w = test->priv;
	struct canceller *c;
	int i;

	c = kunit_kcalloc(test, NR_CANCELLERS, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	w->waits = true;
	w->timer.release = work_release;
	w->result = -EIO;
	work_start(w, MS, 5 * MS, SPOT_SKIP_LATE);
	wait_for_completion(&w->entered);
	for (i = 0; i < NR_CANCELLERS; i++) {
		c[i].w = w;
		c[i].ret = 1;
		c[i].task = work_thread(test, canceller_fn, &c[i]);
	}
	msleep(30);
	for (i = 0; i < NR_CANCELLERS; i++)
		KUNIT_EXPECT_EQ(test, READ_ONCE(c[i].ret), 1);
	/* started again meanwhile, which is nothing to them */
	KUNIT_EXPECT_EQ(test, work_start(w, 3600 * 1000 * MS, 0,
					 SPOT_SKIP_LATE), 2);
	complete(&w->leave);
	for (i = 0; i < NR_CANCELLERS; i++) {
		work_join(c[i].task);
		KUNIT_EXPECT_EQ(test, c[i].ret, 0);
		KUNIT_EXPECT_EQ(test, c[i].returned, 1);
		KUNIT_EXPECT_EQ(test, c[i].end.generation, 1);
		KUNIT_EXPECT_EQ(test, c[i].end.started, 1);
		KUNIT_EXPECT_EQ(test, c[i].end.result, -EIO);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&w->releases), 1);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&w->timer, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->releases), 2);
}

/* Arm against expire and cancel, from several threads; nothing is ever lost. */
static int racer_fn(void *data)
{
	struct work_test *w = data;
	int i;

	for (i = 0; i < 2000; i++) {
		if (i % 3)
			work_start(w, i % 5 * MS / 4, i % 2 * MS,
				   SPOT_SKIP_LATE);
		else if (i % 2)
			spot_timer_cancel(&w->timer, 0, NULL);
		else
			spot_timer_cancel_sync(&w->timer, 0, NULL);
	}
	return 0;
}

static void racer_run(struct kunit *test, struct work_test *w)
{
	struct task_struct *task[4];
	struct spot_end end;
	unsigned int i;

	w->timer.release = work_release;
	for (i = 0; i < ARRAY_SIZE(task); i++)
		task[i] = work_thread(test, racer_fn, w);
	for (i = 0; i < ARRAY_SIZE(task); i++)
		work_join(task[i]);
	KUNIT_EXPECT_EQ(test, spot_timer_cancel_sync(&w->timer, 0, &end), 0);
	/* each generation was released once */
	KUNIT_EXPECT_EQ(test, atomic_read(&w->releases), end.generation);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->together), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->inside), 0);
}

static void e1_case24_i2_start_against_expiry_on_a_workqueue(struct kunit *test)
{
	racer_run(test, test->priv);
}

static void e1_case24_i2_start_against_expiry_in_softirq(struct kunit *test)
{
	struct work_test *w = test->priv;

	w->timer.wq = NULL;
	racer_run(test, w);
}

static int work_init(struct kunit *test)
{
	struct work_test *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	cpumask_andnot(&w->cpus, cpu_online_mask, cpumask_of(0));
	if (cpumask_empty(&w->cpus))
		kunit_skip(test, "needs another CPU");
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, &w->cpus), 0);
	w->wq = alloc_workqueue("spot_timer_kunit", 0, 0);
	KUNIT_ASSERT_NOT_NULL(test, w->wq);
	init_completion(&w->entered);
	init_completion(&w->leave);
	spot_timer_setup(&w->timer, work_fn, SPOT_MONOTONIC, 0);
	w->timer.wq = w->wq;
	test->priv = w;
	return 0;
}

static void work_exit(struct kunit *test)
{
	struct work_test *w = test->priv;

	if (!w)
		return;
	complete_all(&w->leave);
	spot_timer_cancel_sync(&w->timer, 0, NULL);
	destroy_workqueue(w->wq);
}

static struct kunit_case work_cases[] = {
	KUNIT_CASE(d1_i2_handlers_that_outlast_their_period),
	KUNIT_CASE(b2_i2_a_new_generation_waits_for_the_handler),
	KUNIT_CASE(e4_i2_cancelled_by_its_own_work),
	KUNIT_CASE(e2_i1_all_who_cancel_see_it_end_alike),
	KUNIT_CASE(e1_case24_i2_start_against_expiry_on_a_workqueue),
	KUNIT_CASE(e1_case24_i2_start_against_expiry_in_softirq),
	{}
};

static struct kunit_suite work_suite = {
	.name = "spot_timer_threads",
	.init = work_init,
	.exit = work_exit,
	.test_cases = work_cases,
};

kunit_test_suites(&call_suite, &work_suite);
