// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of contexts on the engine, with a clock of their own.
 *
 * Included by spot_dev.c, for they call what ioctl and read call once they
 * have copied in.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/prandom.h>

#include "kunit/fake_clock.h"

#define DEV_NR_RECORDS	256

struct dev_test {
	struct fake_clock clock;
	struct spot_ctx *ctx;
	struct spot_call call;
	struct spottimer_record rec[DEV_NR_RECORDS];
};

static void dev_advance(struct dev_test *d, s64 time)
{
	fake_clock_advance(&d->clock, time);
}

static s32 dev_register(struct dev_test *d, struct spottimer_register *e)
{
	e->error = 0;
	e->clock = e->clock ?: CLOCK_MONOTONIC;
	spot_register(&d->call, e, 1);
	return e->error;
}

/* A timer whose first tick is due at @first and that repeats every @period. */
static u64 dev_timer(struct kunit *test, u64 key, s64 first, s64 period,
		     u32 flags)
{
	struct spottimer_register e = {
		.key = key,
		.first = first,
		.period = period,
		.flags = flags | SPOTTIMER_REG_ABSTIME,
	};

	KUNIT_ASSERT_EQ(test, dev_register(test->priv, &e), 0);
	return e.generation;
}

static struct spottimer_cancel dev_cancel(struct dev_test *d, u64 key,
					  u64 generation, u32 flags)
{
	struct spottimer_cancel e = {
		.key = key, .generation = generation, .flags = flags,
	};

	spot_cancel(&d->call, &e, 1);
	return e;
}

static s32 dev_complete(struct dev_test *d, u64 key, u64 generation, s32 result)
{
	struct spottimer_complete e = {
		.key = key, .generation = generation, .result = result,
	};

	spot_complete(&d->call, &e, 1);
	return e.error;
}

static s32 dev_lease(struct dev_test *d, u32 op, u64 owner, u64 epoch,
		     s64 deadline, u32 flags)
{
	struct spottimer_lease e = {
		.owner = owner, .epoch = epoch, .deadline = deadline,
		.op = op, .flags = flags,
	};

	spot_lease(&d->call, &e, 1);
	if (d->call.settle)
		spot_walk(&d->call, spot_settle_visit, NULL);
	d->call.settle = false;
	return e.error;
}

static u32 dev_state(struct dev_test *d, u64 key, u64 generation)
{
	struct spottimer_query e = { .key = key, .generation = generation };

	spot_query(&d->call, &e, 1);
	return e.error ? 0 : e.state;
}

/* Read what there is into d->rec. Return: the number of records. */
static int dev_read(struct dev_test *d)
{
	struct kvec vec = { .iov_base = d->rec, .iov_len = sizeof(d->rec) };
	struct iov_iter to;

	iov_iter_kvec(&to, ITER_DEST, &vec, 1, vec.iov_len);
	return spot_read_records(&d->call, &to) / sizeof(d->rec[0]);
}

static void dev_expect(struct kunit *test, int i, u64 key, u64 delivery,
		       u64 scheduled, u64 skipped)
{
	struct dev_test *d = test->priv;

	KUNIT_EXPECT_EQ(test, d->rec[i].key, key);
	KUNIT_EXPECT_EQ(test, d->rec[i].delivery_index, delivery);
	KUNIT_EXPECT_EQ(test, d->rec[i].scheduled_index, scheduled);
	KUNIT_EXPECT_EQ(test, d->rec[i].skipped_ticks, skipped);
}

/*
 * Generations
 */

static void b2_reregister_withdraws_pending(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u64 old = dev_timer(test, 1, t + 10 * MS, 0, 0);
	u64 new = dev_timer(test, 1, t + 20 * MS, 0, 0);

	KUNIT_EXPECT_GT(test, new, old);
	dev_advance(d, t + 19 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 20 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].generation, new);
}

static void b2_reregister_drops_ready(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	dev_timer(test, 1, t + 10 * MS, 10 * MS, 0);
	dev_advance(d, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, dev_state(d, 1, 0), (u32)SPOTTIMER_READY);

	dev_timer(test, 1, t + 30 * MS, 0, 0);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_FALSE(test, spot_readable(d->ctx));
	dev_advance(d, t + 30 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 1, 1, 0);
}

static void b2_new_generation_waits_for_running(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u64 old = dev_timer(test, 1, t + 10 * MS, 10 * MS, SPOTTIMER_REG_MANUAL);
	u64 new;

	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	new = dev_timer(test, 1, t + 15 * MS, 0, 0);

	/* due, but not before the handler of the old one has completed */
	dev_advance(d, t + 50 * MS);
	KUNIT_EXPECT_FALSE(test, spot_readable(d->ctx));
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_EQ(test, dev_state(d, 1, old), (u32)SPOTTIMER_RUNNING);
	KUNIT_EXPECT_EQ(test, dev_state(d, 1, new), (u32)SPOTTIMER_HELD);

	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, old, 0), 0);
	KUNIT_EXPECT_EQ(test, dev_state(d, 1, old), (u32)SPOTTIMER_ENDED);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].generation, new);
	dev_expect(test, 0, 1, 1, 1, 0);
	/* nothing of the old one comes after that */
	dev_advance(d, t + 100 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
}

static void b2_case27_cancel_self_and_register_again(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u64 old = dev_timer(test, 1, t + 10 * MS, 10 * MS, SPOTTIMER_REG_MANUAL);
	u64 new;

	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, 0, 0).error, -EINPROGRESS);
	new = dev_timer(test, 1, t + 20 * MS, 10 * MS, SPOTTIMER_REG_EXCL);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, old, 0), 0);
	dev_advance(d, t + 20 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].generation, new);
}

static void b3_generations_are_never_used_twice(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u64 last = 0;
	int i;

	for (i = 0; i < 3000; i++) {
		u64 generation = dev_timer(test, i % 7, t + MS, 0, 0);

		KUNIT_ASSERT_GT(test, generation, last);
		last = generation;
		if (i % 3 == 0)
			KUNIT_ASSERT_EQ(test, dev_cancel(d, i % 7, 0, 0).error, 0);
	}
}

static void b3_an_old_handle_cannot_touch_a_new_timer(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u64 old = dev_timer(test, 1, t + 10 * MS, 0, SPOTTIMER_REG_MANUAL);
	u64 new = dev_timer(test, 1, t + 10 * MS, 0, SPOTTIMER_REG_MANUAL);
	struct spottimer_register e = {
		.key = 1, .generation = old, .first = MS,
	};

	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, old, 0).error, -ESTALE);
	KUNIT_EXPECT_EQ(test, dev_register(d, &e), -ESTALE);
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, old, 0), -ESTALE);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, new + 1, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, new, 0), 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, new + 1, 0).error, -ENOENT);
}

static void b4_exclusive_and_rearm(struct kunit *test)
{
	struct dev_test *d = test->priv;
	struct spottimer_register e = {
		.key = 1, .first = 10 * MS, .flags = SPOTTIMER_REG_REARM,
	};
	u64 generation;

	KUNIT_EXPECT_EQ(test, dev_register(d, &e), -ENOENT);
	e.flags = SPOTTIMER_REG_EXCL;
	KUNIT_EXPECT_EQ(test, dev_register(d, &e), 0);
	generation = e.generation;
	e.generation = 0;
	KUNIT_EXPECT_EQ(test, dev_register(d, &e), -EEXIST);
	KUNIT_EXPECT_EQ(test, dev_state(d, 1, generation),
			(u32)SPOTTIMER_PENDING);
	e.flags = SPOTTIMER_REG_REARM;
	KUNIT_EXPECT_EQ(test, dev_register(d, &e), 0);
	KUNIT_EXPECT_GT(test, e.generation, generation);
}

/*
 * Overrun policies, the figures of the contract on a 1 ms wheel
 */

/* Period 10 ms: taken at 10, completed at 47, taken again at once. */
static void dev_late_handler(struct kunit *test, u32 policy, u32 max, s64 *begin)
{
	struct dev_test *d = test->priv;
	struct spottimer_register e = {
		.key = 1, .period = 10 * MS, .policy = policy,
		.max_catch_up = max, .cookie = 77,
		.flags = SPOTTIMER_REG_ABSTIME | SPOTTIMER_REG_MANUAL,
	};
	s64 t = d->clock.now;

	e.first = t + 10 * MS;
	KUNIT_ASSERT_EQ(test, dev_register(d, &e), 0);
	dev_advance(d, t + 9 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 1, 1, 0);
	KUNIT_EXPECT_EQ(test, d->rec[0].cookie, 77);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags,
			SPOTTIMER_REC_TICK | SPOTTIMER_REC_MANUAL);

	/* D1: no second one meanwhile */
	dev_advance(d, t + 47 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), 0);
	*begin = t;
}

static void d2_f5_skip_late_figures(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t;

	dev_late_handler(test, SPOTTIMER_SKIP_LATE, 0, &t);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 2, 4, 2);
	/* and the phase stays */
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), 0);
	dev_advance(d, t + 49 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 50 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 3, 5, 0);
}

static void d3_catch_up_figures(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t;

	dev_late_handler(test, SPOTTIMER_CATCH_UP, 2, &t);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 2, 3, 1);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 3, 4, 0);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
}

static void d4_delay_next_figures(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t;

	dev_late_handler(test, SPOTTIMER_DELAY_NEXT, 0, &t);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 56 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 57 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 2, 2, 0);
}

static void c5_case21_no_drift_on_a_coarse_wheel(struct kunit *test)
{
	static const int fires[] = { 2, 3, 5, 6, 8, 9, 11, 12 };
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	int i, ms, n = 0;

	dev_timer(test, 1, t + 3 * MS / 2, 3 * MS / 2, 0);
	for (ms = 1; ms <= 12; ms++) {
		dev_advance(d, t + ms * MS);
		i = dev_read(d);
		if (!i)
			continue;
		KUNIT_ASSERT_EQ(test, i, 1);
		KUNIT_EXPECT_EQ(test, ms, fires[n++]);
		dev_expect(test, 0, 1, n, n, 0);
	}
	KUNIT_EXPECT_EQ(test, n, (int)ARRAY_SIZE(fires));
}

static void c1_what_a_record_tells(struct kunit *test)
{
	struct dev_test *d = test->priv;
	struct spottimer_register e = {
		.key = U64_MAX, .first = MS, .owner = 7, .epoch = 3,
		.cookie = 0x0123456789abcdef,
	};

	KUNIT_ASSERT_EQ(test, dev_lease(d, SPOTTIMER_LEASE_GRANT, 7, 3,
					3600 * 1000 * MS, 0), 0);
	KUNIT_ASSERT_EQ(test, dev_register(d, &e), 0);
	dev_advance(d, d->clock.now + MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, U64_MAX, 1, 1, 0);
	KUNIT_EXPECT_EQ(test, d->rec[0].generation, e.generation);
	KUNIT_EXPECT_EQ(test, d->rec[0].cookie, e.cookie);
	KUNIT_EXPECT_EQ(test, d->rec[0].owner, 7);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags,
			SPOTTIMER_REC_TICK | SPOTTIMER_REC_LAST);
	KUNIT_EXPECT_EQ(test, d->rec[0].result, 0);
}

/* A period below a wheel tick merges: one record per wheel tick. */
static void h4_short_period_is_no_storm(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	dev_timer(test, 1, t + 1, 1, 0);
	dev_advance(d, t + MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].scheduled_index, MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 2 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].scheduled_index, 2 * MS);
	KUNIT_EXPECT_EQ(test, d->rec[0].skipped_ticks, MS - 1);
}

/*
 * Cancel and completion
 */

static void e1_cancel_of_pending_and_ready(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	struct spottimer_cancel c;

	dev_timer(test, 1, t + 10 * MS, 0, 0);
	dev_timer(test, 2, t + 20 * MS, 0, 0);
	dev_advance(d, t + 10 * MS);
	KUNIT_EXPECT_TRUE(test, spot_readable(d->ctx));
	c = dev_cancel(d, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, c.error, 0);
	KUNIT_EXPECT_EQ(test, c.started, 0);
	KUNIT_EXPECT_EQ(test, c.cancelled, 1);
	KUNIT_EXPECT_FALSE(test, spot_readable(d->ctx));
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 2, 0, 0).error, 0);
	dev_advance(d, t + 100 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_EQ(test, d->ctx->timers, 0);
}

static void e3_cancel_of_running_ends_at_completion(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u64 generation = dev_timer(test, 1, t + 10 * MS, 10 * MS,
				   SPOTTIMER_REG_MANUAL);
	struct spottimer_cancel c;

	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	c = dev_cancel(d, 1, generation, SPOTTIMER_CANCEL_NOWAIT);
	KUNIT_EXPECT_EQ(test, c.error, -EINPROGRESS);
	dev_advance(d, t + 30 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, generation, -EIO), 0);

	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_END);
	KUNIT_EXPECT_EQ(test, d->rec[0].generation, generation);
	KUNIT_EXPECT_EQ(test, d->rec[0].result, -EIO);
	KUNIT_EXPECT_EQ(test, d->rec[0].delivery_index, 1);

	/* E5, E6: the same again */
	c = dev_cancel(d, 1, generation, 0);
	KUNIT_EXPECT_EQ(test, c.error, 0);
	KUNIT_EXPECT_EQ(test, c.result, -EIO);
	KUNIT_EXPECT_EQ(test, c.started, 1);
	KUNIT_EXPECT_EQ(test, c.cancelled, 0);
}

static void e5_what_is_remembered_is_bounded(struct kunit *test)
{
	struct dev_test *d = test->priv;
	unsigned int i;

	for (i = 0; i < SPOT_ENDED_MAX + 10; i++) {
		dev_timer(test, i, d->clock.now + MS, 0, 0);
		KUNIT_ASSERT_EQ(test, dev_cancel(d, i, 0, 0).error, 0);
	}
	KUNIT_EXPECT_EQ(test, d->ctx->objects, SPOT_ENDED_MAX);
	KUNIT_EXPECT_EQ(test, d->ctx->timers, 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 9, 0, 0).error, -ENOENT);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 10, 0, 0).error, 0);
}

/* Of a key only the last one, so that nothing grows with what has been. */
static void e5_one_end_of_a_key_is_remembered(struct kunit *test)
{
	struct dev_test *d = test->priv;
	u64 first = 0, last = 0;
	int i;

	for (i = 0; i < 100; i++) {
		first = last;
		last = dev_timer(test, 1, d->clock.now + MS, 0, 0);
		KUNIT_ASSERT_EQ(test, dev_cancel(d, 1, 0, 0).error, 0);
	}
	KUNIT_EXPECT_EQ(test, d->ctx->objects, 1);
	KUNIT_EXPECT_EQ(test, d->ctx->nr_ended, 1);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, last, 0).error, 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, first, 0).error, -ESTALE);
}

/* So too when the timer that comes after it was registered again. */
static void e5_one_end_of_a_key_is_remembered_after_a_rearm(struct kunit *test)
{
	struct dev_test *d = test->priv;
	u64 first, last;

	first = dev_timer(test, 1, d->clock.now + MS, 0, 0);
	KUNIT_ASSERT_EQ(test, dev_cancel(d, 1, 0, 0).error, 0);
	dev_timer(test, 1, d->clock.now + MS, 0, 0);
	last = dev_timer(test, 1, d->clock.now + MS, 0, SPOTTIMER_REG_REARM);
	KUNIT_ASSERT_EQ(test, dev_cancel(d, 1, 0, 0).error, 0);
	KUNIT_EXPECT_EQ(test, d->ctx->objects, 1);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, last, 0).error, 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, first, 0).error, -ESTALE);
}

/* The one that was replaced while it ran may end after the next one. */
static void e5_the_newer_end_is_remembered(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u64 old = dev_timer(test, 1, t + 10 * MS, 0, SPOTTIMER_REG_MANUAL);
	u64 new;

	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	new = dev_timer(test, 1, t + 20 * MS, 0, 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, new, 0).error, 0);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, old, -EIO), 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, new, 0).error, 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, new, 0).result, 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, 0, 0).generation, new);
	KUNIT_EXPECT_EQ(test, d->ctx->objects, 1);
}

/* One that was cancelled before, and whose handler runs still, is among all. */
static void e7_cancel_all_knows_of_what_is_dying(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	struct spottimer_cancel c;

	dev_timer(test, 1, t + 10 * MS, 0, SPOTTIMER_REG_MANUAL);
	dev_timer(test, 2, t + 90 * MS, 0, 0);
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	c = dev_cancel(d, 1, 0, SPOTTIMER_CANCEL_NOWAIT);
	KUNIT_EXPECT_EQ(test, c.error, -EINPROGRESS);
	c = dev_cancel(d, 0, 0, SPOTTIMER_CANCEL_ALL | SPOTTIMER_CANCEL_NOWAIT);
	KUNIT_EXPECT_EQ(test, c.error, -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, c.cancelled, 1);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), 0);
	c = dev_cancel(d, 0, 0, SPOTTIMER_CANCEL_ALL);
	KUNIT_EXPECT_EQ(test, c.error, 0);
	KUNIT_EXPECT_EQ(test, c.cancelled, 0);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_END);
}

static void f4_completing_what_does_not_run(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), -ENOENT);
	dev_timer(test, 1, t + 10 * MS, 10 * MS, SPOTTIMER_REG_MANUAL);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), -ENOENT);
	dev_advance(d, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), -ENOENT);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), -ENOENT);
}

/*
 * Order, budget, stall
 */

static void f7_target_order_then_registration_order(struct kunit *test)
{
	static const int delay[] = { 70, 5, 300, 5, 70, 64, 5000, 1, 300, 64 };
	static const int order[] = { 7, 1, 3, 5, 9, 0, 4, 2, 8, 6 };
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(delay); i++)
		dev_timer(test, i, t + delay[i] * MS, 0, 0);
	dev_advance(d, t + 6000 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), (int)ARRAY_SIZE(order));
	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_EQ(test, d->rec[i].key, order[i]);
}

static void a9_budget_holds_and_critical_goes_past_it(struct kunit *test)
{
	const unsigned int budget = 1024;	/* the default */
	const unsigned int n = 5 * budget / 2;
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	unsigned int i, got, passes = 0, total = 0;

	for (i = 0; i < n; i++)
		dev_timer(test, i, t + 10 * MS, 0, 0);
	dev_timer(test, n, t + 10 * MS, 0, SPOTTIMER_REG_CRITICAL);

	/* one pass, and no more than the budget of it */
	dev_advance(d, t + 10 * MS);
	while ((got = dev_read(d))) {
		if (!total)
			KUNIT_EXPECT_EQ(test, d->rec[0].key, n);
		for (i = 0; i < got; i++)
			KUNIT_ASSERT_EQ(test, d->rec[i].key,
					total + i ? total + i - 1 : n);
		total += got;
	}
	KUNIT_EXPECT_EQ(test, total, budget + 1);

	/* the rest follows in order, each pass after the other */
	while (total < n + 1) {
		KUNIT_ASSERT_GT(test, d->clock.armed[SPOT_MONOTONIC], d->clock.now);
		KUNIT_ASSERT_LT(test, d->clock.armed[SPOT_MONOTONIC], t + 20 * MS);
		dev_advance(d, d->clock.armed[SPOT_MONOTONIC]);
		passes++;
		while ((got = dev_read(d))) {
			for (i = 0; i < got; i++)
				KUNIT_ASSERT_EQ(test, d->rec[i].key,
						total + i - 1);
			total += got;
		}
	}
	KUNIT_EXPECT_EQ(test, passes, 2);
	KUNIT_EXPECT_EQ(test, total, n + 1);
}

/* Too much to do on one clock must not keep the others' timers waiting. */
static void a9_the_hold_is_the_cpus_and_clocks_take_turns(struct kunit *test)
{
	static const u32 clocks[] = {
		CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME
	};
	const unsigned int budget = 1024, n = 4 * budget;
	struct dev_test *d = test->priv;
	unsigned int crowd;

	for (crowd = 0; crowd < ARRAY_SIZE(clocks); crowd++) {
		unsigned int i, passes = 0, total = 0, others = 0;
		s64 t = d->clock.now, next = t + 10 * MS;

		for (i = 0; i < n + ARRAY_SIZE(clocks); i++) {
			struct spottimer_register e = {
				.key = i, .first = next,
				.flags = SPOTTIMER_REG_ABSTIME,
				.clock = clocks[i < n ? crowd : i - n],
			};

			spot_register(&d->call, &e, 1);
			KUNIT_ASSERT_EQ(test, e.error, 0);
		}
		while (total < i) {
			unsigned int came = 0;
			int got;

			/* one pass, whatever the clock of the others that are armed */
			dev_advance(d, next);
			while ((got = dev_read(d))) {
				came += got;
				while (got--)
					others += d->rec[got].key >= n;
			}
			KUNIT_EXPECT_LE(test, came, budget);
			total += came;
			passes++;
			if (passes == 3)
				KUNIT_EXPECT_GE(test, others, 2);
			fake_clock_next(&d->clock, &next);
			/* a cascade may move each of them once before */
			KUNIT_ASSERT_LE(test, passes, 10);
			KUNIT_ASSERT_TRUE(test, total == i || next > d->clock.now);
		}
		KUNIT_EXPECT_GE(test, passes, 5);
		KUNIT_EXPECT_EQ(test, others, ARRAY_SIZE(clocks));
	}
}

static void a7_nothing_pending_nothing_armed(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	dev_timer(test, 1, t + 3600 * (s64)NSEC_PER_SEC, 0, 0);
	KUNIT_EXPECT_GT(test, d->clock.armed[SPOT_MONOTONIC], t + MS);
	KUNIT_EXPECT_LT(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);
	dev_cancel(d, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);

	dev_timer(test, 1, t + 10 * MS, 0, 0);
	dev_advance(d, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);
}

static void f7_case35_critical_first_but_not_for_ever(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	int i, at = -1;

	dev_timer(test, 1000, t + 10 * MS, 0, 0);
	for (i = 0; i < 100; i++)
		dev_timer(test, i, t + 10 * MS, 0, SPOTTIMER_REG_CRITICAL);
	dev_advance(d, t + 10 * MS);
	/* to ask does not count as taking */
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_TRUE(test, spot_readable(d->ctx));
	KUNIT_ASSERT_EQ(test, dev_read(d), 101);
	KUNIT_EXPECT_EQ(test, d->rec[0].key, 0);
	for (i = 0; i < 101; i++)
		if (d->rec[i].key == 1000)
			at = i;
	KUNIT_EXPECT_EQ(test, at, 32);
}

/* However many others wait, it is one of them after 32 critical ones. */
static void f7_case35_one_other_after_32_critical(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	int i;

	for (i = 0; i < 96; i++) {
		dev_timer(test, 1000 + i, t + 10 * MS, 0, 0);
		dev_timer(test, i, t + 10 * MS, 0, SPOTTIMER_REG_CRITICAL);
	}
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 192);
	for (i = 0; i < 99; i++)
		KUNIT_ASSERT_EQ(test, d->rec[i].key,
				i % 33 == 32 ? 1000 + i / 33 : i - i / 33);
	for (; i < 192; i++)
		KUNIT_ASSERT_EQ(test, d->rec[i].key, 1000 + i - 96);
}

static void d5_a_stall_of_years_costs_one_record(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 year = 365 * 86400 * (s64)NSEC_PER_SEC;
	s64 t = d->clock.now;

	dev_timer(test, 1, t + 1, 1, 0);
	dev_advance(d, t + 2 * MS);
	d->clock.now = t + year;
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 1, year, year - 1);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
}

/*
 * By the hundred thousand: what is due comes in the order of its time, by
 * passes that keep to the budget, and nothing is looked at in vain. All of it
 * is counted.
 */

#define DEV_BUDGET	1024U	/* the default */
/* a kernel that looks for mistakes takes twenty times as long for each */
#define DEV_MANY	(IS_ENABLED(CONFIG_KASAN) ? 5000U : 100000U)

/* What the engine has done: its counters, over all CPUs */
struct dev_counts {
	u64 passes;
	u64 spurious;
	u64 moved;
	u64 entries;	/* moved or expired, what the budget is about */
	u64 started;
	u64 cancelled;
};

static u64 dev_counter(struct kunit *test, const char *counters,
		       const char *name)
{
	char line[32];
	u64 value = 0;
	int len = snprintf(line, sizeof(line), "\n%s ", name);
	const char *found = strstr(counters, line);

	if (!found || sscanf(found + len, "%llu", &value) != 1)
		KUNIT_FAIL(test, "there is no counter %s", name);
	return value;
}

static struct dev_counts dev_counts(struct kunit *test)
{
	struct seq_file m = { .size = SZ_16K };
	struct dev_counts c;

	m.buf = kunit_kzalloc(test, m.size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	spot_engine_show(&m);
	KUNIT_ASSERT_FALSE(test, seq_has_overflowed(&m));
	c.passes = dev_counter(test, m.buf, "passes");
	c.spurious = dev_counter(test, m.buf, "spurious");
	c.moved = dev_counter(test, m.buf, "cascaded");
	c.entries = c.moved + dev_counter(test, m.buf, "candidates");
	c.started = dev_counter(test, m.buf, "started");
	c.cancelled = dev_counter(test, m.buf, "cancelled");
	kunit_kfree(test, m.buf);
	return c;
}

/* What has been done since @c. */
static struct dev_counts dev_since(struct kunit *test,
				   const struct dev_counts *c)
{
	struct dev_counts now = dev_counts(test);

	now.passes -= c->passes;
	now.spurious -= c->spurious;
	now.moved -= c->moved;
	now.entries -= c->entries;
	now.started -= c->started;
	now.cancelled -= c->cancelled;
	return now;
}

/* A timer with one tick, whose record says by its cookie when that was due. */
static void dev_due(struct kunit *test, u64 key, s64 due, s64 slack, u32 flags)
{
	struct spottimer_register e = {
		.key = key, .first = due, .slack = slack, .cookie = due,
		.flags = flags | SPOTTIMER_REG_ABSTIME,
	};

	KUNIT_ASSERT_EQ(test, dev_register(test->priv, &e), 0);
}

/*
 * Run the one pass that is armed, and read what it made ready: all of it due,
 * in the order of its time, none before what is due at @last. Return: how many.
 */
static unsigned int dev_pass(struct kunit *test, s64 *last)
{
	struct dev_test *d = test->priv;
	struct dev_counts before = dev_counts(test);
	unsigned int came = 0;
	int i, n;

	KUNIT_ASSERT_NE(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);
	dev_advance(d, max(d->clock.now, d->clock.armed[SPOT_MONOTONIC]));
	KUNIT_ASSERT_EQ(test, dev_since(test, &before).passes, 1);
	while ((n = dev_read(d))) {
		for (i = 0; i < n; i++) {
			s64 due = d->rec[i].cookie;

			KUNIT_ASSERT_GE(test, due, *last);
			KUNIT_ASSERT_LE(test, due, d->clock.now);
			*last = due;
		}
		came += n;
	}
	return came;
}

/*
 * Run pass after pass until @n records have come. None but the last one may
 * leave some of its budget unused, and none may go beyond it.
 */
static struct dev_counts dev_passes(struct kunit *test, unsigned int n)
{
	struct dev_counts before = dev_counts(test), c = {};
	unsigned int came = 0;
	s64 last = 0;

	while (came < n) {
		u64 entries = c.entries;

		came += dev_pass(test, &last);
		c = dev_since(test, &before);
		KUNIT_ASSERT_LE(test, c.entries - entries, DEV_BUDGET);
	}
	KUNIT_EXPECT_EQ(test, came, n);
	KUNIT_EXPECT_EQ(test, c.passes, DIV_ROUND_UP(c.entries, DEV_BUDGET));
	KUNIT_EXPECT_EQ(test, c.spurious, 0);
	return c;
}

/* Those are still there, and come on their ticks. */
static void dev_expect_later(struct kunit *test, u64 key, unsigned int n)
{
	struct dev_test *d = test->priv;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct spottimer_query e = { .key = key + i };

		spot_query(&d->call, &e, 1);
		KUNIT_ASSERT_EQ(test, e.state, (u32)SPOTTIMER_PENDING);
		dev_advance(d, e.cookie - 1);
		KUNIT_ASSERT_EQ(test, dev_read(d), 0);
		dev_advance(d, e.cookie);
		KUNIT_ASSERT_EQ(test, dev_read(d), 1);
		KUNIT_ASSERT_EQ(test, d->rec[0].key, key + i);
	}
}

/* The clock jumps over all the ticks on which a crowd is due. */
static void dev_expect_jump(struct kunit *test, s64 jump)
{
	const unsigned int later = 50;
	struct dev_test *d = test->priv;
	u64 ticks = div_s64(jump, MS);
	struct dev_counts c;
	s64 t = d->clock.now;
	unsigned int i;

	for (i = 0; i < DEV_MANY; i++)
		dev_due(test, i, t + MS * (1 + hash_64(i + 1, 60) % ticks), 0, 0);
	for (i = 0; i < later; i++)
		dev_due(test, DEV_MANY + i,
			t + jump + (i + 1) * 7777 * MS, 0, 0);
	d->clock.now = t + jump;
	c = dev_passes(test, DEV_MANY);
	/* a timer moves down once for each level, not once for each tick */
	KUNIT_EXPECT_LE(test, c.moved, (DEV_MANY + later) *
			(ilog2(ticks) / SPOT_WHEEL_BITS + 1));
	dev_expect_later(test, DEV_MANY, later);
}

static void a8_a_jump_of_an_hour_over_a_hundred_thousand(struct kunit *test)
{
	dev_expect_jump(test, 3600 * (s64)NSEC_PER_SEC);
}

static void a8_a_jump_of_a_month_over_a_hundred_thousand(struct kunit *test)
{
	dev_expect_jump(test, 30 * 86400 * (s64)NSEC_PER_SEC);
}

/* Over 22 years, to the tenth bucket of a level where one holds two years. */
static void a8_a_jump_over_timers_on_every_level(struct kunit *test)
{
	const unsigned int levels = 7, each = 10;
	struct dev_test *d = test->priv;
	unsigned int level, i;
	struct dev_counts c;
	s64 t = d->clock.now;

	for (level = levels; level--;)
		for (i = 1; i <= each; i++)
			dev_due(test, level * each + i,
				t + i * (MS << (level * SPOT_WHEEL_BITS)), 0, 0);
	d->clock.now = t + each * (MS << ((levels - 1) * SPOT_WHEEL_BITS));
	dev_due(test, 1000, d->clock.now + 5000 * MS, 0, 0);
	c = dev_passes(test, levels * each);
	KUNIT_EXPECT_EQ(test, c.passes, 1);
	KUNIT_EXPECT_LE(test, c.moved, levels * levels * each + 1);
	dev_expect_later(test, 1000, 1);
}

/* All in one bucket, which is moved down before the first of them is due. */
static void a9_a_hundred_thousand_in_one_coarse_bucket(struct kunit *test)
{
	const unsigned int critical = 20;
	struct dev_test *d = test->priv;
	struct dev_counts before, c;
	unsigned int i, came;
	s64 bucket, last = 0;

	bucket = MS * round_up(div_s64(d->clock.now, MS) + SPOT_WHEEL_SLOTS,
			       SPOT_WHEEL_SLOTS);
	for (i = 0; i < DEV_MANY; i++)
		dev_due(test, i, bucket + MS * (i % SPOT_WHEEL_SLOTS), 0, 0);
	for (i = 0; i < critical; i++)
		dev_due(test, DEV_MANY + i, bucket, 0, SPOTTIMER_REG_CRITICAL);
	before = dev_counts(test);
	dev_advance(d, bucket - 1);
	KUNIT_EXPECT_EQ(test, dev_since(test, &before).passes, 0);

	/* the critical ones are past the budget, and past all that wait */
	d->clock.now = bucket + SPOT_WHEEL_SLOTS * MS;
	came = dev_pass(test, &last);
	KUNIT_EXPECT_EQ(test, came, critical);
	for (i = 0; i < critical; i++)
		KUNIT_EXPECT_EQ(test, d->rec[i].key, DEV_MANY + i);
	c = dev_since(test, &before);
	KUNIT_EXPECT_EQ(test, c.moved, critical + DEV_BUDGET);
	KUNIT_EXPECT_EQ(test, c.entries, 2 * critical + DEV_BUDGET);

	/* then the cascade goes on where it was; each is moved and taken once */
	c = dev_passes(test, DEV_MANY);
	KUNIT_EXPECT_EQ(test, c.passes + 1,
			DIV_ROUND_UP(2 * DEV_MANY, DEV_BUDGET));
	KUNIT_EXPECT_EQ(test, c.moved, DEV_MANY - DEV_BUDGET);
	KUNIT_EXPECT_EQ(test, c.entries, 2 * DEV_MANY - DEV_BUDGET);
}

/* A pass ends with the first look at the clock after its time is over. */
static void a9_the_budget_in_time_is_looked_at_every_64_timers(struct kunit *test)
{
	static const s64 steps[] = { MS, MS / 2, MS / 5, MS / 8 };
	const unsigned int each = 64;
	struct dev_test *d = test->priv;
	unsigned int i, k;

	for (k = 0; k < ARRAY_SIZE(steps); k++) {
		struct dev_counts before = dev_counts(test);
		s64 t = roundup(d->clock.now, MS), spent;
		u64 entries;

		for (i = 0; i < DEV_BUDGET; i++)
			dev_due(test, i, t + MS, 0, 0);
		d->clock.now = t + 2 * MS;
		d->clock.armed[SPOT_MONOTONIC] = KTIME_MAX;
		d->clock.step = steps[k];
		local_bh_disable();
		spot_base_pass(spot_base_here(SPOT_MONOTONIC));
		local_bh_enable();
		d->clock.step = 0;

		entries = dev_since(test, &before).entries;
		KUNIT_EXPECT_GE(test, entries, each);
		KUNIT_EXPECT_EQ(test, entries % each, 0);
		/* at the last look but one it was not over yet */
		spent = (entries / each - 1) * steps[k];
		KUNIT_EXPECT_LT(test, spent, MS);
		/* two looks at the clock belong to the pass as a whole */
		KUNIT_EXPECT_GE(test, spent + 3 * steps[k], MS);
		/* the rest comes, after as long as the pass took */
		KUNIT_EXPECT_GT(test, d->clock.armed[SPOT_MONOTONIC], d->clock.now);
		while (dev_read(d))
			;
		dev_advance(d, d->clock.now + 100 * MS);
		while (dev_read(d))
			;
		KUNIT_EXPECT_EQ(test, d->ctx->timers, 0);
		KUNIT_EXPECT_EQ(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);
	}
}

/* The passes that @n timers take, which are due tick by tick up to @end. */
static struct dev_counts dev_wake_ups(struct kunit *test, unsigned int n,
				      s64 end, s64 slack)
{
	struct dev_test *d = test->priv;
	struct dev_counts before;
	unsigned int i;
	s64 last = 0;

	dev_advance(d, end - 2 * n * MS);
	before = dev_counts(test);
	for (i = 0; i < n; i++)
		dev_due(test, i, end - (n - 1 - i) * MS, slack, 0);
	dev_advance(d, end - n * MS);
	KUNIT_EXPECT_EQ(test, dev_since(test, &before).passes, 0);
	for (i = 0; i < n;)
		i += dev_pass(test, &last);
	return dev_since(test, &before);
}

static void a14_with_slack_timers_share_a_wake_up(struct kunit *test)
{
	const unsigned int n = 10;
	struct dev_test *d = test->priv;
	s64 turn = SPOT_WHEEL_SLOTS * MS;
	s64 end = roundup(d->clock.now + turn, turn);
	struct dev_counts c;

	c = dev_wake_ups(test, n, end, 0);
	KUNIT_EXPECT_EQ(test, c.passes, n);
	KUNIT_EXPECT_EQ(test, d->clock.now, end);
	/* all of them may wait until the end, and that is the roundest tick */
	c = dev_wake_ups(test, n, end + turn, 2 * n * MS);
	KUNIT_EXPECT_EQ(test, c.passes, 1);
	KUNIT_EXPECT_EQ(test, d->clock.now, end + turn);
	/* just as much as it takes */
	c = dev_wake_ups(test, n, end + 2 * turn, (n - 1) * MS);
	KUNIT_EXPECT_EQ(test, c.passes, 1);
	KUNIT_EXPECT_EQ(test, c.spurious, 0);
}

static void a7_case17_case18_the_wake_moves_and_a_stale_one_does_no_harm(struct kunit *test)
{
	struct dev_test *d = test->priv;
	struct dev_counts before;
	s64 t = d->clock.now;

	dev_timer(test, 1, t + 200 * MS, 0, 0);
	dev_timer(test, 1, t + 10 * MS, 0, 0);
	KUNIT_EXPECT_LE(test, d->clock.armed[SPOT_MONOTONIC], t + 10 * MS);
	dev_advance(d, t + 10 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);

	before = dev_counts(test);
	dev_timer(test, 1, d->clock.now + 5 * MS, 0, 0);
	dev_timer(test, 2, d->clock.now + 8 * MS, 0, 0);
	dev_timer(test, 1, d->clock.now + 20 * MS, 0, 0);
	dev_advance(d, t + 17 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_EQ(test, dev_since(test, &before).passes, 1);
	KUNIT_EXPECT_EQ(test, dev_since(test, &before).spurious, 1);
	dev_advance(d, t + 18 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
	dev_advance(d, t + 30 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, dev_since(test, &before).spurious, 1);
}

static void a7_a11_case13_idle_time_costs_no_pass(struct kunit *test)
{
	const s64 hour = 3600 * (s64)NSEC_PER_SEC;
	struct dev_test *d = test->priv;
	struct dev_counts before = dev_counts(test), c;
	s64 t;

	KUNIT_EXPECT_EQ(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);
	dev_advance(d, d->clock.now + hour);
	KUNIT_EXPECT_EQ(test, dev_since(test, &before).passes, 0);
	/* after an hour with nothing to do 5 ms are 5 ms */
	t = d->clock.now;
	dev_due(test, 1, t + 5 * MS, 0, 0);
	dev_advance(d, t + 5 * MS - 1);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 5 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);

	/* one that is far costs a pass for each level, in the end */
	before = dev_counts(test);
	dev_due(test, 1, d->clock.now + hour, 0, 0);
	dev_advance(d, d->clock.now + hour / 4);
	KUNIT_EXPECT_LE(test, dev_since(test, &before).passes, 1);
	dev_expect_later(test, 1, 1);
	c = dev_since(test, &before);
	KUNIT_EXPECT_LE(test, c.passes, 5);
	KUNIT_EXPECT_EQ(test, c.spurious, 0);
}

/*
 * Times of all sizes, and long stalls
 */

/* Read one record, and no more. */
static bool dev_take(struct dev_test *d)
{
	struct kvec vec = { .iov_base = d->rec, .iov_len = sizeof(d->rec[0]) };
	struct iov_iter to;

	iov_iter_kvec(&to, ITER_DEST, &vec, 1, vec.iov_len);
	return spot_read_records(&d->call, &to);
}

#define DEV_SKIP_LATE	{ SPOTTIMER_SKIP_LATE, 0 }
#define DEV_CATCH_UP(n)	{ SPOTTIMER_CATCH_UP, n }
#define DEV_DELAY_NEXT	{ SPOTTIMER_DELAY_NEXT, 0 }

struct dev_policy {
	u32 policy;
	u32 max;
};

static const struct dev_policy dev_policies[] = {
	DEV_SKIP_LATE, DEV_CATCH_UP(0), DEV_CATCH_UP(3), DEV_CATCH_UP(INT_MAX),
	DEV_DELAY_NEXT,
};

static void dev_with_policy(struct kunit *test, const struct dev_policy *p,
			    u64 key, s64 first, s64 period)
{
	struct spottimer_register e = {
		.key = key, .first = first, .period = period,
		.policy = p->policy, .max_catch_up = p->max,
		.flags = SPOTTIMER_REG_ABSTIME,
	};

	KUNIT_ASSERT_EQ(test, dev_register(test->priv, &e), 0);
}

/*
 * The records of a timer of which @last was the last tick of @delivery that
 * came, and @newest ticks are due: up to four of them. Return: how many came.
 */
static int dev_expect_late(struct kunit *test, const struct dev_policy *p,
			   u64 key, u64 delivery, u64 last, u64 newest)
{
	struct dev_test *d = test->priv;
	u64 n = 1, from = newest, i;

	if (p->policy == SPOTTIMER_DELAY_NEXT) {
		from = last + 1;
	} else if (p->policy == SPOTTIMER_CATCH_UP) {
		n = min_t(u64, newest - last, p->max ?: 1);
		from = newest - n + 1;
	}
	for (i = 0; i < min(n, 4); i++) {
		KUNIT_ASSERT_TRUE(test, dev_take(d));
		dev_expect(test, 0, key, delivery + i + 1, from + i,
			   i ? 0 : from - last - 1);
	}
	/* then it is done, with what has come so far */
	if (i == n)
		KUNIT_EXPECT_FALSE(test, dev_take(d));
	return i;
}

/* Period 1 s, and nobody reads for 10 s: from a tick on, and in between two */
static void d2_d3_d4_case15_a_stall_of_ten_seconds(struct kunit *test)
{
	static const struct dev_policy policies[] = {
		DEV_SKIP_LATE, DEV_CATCH_UP(3), DEV_CATCH_UP(4), DEV_DELAY_NEXT,
	};
	const s64 second = NSEC_PER_SEC;
	struct dev_test *d = test->priv;
	unsigned int i, half;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		for (half = 0; half < 2; half++) {
			const struct dev_policy *p = &policies[i];
			s64 t = d->clock.now, end = t + 11 * second;
			u64 key = 2 * i + half;
			int n;

			end += half * second / 2;
			dev_with_policy(test, p, key, t + second, second);
			dev_advance(d, t + second + half * second / 2);
			KUNIT_ASSERT_EQ(test, dev_read(d), 1);
			dev_expect(test, 0, key, 1, 1, 0);
			dev_advance(d, end);
			n = dev_expect_late(test, p, key, 1, 1, 11);

			/* the phase stays; or else it is a full second later */
			if (p->policy != SPOTTIMER_DELAY_NEXT)
				end -= half * second / 2;
			dev_advance(d, end + second - 1);
			KUNIT_EXPECT_EQ(test, dev_read(d), 0);
			dev_advance(d, end + second);
			KUNIT_ASSERT_EQ(test, dev_read(d), 1);
			dev_expect(test, 0, key, 2 + n,
				   p->policy == SPOTTIMER_DELAY_NEXT ? 3 : 12, 0);
			KUNIT_EXPECT_EQ(test, dev_cancel(d, key, 0, 0).error, 0);
		}
	}
}

/* Period 300 ms from 0, taken at 1, 101, 301 and 951 */
static void d2_case16_the_phase_outlasts_a_slow_reader(struct kunit *test)
{
	static const struct {
		int at, came, scheduled, skipped;
	} reads[] = {
		{ 1, 1, 1, 0 }, { 101, 0, 0, 0 }, { 301, 1, 2, 0 },
		{ 951, 1, 4, 1 }, { 1199, 0, 0, 0 }, { 1200, 1, 5, 0 },
	};
	struct dev_test *d = test->priv;
	s64 t = d->clock.now + MS;
	unsigned int i, delivery = 0;

	dev_timer(test, 1, t, 300 * MS, 0);
	for (i = 0; i < ARRAY_SIZE(reads); i++) {
		dev_advance(d, t + reads[i].at * MS);
		KUNIT_ASSERT_EQ(test, dev_read(d), reads[i].came);
		if (reads[i].came)
			dev_expect(test, 0, 1, ++delivery, reads[i].scheduled,
				   reads[i].skipped);
	}
}

static void d5_d6_years_at_a_period_of_a_nanosecond(struct kunit *test)
{
	const s64 years = 3 * 365 * 86400 * (s64)NSEC_PER_SEC;
	struct dev_test *d = test->priv;
	struct dev_counts before;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dev_policies); i++) {
		const struct dev_policy *p = &dev_policies[i];
		s64 t = roundup(d->clock.now, MS);

		dev_with_policy(test, p, i, t + 1, 1);
		before = dev_counts(test);
		dev_advance(d, t + years);
		/* the first tick, and then nothing until somebody reads */
		KUNIT_EXPECT_EQ(test, dev_since(test, &before).passes, 1);
		dev_expect_late(test, p, i, 0, 0, years);
		KUNIT_EXPECT_EQ(test, dev_cancel(d, i, 0, 0).error, 0);
		while (dev_read(d))
			;
	}
}

/* A first time of 0 is long past, and what has been due since is counted. */
static void d6_case9_first_and_period_are_two_things(struct kunit *test)
{
	const s64 period = 1234567;
	struct dev_test *d = test->priv;
	unsigned int i;
	s64 t;

	for (i = 0; i < ARRAY_SIZE(dev_policies); i++) {
		const struct dev_policy *p = &dev_policies[i];

		t = roundup(d->clock.now, MS);
		d->clock.now = t;
		dev_with_policy(test, p, i, 0, period);
		KUNIT_EXPECT_FALSE(test, dev_take(d));
		dev_advance(d, t + MS);
		dev_expect_late(test, p, i, 0, 0,
				div64_u64(t + MS, period) + 1);
		KUNIT_EXPECT_EQ(test, dev_cancel(d, i, 0, 0).error, 0);
	}

	/* the first tick is due when it was said, and the others go by that */
	t = roundup(d->clock.now, MS);
	d->clock.now = t;
	dev_timer(test, 9, t + 7 * MS, 50 * MS, 0);
	for (i = 1; i < 5; i++) {
		dev_advance(d, t + 7 * MS + (i - 1) * 50 * MS - 1);
		KUNIT_EXPECT_EQ(test, dev_read(d), 0);
		dev_advance(d, t + 7 * MS + (i - 1) * 50 * MS);
		KUNIT_ASSERT_EQ(test, dev_read(d), 1);
		dev_expect(test, 0, 9, i, i, 0);
	}
}

static void a6_d6_case8_the_end_of_time(struct kunit *test)
{
	const s64 year = 365 * 86400 * (s64)NSEC_PER_SEC;
	struct dev_test *d = test->priv;
	struct spottimer_register e = { .key = 99, .first = S64_MAX };
	unsigned int i, n = ARRAY_SIZE(dev_policies);
	s64 t = d->clock.now;

	for (i = 0; i < n; i++) {
		const struct dev_policy *p = &dev_policies[i];

		dev_with_policy(test, p, 3 * i, KTIME_MAX, 1);
		dev_with_policy(test, p, 3 * i + 1, KTIME_MAX, KTIME_MAX);
		dev_with_policy(test, p, 3 * i + 2, t + MS, KTIME_MAX);
	}
	/* so long from now is the end of time as well */
	KUNIT_EXPECT_EQ(test, dev_register(d, &e), 0);
	e.first = -1;
	KUNIT_EXPECT_EQ(test, dev_register(d, &e), -EINVAL);

	dev_advance(d, t + MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), (int)n);
	for (i = 0; i < n; i++)
		dev_expect(test, i, 3 * i + 2, 1, 1, 0);
	dev_advance(d, t + year);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	for (i = 0; i < 3 * n; i++) {
		KUNIT_EXPECT_EQ(test, dev_state(d, i, 0),
				(u32)SPOTTIMER_PENDING);
		KUNIT_EXPECT_EQ(test, dev_cancel(d, i, 0, 0).started,
				i % 3 == 2);
	}
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 99, 0, 0).cancelled, 1);
	KUNIT_EXPECT_EQ(test, d->clock.armed[SPOT_MONOTONIC], KTIME_MAX);
}

static void a1_case3_a_time_counts_from_when_it_is_said(struct kunit *test)
{
	struct spottimer_register e = { .key = 2, .first = 20 * MS };
	struct dev_test *d = test->priv;
	s64 t = d->clock.now + 100 * MS;

	dev_timer(test, 1, t, 0, SPOTTIMER_REG_MANUAL);
	dev_advance(d, t);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_advance(d, t + 50 * MS);
	KUNIT_ASSERT_EQ(test, dev_register(d, &e), 0);
	dev_advance(d, t + 70 * MS - 1);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 70 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
}

/*
 * Leases
 */

static void dev_leased(struct kunit *test, u64 key, s64 first, s64 period,
		       u64 owner, u64 epoch)
{
	struct spottimer_register e = {
		.key = key, .first = first, .period = period, .owner = owner,
		.epoch = epoch, .flags = SPOTTIMER_REG_ABSTIME,
	};

	KUNIT_ASSERT_EQ(test, dev_register(test->priv, &e), 0);
}

#define dev_grant(d, owner, epoch, deadline, flags)			\
	dev_lease(d, SPOTTIMER_LEASE_GRANT, owner, epoch, deadline,	\
		  SPOTTIMER_LEASE_ABSTIME | (flags))
#define dev_renew(d, owner, epoch, deadline)				\
	dev_lease(d, SPOTTIMER_LEASE_RENEW, owner, epoch, deadline,	\
		  SPOTTIMER_LEASE_ABSTIME)

static void g2_g3_nothing_from_the_deadline_on(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	dev_leased(test, 1, t + 99 * MS, 0, 9, 5);
	dev_leased(test, 2, t + 100 * MS, 0, 9, 5);
	dev_leased(test, 3, t + 101 * MS, 0, 9, 5);
	dev_advance(d, t + 99 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].key, 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].owner, 9);

	dev_advance(d, t + 200 * MS);
	/* G2: it did not even get on the queue */
	KUNIT_EXPECT_EQ(test,
			spot_core_state(&spot_find(d->ctx, 2, 0)->core),
			SPOT_HELD);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_LEASE);
	KUNIT_EXPECT_EQ(test, d->rec[0].owner, 9);
	KUNIT_EXPECT_EQ(test, d->rec[0].generation, 5);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_EQ(test, dev_state(d, 2, 0), (u32)SPOTTIMER_HELD);
	KUNIT_EXPECT_EQ(test, dev_renew(d, 9, 5, t + 300 * MS), -EKEYEXPIRED);
}

/*
 * Once the tick would be queued so long before or after the deadline, once its
 * handler would start then.
 */
static void g2_g3_case38_around_the_deadline(struct kunit *test)
{
	static const s64 offsets[] = { -MS, -1, 0, 1, MS };
	struct dev_test *d = test->priv;
	unsigned int i, start;

	for (i = 0; i < 2 * ARRAY_SIZE(offsets); i++) {
		s64 offset = offsets[i / 2], tick = roundup(d->clock.now, MS) + 10 * MS;
		s64 deadline = tick - offset;
		int n, ticks = 0;

		start = i % 2;
		if (start)
			deadline = tick + 20 * MS;
		KUNIT_ASSERT_EQ(test, dev_grant(d, 1 + i, 5, deadline, 0), 0);
		dev_leased(test, i, tick, 0, 1 + i, 5);
		dev_advance(d, tick);
		KUNIT_EXPECT_EQ(test,
				spot_core_state(&spot_find(d->ctx, i, 0)->core),
				start || offset < 0 ? SPOT_READY : SPOT_HELD);
		if (start)
			d->clock.now = deadline + offset;
		KUNIT_EXPECT_EQ(test, dev_state(d, i, 0), offset < 0 ?
				(u32)SPOTTIMER_READY : (u32)SPOTTIMER_HELD);
		do {
			n = dev_read(d);
			while (n--)
				ticks += !!(d->rec[n].flags & SPOTTIMER_REC_TICK);
			/* and later none, but that the lease has run out */
			dev_advance(d, d->clock.now + 10 * MS);
		} while (d->clock.now < deadline + 100 * MS);
		KUNIT_EXPECT_EQ(test, ticks, offset < 0);
	}
}

/* The record was queued in time, and is read too late. */
static void g2_checked_again_when_the_handler_would_start(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	dev_leased(test, 1, t + 99 * MS, 10 * MS, 9, 5);
	dev_advance(d, t + 99 * MS);
	KUNIT_EXPECT_TRUE(test, spot_readable(d->ctx));
	/* nothing in the kernel runs meanwhile, either */
	d->clock.now = t + 100 * MS;
	KUNIT_EXPECT_FALSE(test, spot_readable(d->ctx));
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
}

static void g1_renewed_in_time(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	int i;

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	dev_leased(test, 1, t + 50 * MS, 50 * MS, 9, 5);
	for (i = 1; i <= 20; i++) {
		dev_advance(d, t + i * 50 * MS);
		KUNIT_ASSERT_EQ(test, dev_read(d), 1);
		dev_expect(test, 0, 1, i, i, 0);
		KUNIT_EXPECT_EQ(test, dev_renew(d, 9, 4, d->clock.now + MS), -ESTALE);
		KUNIT_ASSERT_EQ(test, dev_renew(d, 9, 5, d->clock.now + 100 * MS), 0);
	}
	/* a renewal may come early as well */
	KUNIT_EXPECT_EQ(test, dev_renew(d, 9, 5, d->clock.now + 10 * MS), 0);
	t = d->clock.now;
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_LEASE);
}

/*
 * Renewing does not look at timers, nor move the lease's own. Meanwhile the
 * table is away, so that whoever goes through the timers finds none and falls.
 */
static void g5_renewing_costs_the_same_with_any_number_of_timers(struct kunit *test)
{
	struct dev_test *d = test->priv;
	struct dev_counts before, c;
	struct spot_dev_timer **bucket;
	s64 t = d->clock.now, armed[2];
	unsigned int i;

	KUNIT_ASSERT_EQ(test, dev_grant(d, 7, 3, t + 100 * MS, 0), 0);
	for (i = 0; i < DEV_MANY; i++) {
		struct spottimer_register e = {
			.key = i, .first = 3600 * 1000 * MS, .owner = 7,
			.epoch = 3, .clock = i & 1 ? CLOCK_BOOTTIME : 0,
		};

		KUNIT_ASSERT_EQ(test, dev_register(d, &e), 0);
	}
	before = dev_counts(test);
	memcpy(armed, d->clock.armed, sizeof(armed));
	d->clock.armed[0] = -1;
	d->clock.armed[1] = -1;
	bucket = d->ctx->table.bucket;
	d->ctx->table.bucket = NULL;
	for (i = 1; i < 10; i++)
		KUNIT_EXPECT_EQ(test, dev_renew(d, 7, 3, t + (100 + i) * MS), 0);
	d->ctx->table.bucket = bucket;
	KUNIT_EXPECT_EQ(test, d->clock.armed[0], -1);
	KUNIT_EXPECT_EQ(test, d->clock.armed[1], -1);
	memcpy(d->clock.armed, armed, sizeof(armed));
	/* nothing was started, cancelled or moved, and no walk is to come */
	c = dev_since(test, &before);
	KUNIT_EXPECT_EQ(test, c.started + c.cancelled + c.entries + c.passes, 0);
	KUNIT_EXPECT_FALSE(test, d->call.settle);

	dev_advance(d, t + 108 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, t + 110 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 1);
	/* nor does the end of a lease look at them; each is seen when it is due */
	KUNIT_EXPECT_LE(test, dev_since(test, &before).entries, 10);
}

static void g4_case37_case40_a_new_epoch_ends_the_old_timers(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	struct spottimer_register e = {
		.key = 3, .first = MS, .owner = 9, .epoch = 5,
	};

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	dev_leased(test, 1, t + 110 * MS, 10 * MS, 9, 5);
	dev_leased(test, 2, t + 500 * MS, 10 * MS, 9, 5);
	dev_advance(d, t + 200 * MS);
	KUNIT_EXPECT_EQ(test, dev_grant(d, 9, 4, t + 300 * MS, 0), -ESTALE);
	KUNIT_EXPECT_EQ(test, dev_grant(d, 9, 5, t + 300 * MS, 0), -ESTALE);
	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 6, t + 900 * MS, 0), 0);
	KUNIT_EXPECT_EQ(test, d->ctx->timers, 0);
	KUNIT_EXPECT_EQ(test, dev_state(d, 1, 0), (u32)SPOTTIMER_ENDED);
	KUNIT_EXPECT_EQ(test, dev_state(d, 2, 0), (u32)SPOTTIMER_ENDED);
	KUNIT_EXPECT_EQ(test, dev_register(d, &e), -ESTALE);
	KUNIT_EXPECT_EQ(test, dev_renew(d, 9, 5, t + 300 * MS), -ESTALE);
	KUNIT_EXPECT_EQ(test, dev_grant(d, 9, 5, t + 300 * MS,
					SPOTTIMER_LEASE_ADOPT), -ESTALE);
	KUNIT_EXPECT_EQ(test, dev_lease(d, SPOTTIMER_LEASE_REVOKE, 9, 5, 0, 0),
			-ESTALE);
	KUNIT_EXPECT_EQ(test, dev_lease(d, SPOTTIMER_LEASE_REVOKE, 9, 5, 0,
					SPOTTIMER_LEASE_FORGET), -ESTALE);

	dev_leased(test, 1, t + 210 * MS, 0, 9, 6);
	dev_advance(d, t + 800 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 2);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_LEASE);
	KUNIT_EXPECT_EQ(test, d->rec[1].key, 1);
}

static void g4_adopted_timers_skip_what_they_missed(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	dev_leased(test, 1, t + 10 * MS, 10 * MS, 9, 5);	/* ready */
	dev_leased(test, 2, t + 110 * MS, 10 * MS, 9, 5);	/* held */
	dev_leased(test, 3, t + 500 * MS, 10 * MS, 9, 5);	/* pending */
	dev_leased(test, 4, t + 150 * MS, 0, 9, 5);		/* missed */
	dev_advance(d, t + 205 * MS);
	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 6, t + 900 * MS,
					SPOTTIMER_LEASE_ADOPT), 0);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_LEASE);

	dev_advance(d, t + 210 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 2);
	if (d->rec[0].key != 1)
		swap(d->rec[0], d->rec[1]);
	dev_expect(test, 0, 1, 1, 21, 20);
	dev_expect(test, 1, 2, 1, 11, 10);
	KUNIT_EXPECT_EQ(test, dev_state(d, 3, 0), (u32)SPOTTIMER_PENDING);
	KUNIT_EXPECT_EQ(test, dev_state(d, 4, 0), (u32)SPOTTIMER_ENDED);
}

/* What is registered after the adoption has missed nothing. */
static void g4_a_past_time_after_an_adoption_is_not_void(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	dev_advance(d, t + 200 * MS);
	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 6, t + 900 * MS,
					SPOTTIMER_LEASE_ADOPT), 0);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_leased(test, 1, t, 0, 9, 6);
	dev_advance(d, t + 201 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_expect(test, 0, 1, 1, 1, 0);
}

/* The grant comes before anything in the kernel has seen the lease lapse. */
static void g3_told_before_the_next_grant(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	u32 flags;

	for (flags = 0; flags <= SPOTTIMER_LEASE_ADOPT;
	     flags += SPOTTIMER_LEASE_ADOPT) {
		KUNIT_ASSERT_EQ(test, dev_grant(d, 9 + flags, 5, t + 100 * MS, 0),
				0);
		d->clock.now = t + 100 * MS;
		KUNIT_ASSERT_EQ(test, dev_grant(d, 9 + flags, 6, t + 900 * MS,
						flags), 0);
		KUNIT_ASSERT_EQ(test, dev_read(d), 1);
		KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_LEASE);
		KUNIT_EXPECT_EQ(test, d->rec[0].owner, 9 + flags);
		KUNIT_EXPECT_EQ(test, d->rec[0].generation, 5);
		t = d->clock.now;
	}
	/* one that is revoked has not run out */
	KUNIT_EXPECT_EQ(test, dev_lease(d, SPOTTIMER_LEASE_REVOKE, 9, 6, 0, 0), 0);
	dev_advance(d, t + 1000 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].owner, 9 + SPOTTIMER_LEASE_ADOPT);
}

static void g6_completion_after_the_lease_ended(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	struct spottimer_register e = {
		.key = 1, .first = 10 * MS, .period = 10 * MS, .owner = 9,
		.epoch = 5, .flags = SPOTTIMER_REG_MANUAL,
	};

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	KUNIT_ASSERT_EQ(test, dev_register(d, &e), 0);
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	dev_advance(d, t + 200 * MS);
	KUNIT_EXPECT_EQ(test, dev_state(d, 1, 0), (u32)SPOTTIMER_RUNNING);
	KUNIT_EXPECT_EQ(test, dev_complete(d, 1, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].flags, SPOTTIMER_REC_LEASE);
	KUNIT_EXPECT_FALSE(test, spot_readable(d->ctx));
}

static void g1_revoke_and_forget(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	KUNIT_ASSERT_EQ(test, dev_grant(d, 9, 5, t + 100 * MS, 0), 0);
	dev_leased(test, 1, t + 10 * MS, 10 * MS, 9, 5);
	KUNIT_EXPECT_EQ(test, dev_lease(d, SPOTTIMER_LEASE_REVOKE, 9, 5, 0, 0), 0);
	dev_advance(d, t + 50 * MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	KUNIT_EXPECT_EQ(test, dev_lease(d, SPOTTIMER_LEASE_REVOKE, 9, 5, 0, 0),
			-EKEYEXPIRED);
	KUNIT_EXPECT_EQ(test, dev_renew(d, 9, 5, t + 300 * MS), -EKEYEXPIRED);

	KUNIT_EXPECT_EQ(test, dev_lease(d, SPOTTIMER_LEASE_REVOKE, 9, 5, 0,
					SPOTTIMER_LEASE_FORGET), 0);
	KUNIT_EXPECT_EQ(test, d->ctx->timers, 0);
	KUNIT_EXPECT_EQ(test, d->ctx->nr_owners, 0);
	KUNIT_EXPECT_EQ(test, dev_grant(d, 9, 1, t + 300 * MS, 0), 0);
}

/*
 * The table
 */

static void f6_the_table_grows_and_shrinks(struct kunit *test)
{
	struct dev_test *d = test->priv;
	const unsigned int n = 20000;
	s64 t = d->clock.now;
	unsigned int i;

	for (i = 0; i < n; i++) {
		dev_timer(test, i * 4096ULL, t + 3600 * 1000 * MS, 0, 0);
		/* found while a resize is under way, too */
		KUNIT_ASSERT_NE(test, dev_state(d, (i / 2) * 4096ULL, 0), 0);
	}
	KUNIT_EXPECT_EQ(test, d->ctx->objects, n);
	/* chains of 5/4 timers on average, 26 bytes for each, at the most */
	KUNIT_EXPECT_LE(test, 4 * n, 5U << d->ctx->table.bits);
	KUNIT_EXPECT_GE(test, 16 * n, 5U << d->ctx->table.bits);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, dev_cancel(d, i * 4096ULL, 0, 0).error, 0);
	spot_table_resize(&d->call, d->ctx->objects);
	KUNIT_EXPECT_EQ(test, d->ctx->objects, SPOT_ENDED_MAX);
	KUNIT_EXPECT_LE(test, d->ctx->table.bits, 13);
}

/* Timers stay on the CPU that starts them; each function has a thread. */
/* What has moved has left the old table, which may be freed in the middle. */
static s64 dev_charged(struct dev_test *d)
{
	return percpu_counter_sum(&d->ctx->user->timers);
}

/* Memory comes and goes with the timers, and so does what the user is charged. */
static void h3_memory_is_given_back_and_used_again(struct kunit *test)
{
	const unsigned int n = 4 * SPOT_ENDED_MAX;
	struct dev_test *d = test->priv;
	unsigned int round, i;

	for (round = 0; round < 3; round++) {
		/* with what has ended, all of it is full but for the last block */
		for (i = 0; i < n; i++)
			dev_timer(test, round * n + i, d->clock.now + MS, 0, 0);
		KUNIT_EXPECT_EQ(test, dev_charged(d), n);
		KUNIT_EXPECT_EQ(test, d->ctx->nr_blocks,
				DIV_ROUND_UP(d->ctx->objects, SPOT_BLOCK_TIMERS));

		for (i = 0; i < n; i++)
			dev_cancel(d, round * n + i, 0, 0);
		KUNIT_EXPECT_EQ(test, dev_charged(d), 0);
		KUNIT_EXPECT_EQ(test, d->ctx->objects, SPOT_ENDED_MAX);
		KUNIT_EXPECT_LE(test, d->ctx->nr_blocks * SPOT_BLOCK_TIMERS,
				SPOT_ENDED_MAX + 3 * SPOT_BLOCK_TIMERS);
	}
}

static void h5_closing_in_the_middle_of_a_resize(struct kunit *test)
{
	struct dev_test *d = test->priv;
	unsigned int i;

	for (i = 0; i < 512; i++)
		dev_timer(test, i, d->clock.now + 3600 * 1000 * MS, 0, 0);
	spot_table_resize(&d->call, 2048);
	spot_enter(&d->call);
	spot_table_move(&d->call, 300);
	spot_leave(&d->call);
	KUNIT_ASSERT_NOT_NULL(test, d->ctx->old.bucket);
	KUNIT_ASSERT_EQ(test, d->ctx->moved, 300);
	for (i = 0; i < 300; i++)
		KUNIT_ASSERT_NULL(test, d->ctx->old.bucket[i]);
	for (i = 0; i < 512; i++)
		KUNIT_EXPECT_EQ(test, dev_state(d, i, 0),
				(u32)SPOTTIMER_PENDING);
}

/* The END record is on the queue between others while all are freed. */
static void h5_closing_with_an_end_record_unread(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;
	unsigned int i;

	dev_timer(test, 0, t + 10 * MS, 0, SPOTTIMER_REG_MANUAL);
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	for (i = 1; i < 200; i++)
		dev_timer(test, i, t + (i & 1 ? 20 : 30) * MS, 0, 0);
	dev_advance(d, t + 20 * MS);
	dev_cancel(d, 0, 0, SPOTTIMER_CANCEL_NOWAIT);
	KUNIT_ASSERT_EQ(test, dev_complete(d, 0, 0, 0), 0);
	dev_advance(d, t + 30 * MS);
	KUNIT_EXPECT_EQ(test, d->ctx->timers, 200);
	spot_ctx_free(d->ctx);
	KUNIT_EXPECT_TRUE(test, xa_empty(&spot_users));
	d->ctx = NULL;
}

/*
 * A clock that is set. A year is so long that a month is in another bucket of
 * the wheel, whatever the level.
 */

#define DAY		(86400 * (s64)NSEC_PER_SEC)
#define YEAR		(365 * DAY)
#define DEV_NR_WALL	100

static s64 dev_wall_now(struct dev_test *d)
{
	return d->clock.now + d->clock.wall;
}

static s64 dev_wall_timer(struct kunit *test, u64 key, s64 first, u32 flags)
{
	struct spottimer_register e = {
		.key = key, .first = first, .clock = CLOCK_REALTIME,
		.flags = flags | SPOTTIMER_REG_ABSTIME,
	};

	spot_register(&((struct dev_test *)test->priv)->call, &e, 1);
	KUNIT_ASSERT_EQ(test, e.error, 0);
	return first;
}

/* The tick at which the timer @key, due at @time, fires, and no other before. */
static void dev_wall_expect(struct kunit *test, u64 key, s64 time)
{
	struct dev_test *d = test->priv;
	s64 at = max(roundup(time, MS), dev_wall_now(d) + MS) - d->clock.wall;

	dev_advance(d, at - MS);
	KUNIT_EXPECT_EQ_MSG(test, dev_read(d), 0, "timer %llu is early", key);
	dev_advance(d, at);
	KUNIT_ASSERT_EQ_MSG(test, dev_read(d), 1, "timer %llu is late", key);
	KUNIT_EXPECT_EQ(test, d->rec[0].key, key);
}

/* Timers on all levels; then the clock is set by @shift. */
static void dev_wall_shift(struct kunit *test, s64 shift)
{
	struct dev_test *d = test->priv;
	s64 due[2 * SPOT_WHEEL_LEVELS];
	s64 delay = 7 * MS + 1;
	unsigned int i, n = 0;

	d->clock.wall = 60 * YEAR;
	while (n < ARRAY_SIZE(due) && delay < 10 * YEAR) {
		due[n] = dev_wall_timer(test, n, dev_wall_now(d) + delay,
					n % 3 ? 0 : SPOTTIMER_REG_CRITICAL);
		delay *= 8;
		n++;
	}
	KUNIT_ASSERT_GT(test, n, 10);

	d->clock.wall += shift;
	/* what has come due comes at the next tick, in order */
	dev_advance(d, d->clock.now + MS);
	for (i = 0; i < n && due[i] <= dev_wall_now(d) - MS; i++)
		;
	KUNIT_EXPECT_EQ(test, dev_read(d), i);
	KUNIT_EXPECT_EQ(test, i > 0, shift > 0);
	/* and the others when it is their time, whatever that is by now */
	for (; i < n; i++)
		dev_wall_expect(test, i, due[i]);
}

static void a13_forward_what_is_due_fires_at_the_next_tick(struct kunit *test)
{
	dev_wall_shift(test, 10 * (s64)NSEC_PER_SEC);
	dev_wall_shift(test, 3 * DAY);
	dev_wall_shift(test, 2 * YEAR);
}

static void a13_backward_the_wait_grows(struct kunit *test)
{
	dev_wall_shift(test, -MS);
	dev_wall_shift(test, -10 * (s64)NSEC_PER_SEC);
	dev_wall_shift(test, -3 * DAY);
	dev_wall_shift(test, -40 * YEAR);
}

/* The wheel is ahead of the clock then, and must not keep a new timer waiting. */
static void a13_after_the_clock_was_set_back_a_new_timer_is_not_late(struct kunit *test)
{
	struct dev_test *d = test->priv;
	s64 last, next;

	d->clock.wall = 60 * YEAR;
	last = dev_wall_timer(test, 1, dev_wall_now(d) + DAY, 0);
	dev_advance(d, d->clock.now + MS);
	d->clock.wall -= YEAR;
	next = dev_wall_timer(test, 2, dev_wall_now(d) + 50 * MS, 0);
	dev_wall_expect(test, 2, next);
	dev_wall_expect(test, 1, last);
}

/* Nobody looks at the wheel when the clock is set; what is due finds out. */
static void a13_what_was_due_when_the_clock_was_set_back(struct kunit *test)
{
	const unsigned int budget = 1024, n = budget + 100;
	struct dev_test *d = test->priv;
	s64 at, past;
	unsigned int i;

	/* at the next tick, if the clock had not been set */
	d->clock.wall = 60 * YEAR;
	past = dev_wall_timer(test, 1, dev_wall_now(d) - DAY, 0);
	at = dev_wall_timer(test, 2, dev_wall_now(d) + MS, 0);
	d->clock.wall -= 2 * DAY;
	dev_wall_expect(test, 1, past);
	dev_wall_expect(test, 2, at);

	/* at a tick for which the clock's own hrtimer is armed already */
	at = dev_wall_timer(test, 1, dev_wall_now(d) + 10 * MS, 0);
	dev_advance(d, d->clock.now + 9 * MS + MS / 2);
	dev_wall_timer(test, 2, dev_wall_now(d) - DAY, 0);
	d->clock.wall -= DAY / 24;
	dev_advance(d, d->clock.now + 2 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].key, 2);
	d->clock.now = roundup(d->clock.now, MS);
	dev_wall_expect(test, 1, at);

	/* at once, if there had not been so many of them */
	at = dev_wall_now(d) + 10 * MS;
	for (i = 0; i < n; i++)
		dev_wall_timer(test, i, at, 0);
	dev_advance(d, d->clock.now + 10 * MS);
	for (i = 0; i < budget;)
		i += dev_read(d);
	KUNIT_EXPECT_EQ(test, i, budget);
	d->clock.wall -= 3 * MS;
	dev_advance(d, at - d->clock.wall - MS);
	KUNIT_EXPECT_EQ(test, dev_read(d), 0);
	dev_advance(d, at - d->clock.wall);
	KUNIT_EXPECT_EQ(test, dev_read(d), n - budget);
}

/* On another CPU nothing can be armed, and what is has to stay then. */
static void a13_what_is_near_survives_a_cancel_on_another_cpu(struct kunit *test)
{
	unsigned int other = cpumask_next(0, cpu_online_mask);
	struct dev_test *d = test->priv;
	s64 t = d->clock.now;

	if (other >= nr_cpu_ids)
		kunit_skip(test, "there is one CPU");
	d->clock.wall = 60 * YEAR;
	dev_wall_timer(test, 1, t + d->clock.wall + 10 * MS, 0);
	dev_wall_timer(test, 2, t + d->clock.wall + 10 * MS,
		       SPOTTIMER_REG_CRITICAL);
	dev_advance(d, t + 9 * MS + MS / 2);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(other)), 0);
	KUNIT_EXPECT_EQ(test, dev_cancel(d, 1, 0, 0).error, 0);
	fake_clock_stay(test);
	dev_advance(d, t + 10 * MS);
	KUNIT_ASSERT_EQ(test, dev_read(d), 1);
	KUNIT_EXPECT_EQ(test, d->rec[0].key, 2);
}

/* A clock that is set anyhow, beside a list of what has to come when. */
static void a13_a_clock_that_is_set_at_random(struct kunit *test)
{
	struct dev_test *d = test->priv;
	struct rnd_state rnd;
	s64 due[DEV_NR_WALL] = {};
	unsigned int step, i, came = 0;

	prandom_seed_state(&rnd, 13);
	d->clock.wall = 60 * YEAR;
	for (step = 0; step < 5000; step++) {
		unsigned int scale = prandom_u32_state(&rnd) % 38;
		s64 delta = ((s64)prandom_u32_state(&rnd) % (1LL << scale)) * MS;
		s64 now = dev_wall_now(d);
		int got;

		i = prandom_u32_state(&rnd) % DEV_NR_WALL;
		switch (prandom_u32_state(&rnd) % 8) {
		case 0:
			if (now + delta < 200 * YEAR)
				d->clock.wall += delta;
			break;
		case 1:
			if (now - delta > YEAR)
				d->clock.wall -= delta;
			break;
		case 2:
			if (due[i] && due[i] > now)
				d->clock.wall += due[i] - now - MS;
			d->clock.wall = rounddown(d->clock.wall, MS);
			break;
		case 3 ... 5:
			if (!due[i])
				due[i] = dev_wall_timer(test, i, now + delta -
							(step % 3) * MS / 2, 0);
			break;
		default:
			dev_advance(d, d->clock.now + min_t(s64, delta, 100 * MS) + MS);
			now = dev_wall_now(d);
			while ((got = dev_read(d)))
				while (got--) {
					i = d->rec[got].key;
					KUNIT_ASSERT_NE(test, due[i], 0);
					KUNIT_ASSERT_LE(test, due[i], now);
					due[i] = 0;
					came++;
				}
			for (i = 0; i < DEV_NR_WALL; i++)
				KUNIT_ASSERT_TRUE(test, !due[i] || due[i] > now);
		}
	}
	KUNIT_EXPECT_GT(test, came, 500);
}

static int dev_test_init(struct kunit *test)
{
	struct dev_test *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, d);
	fake_clock_init(test, &d->clock);
	d->ctx = spot_ctx_new(GLOBAL_ROOT_UID);
	KUNIT_ASSERT_NOT_NULL(test, d->ctx);
	spot_call_init(&d->call, d->ctx);
	return 0;
}

static void dev_test_exit(struct kunit *test)
{
	struct dev_test *d = test->priv;

	fake_clock_stay(test);
	if (d && d->ctx)
		spot_ctx_free(d->ctx);
	fake_clock_exit(test);
}

static struct kunit_case dev_cases[] = {
	KUNIT_CASE(b2_reregister_withdraws_pending),
	KUNIT_CASE(b2_reregister_drops_ready),
	KUNIT_CASE(b2_new_generation_waits_for_running),
	KUNIT_CASE(b2_case27_cancel_self_and_register_again),
	KUNIT_CASE(b3_generations_are_never_used_twice),
	KUNIT_CASE(b3_an_old_handle_cannot_touch_a_new_timer),
	KUNIT_CASE(b4_exclusive_and_rearm),
	KUNIT_CASE(d2_f5_skip_late_figures),
	KUNIT_CASE(d3_catch_up_figures),
	KUNIT_CASE(d4_delay_next_figures),
	KUNIT_CASE(c5_case21_no_drift_on_a_coarse_wheel),
	KUNIT_CASE(c1_what_a_record_tells),
	KUNIT_CASE(g5_renewing_costs_the_same_with_any_number_of_timers),
	KUNIT_CASE(h4_short_period_is_no_storm),
	KUNIT_CASE(e1_cancel_of_pending_and_ready),
	KUNIT_CASE(e3_cancel_of_running_ends_at_completion),
	KUNIT_CASE(e5_what_is_remembered_is_bounded),
	KUNIT_CASE(e5_one_end_of_a_key_is_remembered),
	KUNIT_CASE(e5_one_end_of_a_key_is_remembered_after_a_rearm),
	KUNIT_CASE(e5_the_newer_end_is_remembered),
	KUNIT_CASE(e7_cancel_all_knows_of_what_is_dying),
	KUNIT_CASE(f4_completing_what_does_not_run),
	KUNIT_CASE(f7_target_order_then_registration_order),
	KUNIT_CASE(a9_budget_holds_and_critical_goes_past_it),
	KUNIT_CASE(a9_the_hold_is_the_cpus_and_clocks_take_turns),
	KUNIT_CASE(a7_nothing_pending_nothing_armed),
	KUNIT_CASE(a7_case17_case18_the_wake_moves_and_a_stale_one_does_no_harm),
	KUNIT_CASE(f7_case35_critical_first_but_not_for_ever),
	KUNIT_CASE(f7_case35_one_other_after_32_critical),
	KUNIT_CASE(d5_a_stall_of_years_costs_one_record),
	KUNIT_CASE(a8_a_jump_of_an_hour_over_a_hundred_thousand),
	KUNIT_CASE(a8_a_jump_of_a_month_over_a_hundred_thousand),
	KUNIT_CASE(a8_a_jump_over_timers_on_every_level),
	KUNIT_CASE(a9_a_hundred_thousand_in_one_coarse_bucket),
	KUNIT_CASE(a9_the_budget_in_time_is_looked_at_every_64_timers),
	KUNIT_CASE(a14_with_slack_timers_share_a_wake_up),
	KUNIT_CASE(a7_a11_case13_idle_time_costs_no_pass),
	KUNIT_CASE(d2_d3_d4_case15_a_stall_of_ten_seconds),
	KUNIT_CASE(d2_case16_the_phase_outlasts_a_slow_reader),
	KUNIT_CASE(d5_d6_years_at_a_period_of_a_nanosecond),
	KUNIT_CASE(d6_case9_first_and_period_are_two_things),
	KUNIT_CASE(a6_d6_case8_the_end_of_time),
	KUNIT_CASE(a1_case3_a_time_counts_from_when_it_is_said),
	KUNIT_CASE(g2_g3_nothing_from_the_deadline_on),
	KUNIT_CASE(g2_g3_case38_around_the_deadline),
	KUNIT_CASE(g2_checked_again_when_the_handler_would_start),
	KUNIT_CASE(g1_renewed_in_time),
	KUNIT_CASE(g4_case37_case40_a_new_epoch_ends_the_old_timers),
	KUNIT_CASE(g4_adopted_timers_skip_what_they_missed),
	KUNIT_CASE(g4_a_past_time_after_an_adoption_is_not_void),
	KUNIT_CASE(g3_told_before_the_next_grant),
	KUNIT_CASE(g6_completion_after_the_lease_ended),
	KUNIT_CASE(g1_revoke_and_forget),
	KUNIT_CASE(f6_the_table_grows_and_shrinks),
	KUNIT_CASE(h3_memory_is_given_back_and_used_again),
	KUNIT_CASE(h5_closing_in_the_middle_of_a_resize),
	KUNIT_CASE(h5_closing_with_an_end_record_unread),
	KUNIT_CASE(a13_forward_what_is_due_fires_at_the_next_tick),
	KUNIT_CASE(a13_backward_the_wait_grows),
	KUNIT_CASE(a13_after_the_clock_was_set_back_a_new_timer_is_not_late),
	KUNIT_CASE(a13_what_was_due_when_the_clock_was_set_back),
	KUNIT_CASE(a13_what_is_near_survives_a_cancel_on_another_cpu),
	KUNIT_CASE(a13_a_clock_that_is_set_at_random),
	{}
};

static struct kunit_suite dev_suite = {
	.name = "spot_dev",
	.init = dev_test_init,
	.exit = dev_test_exit,
	.test_cases = dev_cases,
};

kunit_test_suite(dev_suite);
