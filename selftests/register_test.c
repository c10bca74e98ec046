// SPDX-License-Identifier: GPL-2.0
/*
 * Registering: due times, keys and generations, batches, order.
 * A name begins with the clause of the contract that the test is about.
 */
#include "spottimer_test.h"

/*
 * A. Due times
 */

TEST_F(ctx, a1_a_relative_time_counts_from_the_call)
{
	struct spottimer_register reg = timer_once(7, 20 * MSEC);
	struct spottimer_record rec;
	__s64 begin = now();

	reg.cookie = 0x0123456789abcdef;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_NE(0, reg.generation);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_LE(begin + 20 * MSEC, now());
	EXPECT_TICK(rec, 7, reg.generation, 1, 1);
	EXPECT_EQ(0, rec.skipped_ticks);
	EXPECT_EQ(0x0123456789abcdef, rec.cookie);
	EXPECT_EQ(0, rec.owner);
	EXPECT_EQ(SPOTTIMER_REC_TICK | SPOTTIMER_REC_LAST, rec.flags);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, a1_an_absolute_time_is_on_the_timers_clock)
{
	static const clockid_t clock[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct spottimer_record rec;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(clock); i++) {
		struct spottimer_register reg = timer_once(i, 0);

		reg.clock = clock[i];
		reg.flags = SPOTTIMER_REG_ABSTIME;
		reg.first = now_on(clock[i]) + 15 * MSEC;
		ASSERT_EQ(0, spot_register(self->fd, &reg));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_LE(reg.first, now_on(clock[i]));
		EXPECT_TICK(rec, i, reg.generation, 1, 1);
	}
}

TEST_F(ctx, a3_a_tick_is_never_early)
{
	enum { N = 100 };
	struct spottimer_register reg[N];
	struct spottimer_record rec[N];
	__s64 base = now() + 20 * MSEC;
	int got = 0, i;

	/* all places within a wheel tick, and many wheel ticks */
	for (i = 0; i < N; i++) {
		reg[i] = timer_once(i, base + i * 777777LL);
		reg[i].flags = SPOTTIMER_REG_ABSTIME;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, N,
				sizeof(reg[0])));
	while (got < N) {
		int n;

		ASSERT_TRUE(readable_for(self->fd, PATIENCE));
		n = read_records(self->fd, rec, N);
		ASSERT_LT(0, n);
		for (i = 0; i < n; i++) {
			ASSERT_GT(N, rec[i].key);
			EXPECT_LE(reg[rec[i].key].first, now());
		}
		got += n;
	}
}

TEST_F(ctx, a3_case8_case36_a_time_that_is_past_is_due_at_the_next_tick)
{
	const __s64 past[] = { 0, 1, now() - SEC, now() };
	struct spottimer_register reg;
	struct spottimer_record rec;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(past); i++) {
		reg = timer_once(1, past[i]);
		reg.flags = SPOTTIMER_REG_ABSTIME;
		ASSERT_EQ(0, spot_register(self->fd, &reg));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_TICK(rec, 1, reg.generation, 1, 1);
	}
	reg = timer_once(1, 0);
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, reg.generation, 1, 1);
}

TEST_F(ctx, a6_case8_a_time_at_the_end_of_time_is_accepted_and_never_due)
{
	struct spottimer_register reg;
	struct spottimer_query q;
	int i;

	for (i = 0; i < 4; i++) {
		reg = timer_once(i, INT64_MAX);
		reg.period = i & 1 ? INT64_MAX : 0;
		reg.flags = i & 2 ? SPOTTIMER_REG_ABSTIME : 0;
		ASSERT_EQ(0, spot_register(self->fd, &reg));
		q = query(self->fd, i, 0);
		EXPECT_EQ(0, q.error);
		EXPECT_EQ(SPOTTIMER_PENDING, q.state);
		/* 200 years from now */
		EXPECT_LT(200LL * 365 * 24 * HOUR, q.remaining);
	}
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, cancel(self->fd, i, 0, 0).error);
}

TEST_F(ctx, a7_case17_a_nearer_timer_moves_the_wake_up_forward)
{
	struct spottimer_record rec;
	__u64 near;

	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	near = arm_once(self->fd, 2, 5 * MSEC, 0);
	ASSERT_NE(0, near);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 2, near, 1, 1);
}

TEST_F(ctx, a14_slack_may_delay_but_never_advances)
{
	struct spottimer_register reg = timer_once(1, 10 * MSEC);
	struct spottimer_record rec;
	__s64 begin = now();

	reg.slack = 50 * MSEC;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_LE(begin + 10 * MSEC, now());
	EXPECT_TICK(rec, 1, reg.generation, 1, 1);
}

/*
 * B. Keys and generations
 */

TEST_F(ctx, b1_keys_of_two_files_have_nothing_to_do_with_each_other)
{
	int other = spot_open(O_NONBLOCK);
	struct spottimer_record rec;
	__u64 mine, theirs;

	ASSERT_LE(0, other);
	theirs = arm_once(other, 1, HOUR, SPOTTIMER_REG_EXCL);
	ASSERT_NE(0, theirs);
	mine = arm_once(self->fd, 1, 10 * MSEC, SPOTTIMER_REG_EXCL);
	ASSERT_NE(0, mine);
	EXPECT_EQ(0, cancel(other, 1, 0, 0).error);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, mine, 1, 1);
	EXPECT_TRUE(nothing(other));
	close(other);
}

TEST_F(ctx, b1_every_64_bit_number_is_a_key)
{
	static const __u64 key[] = { 0, 1, INT64_MAX, 1ULL << 63, UINT64_MAX };
	struct spottimer_record rec[ARRAY_LEN(key)];
	unsigned int seen = 0, i, k;

	for (i = 0; i < ARRAY_LEN(key); i++)
		ASSERT_NE(0, arm_once(self->fd, key[i], 0, SPOTTIMER_REG_EXCL));
	ASSERT_EQ(ARRAY_LEN(key), take_all(self->fd, rec, ARRAY_LEN(key)));
	for (i = 0; i < ARRAY_LEN(key); i++)
		for (k = 0; k < ARRAY_LEN(key); k++)
			if (rec[i].key == key[k])
				seen |= 1 << k;
	EXPECT_EQ((1 << ARRAY_LEN(key)) - 1, seen);
}

TEST_F(ctx, b2_reregister_gives_a_larger_generation)
{
	__u64 first = arm_once(self->fd, 1, HOUR, 0);
	__u64 second = arm_once(self->fd, 1, HOUR, 0);

	ASSERT_NE(0, first);
	EXPECT_LT(first, second);
	EXPECT_EQ(second, query(self->fd, 1, 0).generation);
	EXPECT_EQ(-ESTALE, query(self->fd, 1, first).error);
}

TEST_F(ctx, b2_case28_reregister_drops_the_ready_record)
{
	struct spottimer_record rec;
	__u64 generation = arm_once(self->fd, 1, 0, 0);

	ASSERT_TRUE(readable_for(self->fd, PATIENCE));
	ASSERT_TRUE(wait_state(self->fd, 1, generation, SPOTTIMER_READY));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_FALSE(readable(self->fd));
	EXPECT_EQ(-EAGAIN, read_records(self->fd, &rec, 1));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

	/* the tick of the new one comes, also where both were ready */
	generation = arm_once(self->fd, 1, 0, 0);
	ASSERT_TRUE(wait_state(self->fd, 1, generation, SPOTTIMER_READY));
	generation = arm_once(self->fd, 1, 0, 0);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, generation, 1, 1);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, b2_g4_case28_a_ready_record_is_dropped_with_its_owners_epoch)
{
	struct spottimer_register reg = timer_once(1, 0);
	struct spottimer_record rec;

	ASSERT_EQ(0, lease_grant(self->fd, 5, 1, HOUR));
	reg.owner = 5;
	reg.epoch = 1;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	ASSERT_EQ(0, lease_grant(self->fd, 5, 2, HOUR));
	EXPECT_FALSE(readable(self->fd));
	EXPECT_EQ(-EAGAIN, read_records(self->fd, &rec, 1));

	reg.generation = 0;
	reg.epoch = 2;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, reg.generation, 1, 1);
	EXPECT_EQ(5, rec.owner);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, b2_reregister_with_an_earlier_time)
{
	struct spottimer_record rec;
	__u64 generation;

	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	generation = arm_once(self->fd, 1, 10 * MSEC, 0);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, generation, 1, 1);
}

TEST_F(ctx, b2_reregister_with_a_later_time)
{
	struct spottimer_record rec;
	__u64 generation;
	__s64 begin;

	ASSERT_NE(0, arm_once(self->fd, 1, 10 * MSEC, 0));
	begin = now();
	generation = arm_once(self->fd, 1, 60 * MSEC, 0);
	ASSERT_NE(0, generation);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_LE(begin + 60 * MSEC, now());
	EXPECT_TICK(rec, 1, generation, 1, 1);
}

TEST_F(ctx, b2_reregister_a_timer_that_repeats_starts_its_count_again)
{
	struct spottimer_record rec[3];
	__u64 generation;

	ASSERT_NE(0, arm_every(self->fd, 1, 2 * MSEC, 0));
	ASSERT_EQ(3, take_all(self->fd, rec, 3));
	generation = arm_every(self->fd, 1, HOUR, 0);
	ASSERT_NE(0, generation);
	EXPECT_EQ(0, query(self->fd, 1, 0).started);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

	generation = arm_once(self->fd, 1, 0, 0);
	ASSERT_EQ(0, take(self->fd, rec));
	EXPECT_TICK(rec[0], 1, generation, 1, 1);
}

TEST_F(ctx, b2_new_generation_waits_for_the_handler_that_runs)
{
	struct spottimer_record rec;
	__u64 old, new;

	old = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, old, 1, 1);

	new = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_LT(old, new);
	/* its tick comes due and has to wait */
	ASSERT_TRUE(wait_state(self->fd, 1, new, SPOTTIMER_HELD));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

	/* the old one may still be completed, by its name */
	EXPECT_EQ(0, complete(self->fd, 1, old, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, new, 1, 1);
	EXPECT_EQ(0, complete(self->fd, 1, new, 0));
}

TEST_F(ctx, b2_of_several_new_generations_the_last_one_starts)
{
	struct spottimer_record rec;
	__u64 old, new = 0;
	int i;

	old = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	for (i = 0; i < 5; i++) {
		new = arm_every(self->fd, 1, MSEC, 0);
		ASSERT_NE(0, new);
		ASSERT_TRUE(wait_state(self->fd, 1, new, SPOTTIMER_HELD));
	}
	EXPECT_TRUE(nothing(self->fd));
	EXPECT_EQ(0, complete(self->fd, 1, old, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(new, rec.generation);
	EXPECT_EQ(1, rec.delivery_index);
	EXPECT_LE(1, rec.scheduled_index);
	EXPECT_EQ(rec.scheduled_index - 1, rec.skipped_ticks);
}

TEST_F(ctx, b2_a_timer_that_waits_for_a_handler_can_be_cancelled)
{
	struct spottimer_record rec;
	struct spottimer_cancel c;
	__u64 old, new;

	old = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	new = arm_once(self->fd, 1, 0, 0);
	ASSERT_TRUE(wait_state(self->fd, 1, new, SPOTTIMER_HELD));
	c = cancel(self->fd, 1, new, 0);
	EXPECT_EQ(0, c.error);
	EXPECT_EQ(0, c.started);
	EXPECT_EQ(0, complete(self->fd, 1, old, 0));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, b3_a_generation_number_is_never_used_again)
{
	__u64 last = 0, generation;
	int i;

	for (i = 0; i < 2000; i++) {
		generation = arm_once(self->fd, i % 3, HOUR, 0);
		ASSERT_LT(last, generation);
		last = generation;
		if (i % 5 == 0)
			ASSERT_EQ(0, cancel(self->fd, i % 3, 0, 0).error);
	}
}

TEST_F(ctx, b3_register_may_name_the_generation_to_be_replaced)
{
	struct spottimer_register reg;
	__u64 first, second;

	first = arm_once(self->fd, 1, HOUR, 0);
	reg = timer_once(1, HOUR);
	reg.generation = first;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	second = reg.generation;
	EXPECT_LT(first, second);

	reg.generation = first;
	EXPECT_EQ(-ESTALE, spot_register(self->fd, &reg));
	EXPECT_EQ(second, query(self->fd, 1, 0).generation);

	ASSERT_EQ(0, cancel(self->fd, 1, second, 0).error);
	reg.generation = second;
	EXPECT_EQ(-ENOENT, spot_register(self->fd, &reg));
	reg.key = 2;
	EXPECT_EQ(-ENOENT, spot_register(self->fd, &reg));
	EXPECT_EQ(-ENOENT, query(self->fd, 2, 0).error);
}

TEST_F(ctx, b3_an_old_handle_does_not_touch_a_new_timer)
{
	__u64 old = arm_once(self->fd, 1, HOUR, 0);
	__u64 new = arm_once(self->fd, 1, HOUR, 0);
	struct spottimer_query q;

	EXPECT_EQ(-ESTALE, cancel(self->fd, 1, old, 0).error);
	EXPECT_EQ(-ESTALE, complete(self->fd, 1, old, 0));
	q = query(self->fd, 1, 0);
	EXPECT_EQ(new, q.generation);
	EXPECT_EQ(SPOTTIMER_PENDING, q.state);
}

TEST_F(ctx, b4_exclusive_register_fails_where_the_key_has_a_timer)
{
	struct spottimer_record rec;
	struct spottimer_register reg;
	__u64 generation;

	generation = arm_once(self->fd, 1, HOUR, SPOTTIMER_REG_EXCL);
	ASSERT_NE(0, generation);
	reg = timer_once(1, HOUR);
	reg.flags = SPOTTIMER_REG_EXCL;
	EXPECT_EQ(-EEXIST, spot_register(self->fd, &reg));
	EXPECT_EQ(generation, query(self->fd, 1, 0).generation);

	/* it is free again once that was cancelled, or was the last tick */
	ASSERT_EQ(0, cancel(self->fd, 1, 0, 0).error);
	ASSERT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_EXCL));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_EXCL));
}

TEST_F(ctx, b4_rearm_changes_only_a_timer_that_exists)
{
	struct spottimer_record rec;
	struct spottimer_register reg = timer_once(1, 0);
	__u64 generation;

	reg.flags = SPOTTIMER_REG_REARM;
	EXPECT_EQ(-ENOENT, spot_register(self->fd, &reg));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

	generation = arm_once(self->fd, 1, HOUR, 0);
	ASSERT_NE(0, generation);
	reg.cookie = 99;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	EXPECT_LT(generation, reg.generation);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, reg.generation, 1, 1);
	EXPECT_EQ(99, rec.cookie);

	/* that was its last tick */
	reg.generation = 0;
	EXPECT_EQ(-ENOENT, spot_register(self->fd, &reg));
}

TEST_F(ctx, b4_a_timer_that_is_cancelled_cannot_be_rearmed)
{
	struct spottimer_register reg = timer_once(1, HOUR);

	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	ASSERT_EQ(0, cancel(self->fd, 1, 0, 0).error);
	reg.flags = SPOTTIMER_REG_REARM;
	EXPECT_EQ(-ENOENT, spot_register(self->fd, &reg));
}

/*
 * F. Batches, order
 */

TEST_F(ctx, f6_a_batch_of_a_thousand_has_a_result_for_each)
{
	enum { N = 1000 };
	static struct spottimer_register reg[N];
	static struct spottimer_record rec[N];
	static unsigned char seen[N];
	int good = 0, i;

	for (i = 0; i < N; i++) {
		reg[i] = timer_once(i, (i % 20) * MSEC);
		reg[i].error = 1;
		if (i % 7 == 3)
			reg[i].first = -1;
		else
			good++;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, N,
				sizeof(reg[0])));
	for (i = 0; i < N; i++) {
		if (i % 7 == 3) {
			ASSERT_EQ(-EINVAL, reg[i].error);
		} else {
			ASSERT_EQ(0, reg[i].error);
			ASSERT_NE(0, reg[i].generation);
		}
	}
	ASSERT_EQ(good, take_all(self->fd, rec, good));
	for (i = 0; i < good; i++) {
		__u64 key = rec[i].key;

		ASSERT_GT(N, key);
		ASSERT_NE(3, key % 7);
		ASSERT_EQ(0, seen[key]++);
		ASSERT_EQ(reg[key].generation, rec[i].generation);
	}
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, f6_a_batch_works_in_order_also_on_one_key)
{
	struct spottimer_register reg[4];
	struct spottimer_record rec;
	int i;

	for (i = 0; i < 4; i++) {
		reg[i] = timer_once(1, i == 2 ? 0 : HOUR);
		reg[i].cookie = i;
	}
	reg[0].flags = SPOTTIMER_REG_EXCL;
	reg[1].flags = SPOTTIMER_REG_REARM;
	reg[3].flags = SPOTTIMER_REG_EXCL;
	ASSERT_EQ(4, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, 4,
				sizeof(reg[0])));
	EXPECT_EQ(0, reg[0].error);
	EXPECT_EQ(0, reg[1].error);
	EXPECT_EQ(0, reg[2].error);
	EXPECT_EQ(-EEXIST, reg[3].error);
	EXPECT_LT(reg[0].generation, reg[1].generation);
	EXPECT_LT(reg[1].generation, reg[2].generation);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, reg[2].generation, 1, 1);
	EXPECT_EQ(2, rec.cookie);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, f6_query_a_batch)
{
	struct spottimer_query q[5];
	int i;

	memset(q, 0, sizeof(q));
	for (i = 0; i < 5; i++) {
		q[i].key = i;
		if (i != 2)
			ASSERT_NE(0, arm_once(self->fd, i, HOUR, 0));
	}
	ASSERT_EQ(5, spot_batch(self->fd, SPOTTIMER_IOC_QUERY, q, 5,
				sizeof(q[0])));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(i == 2 ? -ENOENT : 0, q[i].error);
		if (i != 2)
			EXPECT_EQ(SPOTTIMER_PENDING, q[i].state);
	}
}

TEST_F(ctx, f7_on_one_cpu_records_come_in_the_order_of_their_ticks)
{
	enum { N = 20 };
	struct spottimer_register reg[N];
	struct spottimer_record rec[N];
	__s64 base;
	int i;

	ASSERT_EQ(0, stay_on_cpu(0));
	base = now() + 20 * MSEC;
	for (i = 0; i < N; i++) {
		reg[i] = timer_once(i, base + (N - i) * 3 * MSEC);
		reg[i].flags = SPOTTIMER_REG_ABSTIME;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, N,
				sizeof(reg[0])));
	ASSERT_TRUE(wait_all_ready(self->fd, N));
	ASSERT_EQ(N, read_records(self->fd, rec, N));
	for (i = 0; i < N; i++)
		EXPECT_EQ(N - 1 - i, rec[i].key);
}

/* Tick number @n from now on, as an absolute time on a tick. */
static __s64 tick_from_now(int fd, __s64 n, __s64 multiple_of)
{
	struct spottimer_info info;
	__s64 tick;

	if (spot_info(fd, &info))
		return -1;
	tick = now() / (__s64)info.tick_ns + n;
	tick = (tick + multiple_of - 1) / multiple_of * multiple_of;
	return tick * (__s64)info.tick_ns;
}

TEST_F(ctx, f7_on_one_tick_records_come_in_the_order_of_registration)
{
	enum { N = 20 };
	struct spottimer_register reg[N];
	struct spottimer_record rec[N];
	__s64 tick;
	int i;

	ASSERT_EQ(0, stay_on_cpu(0));
	tick = tick_from_now(self->fd, 40, 1);
	ASSERT_LT(0, tick);
	for (i = 0; i < N; i++) {
		/* later timers with earlier times of the same wheel tick */
		reg[i] = timer_once(i, tick - i);
		reg[i].flags = SPOTTIMER_REG_ABSTIME;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, N,
				sizeof(reg[0])));
	ASSERT_TRUE(wait_all_ready(self->fd, N));
	ASSERT_EQ(N, read_records(self->fd, rec, N));
	for (i = 0; i < N; i++)
		EXPECT_EQ(i, rec[i].key);
}

TEST_F(ctx, f7_a_cascade_keeps_the_order_of_registration)
{
	struct spottimer_register reg;
	struct spottimer_record rec[2];
	__s64 edge;

	ASSERT_EQ(0, stay_on_cpu(0));
	/*
	 * The first one is so far away that it begins in a coarse bucket; the
	 * second is registered shortly before that comes up, for the same time.
	 */
	edge = tick_from_now(self->fd, 70, 64);
	ASSERT_LT(0, edge);
	reg = timer_once(0, edge + 20 * MSEC);
	reg.flags = SPOTTIMER_REG_ABSTIME;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	sleep_until(edge - 10 * MSEC);
	reg.key = 1;
	reg.generation = 0;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_TRUE(wait_all_ready(self->fd, 2));
	ASSERT_EQ(2, read_records(self->fd, rec, 2));
	EXPECT_EQ(0, rec[0].key);
	EXPECT_EQ(1, rec[1].key);
}

TEST_F(ctx, f7_critical_records_come_first)
{
	enum { N = 10 };
	struct spottimer_register reg[N];
	struct spottimer_record rec[N];
	int i;

	for (i = 0; i < N; i++) {
		reg[i] = timer_once(i, i * MSEC);
		if (i >= N / 2)
			reg[i].flags = SPOTTIMER_REG_CRITICAL;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, N,
				sizeof(reg[0])));
	ASSERT_TRUE(wait_all_ready(self->fd, N));
	ASSERT_EQ(N, read_records(self->fd, rec, N));
	for (i = 0; i < N; i++) {
		bool critical = rec[i].flags & SPOTTIMER_REC_CRITICAL;

		EXPECT_EQ(i < N / 2, critical);
		EXPECT_EQ(rec[i].key >= N / 2, critical);
	}
}

TEST_F(ctx, f7_case35_critical_timers_do_not_starve_the_others_for_ever)
{
	enum { N = 200 };
	static struct spottimer_register reg[N];
	struct spottimer_record rec;
	int i;

	/* more of them than can be taken before the next is due again */
	for (i = 0; i < N; i++) {
		reg[i] = timer_once(i + 1, 1);
		reg[i].period = 1;
		reg[i].flags = SPOTTIMER_REG_CRITICAL;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, N,
				sizeof(reg[0])));
	ASSERT_NE(0, arm_once(self->fd, 0, 0, 0));
	for (i = 0; i < 100 * N; i++) {
		ASSERT_EQ(0, take(self->fd, &rec));
		if (!rec.key)
			break;
	}
	EXPECT_EQ(0, rec.key);
	EXPECT_EQ(0, rec.flags & SPOTTIMER_REC_CRITICAL);
}

/*
 * What query tells
 */

TEST_F(ctx, query_a_pending_timer)
{
	struct spottimer_register reg = timer_every(1, now() + HOUR, 3 * SEC);
	struct spottimer_query q;

	reg.cookie = 5;
	reg.policy = SPOTTIMER_CATCH_UP;
	reg.max_catch_up = 3;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	q = query(self->fd, 1, 0);
	ASSERT_EQ(0, q.error);
	EXPECT_EQ(reg.generation, q.generation);
	EXPECT_EQ(5, q.cookie);
	EXPECT_EQ(0, q.owner);
	EXPECT_EQ(0, q.started);
	EXPECT_EQ(0, q.scheduled);
	EXPECT_LE(reg.first - now(), q.remaining);
	EXPECT_GE(HOUR, q.remaining);
	EXPECT_EQ(3 * SEC, q.period);
	EXPECT_EQ(SPOTTIMER_PENDING, q.state);
	EXPECT_EQ(SPOTTIMER_CATCH_UP, q.policy);
	EXPECT_EQ(0, q.result);
}

TEST_F(ctx, query_follows_a_timer_through_its_states)
{
	struct spottimer_record rec;
	struct spottimer_query q;
	__u64 generation = arm_every(self->fd, 1, 20 * MSEC,
				     SPOTTIMER_REG_MANUAL);

	ASSERT_NE(0, generation);
	ASSERT_TRUE(wait_state(self->fd, 1, generation, SPOTTIMER_READY));
	q = query(self->fd, 1, 0);
	EXPECT_EQ(0, q.started);
	EXPECT_EQ(0, q.remaining);

	ASSERT_EQ(0, take(self->fd, &rec));
	q = query(self->fd, 1, 0);
	EXPECT_EQ(SPOTTIMER_RUNNING, q.state);
	EXPECT_EQ(1, q.started);
	EXPECT_EQ(rec.scheduled_index, q.scheduled);

	EXPECT_EQ(0, complete(self->fd, 1, 0, -EBUSY));
	q = query(self->fd, 1, generation);
	EXPECT_EQ(-EBUSY, q.result);
	EXPECT_EQ(1, q.started);

	ASSERT_EQ(0, cancel(self->fd, 1, 0, 0).error);
	q = query(self->fd, 1, generation);
	EXPECT_EQ(0, q.error);
	EXPECT_EQ(SPOTTIMER_ENDED, q.state);
	EXPECT_EQ(-EBUSY, q.result);
	EXPECT_EQ(1, q.started);
	EXPECT_EQ(0, q.remaining);
}

TEST_F(ctx, query_a_timer_after_its_last_tick)
{
	struct spottimer_record rec;
	struct spottimer_query q;
	__u64 generation = arm_once(self->fd, 1, 0, 0);

	ASSERT_EQ(0, take(self->fd, &rec));
	q = query(self->fd, 1, generation);
	EXPECT_EQ(0, q.error);
	EXPECT_EQ(SPOTTIMER_ENDED, q.state);
	EXPECT_EQ(1, q.started);
	EXPECT_EQ(0, q.result);
}

/*
 * H. Storms
 */

TEST_F(ctx, h4_a_period_below_the_wheel_tick_is_merged)
{
	enum { N = 20 };
	struct spottimer_info info;
	struct spottimer_record rec, prev = { 0 };
	__s64 begin;
	int i;

	ASSERT_EQ(0, spot_info(self->fd, &info));
	begin = now();
	ASSERT_NE(0, arm_every(self->fd, 1, 1, 0));
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(i + 1, rec.delivery_index);
		EXPECT_LT(prev.scheduled_index, rec.scheduled_index);
		EXPECT_EQ(rec.scheduled_index - prev.scheduled_index - 1,
			  rec.skipped_ticks);
		prev = rec;
	}
	/*
	 * Not two of them on one wheel tick, though the first of those may have
	 * come right away.
	 */
	EXPECT_LT((N - 1) * (__s64)info.tick_ns, now() - begin);
}

TEST_HARNESS_MAIN
