// SPDX-License-Identifier: GPL-2.0
/*
 * Tick records of a timer whose handler is late, under each policy.
 *
 * When a record was taken is known only to lie between two readings of the
 * clock, one before the read and one after. What it says is checked against
 * what either of them would give.
 */
#include "spottimer_test.h"

struct taken {
	struct spottimer_record rec;
	__s64 before;
	__s64 after;
};

static int take_timed(int fd, struct taken *taken)
{
	int ret;

	do {
		if (!readable_for(fd, PATIENCE))
			return -ETIME;
		taken->before = now();
		ret = read_records(fd, &taken->rec, 1);
		taken->after = now();
	} while (ret == -EAGAIN);
	return ret < 0 ? ret : 0;
}

/* The newest nominal tick that is due at @time; 0 before the first. */
static __u64 newest(const struct spottimer_register *reg, __s64 time)
{
	if (time < reg->first)
		return 0;
	return (__u64)(time - reg->first) / reg->period + 1;
}

static __s64 due(const struct spottimer_register *reg, __u64 tick)
{
	return reg->first + (tick - 1) * reg->period;
}

/* C2, C3, C4: says what is wrong with a record that follows another one. */
static const char *wrong_indices(const struct spottimer_record *rec,
				 const struct spottimer_record *last)
{
	if (rec->delivery_index != last->delivery_index + 1)
		return "C2: a gap in DeliveryIndex";
	if (rec->scheduled_index <= last->scheduled_index)
		return "C3: ScheduledIndex has not grown";
	if (rec->scheduled_index < rec->delivery_index)
		return "C3: ScheduledIndex < DeliveryIndex";
	if (rec->skipped_ticks !=
	    rec->scheduled_index - last->scheduled_index - 1)
		return "C4: SkippedTicks";
	return "";
}

/*
 * A slow consumer, with every policy and both ways of completion
 */

FIXTURE(slow) {
	int fd;
};

FIXTURE_VARIANT(slow) {
	__u32 policy;
	__u32 max;
	__u32 flags;
};

FIXTURE_VARIANT_ADD(slow, skip_late) {
	.policy = SPOTTIMER_SKIP_LATE,
};

FIXTURE_VARIANT_ADD(slow, skip_late_manual) {
	.policy = SPOTTIMER_SKIP_LATE,
	.flags = SPOTTIMER_REG_MANUAL,
};

FIXTURE_VARIANT_ADD(slow, catch_up) {
	.policy = SPOTTIMER_CATCH_UP,
	.max = 3,
};

FIXTURE_VARIANT_ADD(slow, catch_up_manual) {
	.policy = SPOTTIMER_CATCH_UP,
	.max = 3,
	.flags = SPOTTIMER_REG_MANUAL,
};

FIXTURE_VARIANT_ADD(slow, delay_next) {
	.policy = SPOTTIMER_DELAY_NEXT,
};

FIXTURE_VARIANT_ADD(slow, delay_next_manual) {
	.policy = SPOTTIMER_DELAY_NEXT,
	.flags = SPOTTIMER_REG_MANUAL,
};

FIXTURE_SETUP(slow)
{
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(slow)
{
	close(self->fd);
}

/* D2: the newest tick that is due when the record is taken. */
static const char *wrong_skip_late(const struct spottimer_register *reg,
				   const struct taken *t)
{
	if (t->rec.scheduled_index < newest(reg, t->before) ||
	    t->rec.scheduled_index > newest(reg, t->after))
		return "D2: not the newest tick";
	return "";
}

/*
 * D3: where ticks were skipped, a catch-up of just @max begins, which ends with
 * the newest tick that was due at its begin. @left counts its other records.
 */
static const char *wrong_catch_up(const struct spottimer_register *reg,
				  const struct taken *t, __u64 *left)
{
	__u64 end = t->rec.scheduled_index + reg->max_catch_up - 1;

	if (t->rec.skipped_ticks) {
		if (*left)
			return "D3: skipped in the middle of a catch-up";
		if (end < newest(reg, t->before) || end > newest(reg, t->after))
			return "D3: does not end with the newest tick";
		*left = reg->max_catch_up - 1;
	} else if (*left) {
		--*left;
	}
	return "";
}

/* D4: a period after the last completion, which was not before @completed */
static const char *wrong_delay_next(const struct spottimer_register *reg,
				    const struct taken *t, __s64 completed)
{
	if (t->rec.scheduled_index != t->rec.delivery_index ||
	    t->rec.skipped_ticks)
		return "D4: ScheduledIndex is not DeliveryIndex";
	if (t->after < (completed ? completed + reg->period : reg->first))
		return "D4: early";
	return "";
}

static const char *wrong_by_policy(const struct spottimer_register *reg,
				   const struct taken *t, __u64 *left,
				   __s64 completed)
{
	switch (reg->policy) {
	case SPOTTIMER_SKIP_LATE:
		return wrong_skip_late(reg, t);
	case SPOTTIMER_CATCH_UP:
		return wrong_catch_up(reg, t, left);
	default:
		return wrong_delay_next(reg, t, completed);
	}
}

TEST_F(slow, c_d_records_follow_the_policy)
{
	struct spottimer_register reg;
	struct taken t = { 0 };
	__u64 left = 0;
	__s64 completed = 0;
	int i;

	/* neither is a whole number of wheel ticks */
	reg = timer_every(1, now() + 10500000, 3700000);
	reg.policy = variant->policy;
	reg.max_catch_up = variant->max;
	reg.flags |= variant->flags;
	reg.cookie = 4711;
	ASSERT_EQ(0, spot_register(self->fd, &reg));

	for (i = 0; i < 40; i++) {
		struct spottimer_record last = t.rec;

		/* sometimes a little late, sometimes very */
		if (i % 6 == 5)
			sleep_until(now() + (i % 4) * 7 * MSEC);
		ASSERT_EQ(0, take_timed(self->fd, &t));
		EXPECT_EQ(1, t.rec.key);
		EXPECT_EQ(reg.generation, t.rec.generation);
		EXPECT_EQ(4711, t.rec.cookie);
		EXPECT_EQ(SPOTTIMER_REC_TICK |
			  (reg.flags & SPOTTIMER_REG_MANUAL ?
			   SPOTTIMER_REC_MANUAL : 0), t.rec.flags);
		ASSERT_STREQ("", wrong_indices(&t.rec, &last));
		ASSERT_STREQ("", wrong_by_policy(&reg, &t, &left, completed));
		/* C5, A3; of DELAY_NEXT it is implied */
		ASSERT_LE(due(&reg, t.rec.scheduled_index), t.after);

		completed = t.before;
		if (!(reg.flags & SPOTTIMER_REG_MANUAL))
			continue;
		if (i % 6 == 2) {
			sleep_until(now() + (i % 4) * 7 * MSEC);
			/* D1: whatever came due meanwhile */
			ASSERT_FALSE(readable(self->fd));
		}
		completed = now();
		ASSERT_EQ(0, complete(self->fd, 1, reg.generation, 0));
	}
	EXPECT_EQ(t.rec.delivery_index,
		  cancel(self->fd, 1, reg.generation, 0).started);
}

TEST_F(slow, d1_what_comes_due_while_the_handler_runs_merges)
{
	struct spottimer_register reg = timer_every(1, now(), MSEC);
	struct spottimer_record rec;
	__u64 other;

	reg.policy = variant->policy;
	reg.max_catch_up = variant->max;
	reg.flags |= SPOTTIMER_REG_MANUAL;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, take(self->fd, &rec));

	/* its neighbour comes, many periods later; it does not */
	other = arm_once(self->fd, 2, 30 * MSEC, 0);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 2, other, 1, 1);
	EXPECT_TRUE(nothing(self->fd));
	EXPECT_EQ(1, query(self->fd, 1, 0).started);
}

TEST_F(slow, d2_d3_what_was_missed_is_there_at_completion)
{
	struct spottimer_register reg = timer_every(1, now(), 5 * MSEC);
	struct taken t;
	__s64 completed;

	reg.policy = variant->policy;
	reg.max_catch_up = variant->max;
	reg.flags |= SPOTTIMER_REG_MANUAL;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, take_timed(self->fd, &t));
	/* some wheel ticks after a due time, so that it has been processed */
	sleep_until(due(&reg, newest(&reg, now()) + 8) + 3 * MSEC);
	completed = now();
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	if (reg.policy != SPOTTIMER_DELAY_NEXT) {
		EXPECT_TRUE(readable(self->fd));
		return;
	}
	ASSERT_EQ(0, take_timed(self->fd, &t));
	EXPECT_LE(completed + reg.period, t.after);
	EXPECT_EQ(2, t.rec.scheduled_index);
}

TEST_F(slow, c6_nobody_reads_for_a_long_time)
{
	struct spottimer_register reg = timer_every(1, now(), 2 * MSEC);
	struct spottimer_record rec[4];
	struct taken t;
	__u64 other;

	reg.policy = variant->policy;
	reg.max_catch_up = variant->max;
	reg.flags |= SPOTTIMER_REG_MANUAL;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	other = arm_once(self->fd, 2, 40 * MSEC, 0);
	ASSERT_TRUE(wait_state(self->fd, 2, other, SPOTTIMER_READY));

	/* one record is pending, not twenty, and says when it was taken */
	t.before = now();
	ASSERT_EQ(2, read_records(self->fd, rec, 4));
	t.after = now();
	t.rec = rec[0].key == 1 ? rec[0] : rec[1];
	EXPECT_EQ(1, t.rec.key);
	EXPECT_EQ(1, t.rec.delivery_index);
	EXPECT_EQ(t.rec.scheduled_index - 1, t.rec.skipped_ticks);
	switch (reg.policy) {
	case SPOTTIMER_SKIP_LATE:
		EXPECT_STREQ("", wrong_skip_late(&reg, &t));
		break;
	case SPOTTIMER_CATCH_UP:
		EXPECT_LE(newest(&reg, t.before) - 2, t.rec.scheduled_index);
		EXPECT_GE(newest(&reg, t.after) - 2, t.rec.scheduled_index);
		break;
	default:
		EXPECT_EQ(1, t.rec.scheduled_index);
	}
	EXPECT_TRUE(nothing(self->fd));
}

/*
 * The figures of D2, D3 and D4, as near as a real clock comes: period 10 ms,
 * tick 1 taken in time, completed at 47
 */

static int begin_in_time(int fd, struct spottimer_register *reg,
			 struct taken *t)
{
	int i, ret;

	/* on a busy machine it may take more than one attempt */
	for (i = 0; i < 50; i++) {
		reg->first = now() + 10 * MSEC;
		reg->generation = 0;
		ret = spot_register(fd, reg);
		if (!ret)
			ret = take_timed(fd, t);
		if (ret || t->after < reg->first + reg->period)
			return ret;
		ret = complete(fd, 1, reg->generation, 0);
		if (ret)
			return ret;
	}
	return -ETIME;
}

static int late_by_37(int fd, struct spottimer_register *reg, __u32 policy,
		      __u32 max, struct taken *t)
{
	int ret;

	*reg = timer_every(1, 0, 10 * MSEC);
	reg->policy = policy;
	reg->max_catch_up = max;
	reg->flags |= SPOTTIMER_REG_MANUAL;
	ret = begin_in_time(fd, reg, t);
	if (ret)
		return ret;
	sleep_until(reg->first + 37 * MSEC);
	t->before = now();
	return complete(fd, 1, reg->generation, 0);
}

TEST_F(ctx, d2_one_record_for_the_newest_tick)
{
	struct spottimer_register reg;
	struct taken t;

	ASSERT_EQ(0, late_by_37(self->fd, &reg, SPOTTIMER_SKIP_LATE, 0, &t));
	ASSERT_EQ(0, take_timed(self->fd, &t));
	EXPECT_EQ(2, t.rec.delivery_index);
	EXPECT_LE(4, t.rec.scheduled_index);
	EXPECT_STREQ("", wrong_skip_late(&reg, &t));
	EXPECT_EQ(t.rec.scheduled_index - 2, t.rec.skipped_ticks);
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, d3_the_missed_ticks_in_order_the_older_ones_skipped)
{
	struct spottimer_register reg;
	struct taken t, next;
	__u64 end;

	ASSERT_EQ(0, late_by_37(self->fd, &reg, SPOTTIMER_CATCH_UP, 2, &t));
	ASSERT_EQ(0, take_timed(self->fd, &t));
	EXPECT_EQ(2, t.rec.delivery_index);
	end = t.rec.scheduled_index + 1;
	EXPECT_LE(4, end);
	EXPECT_LE(newest(&reg, t.before), end);
	EXPECT_GE(newest(&reg, t.after), end);
	EXPECT_EQ(end - 3, t.rec.skipped_ticks);

	/* the other one is there at once, and then no more of that catch-up */
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(0, take_timed(self->fd, &next));
	EXPECT_EQ(end, next.rec.scheduled_index);
	EXPECT_EQ(0, next.rec.skipped_ticks);
	EXPECT_STREQ("", wrong_indices(&next.rec, &t.rec));
}

TEST_F(ctx, d3_all_of_the_missed_ticks_where_they_are_few_enough)
{
	struct spottimer_register reg;
	struct taken t, next;
	__u64 end;

	ASSERT_EQ(0, late_by_37(self->fd, &reg, SPOTTIMER_CATCH_UP, INT_MAX,
				&t));
	end = newest(&reg, now());
	do {
		ASSERT_EQ(0, take_timed(self->fd, &next));
		EXPECT_STREQ("", wrong_indices(&next.rec, &t.rec));
		EXPECT_EQ(0, next.rec.skipped_ticks);
		ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
		t = next;
	} while (next.rec.scheduled_index < end);
}

TEST_F(ctx, d3_a_maximum_of_0_means_1)
{
	struct spottimer_register reg;
	struct taken t;

	ASSERT_EQ(0, late_by_37(self->fd, &reg, SPOTTIMER_CATCH_UP, 0, &t));
	ASSERT_EQ(0, take_timed(self->fd, &t));
	EXPECT_STREQ("", wrong_skip_late(&reg, &t));
}

TEST_F(ctx, d4_the_next_tick_is_a_period_after_completion)
{
	struct spottimer_register reg;
	struct taken t;
	__s64 completed;

	ASSERT_EQ(0, late_by_37(self->fd, &reg, SPOTTIMER_DELAY_NEXT, 0, &t));
	completed = t.before;
	ASSERT_EQ(0, take_timed(self->fd, &t));
	EXPECT_EQ(2, t.rec.delivery_index);
	EXPECT_EQ(2, t.rec.scheduled_index);
	EXPECT_EQ(0, t.rec.skipped_ticks);
	EXPECT_LE(completed + 10 * MSEC, t.after);
}

/*
 * C5, D6
 */

TEST_F(ctx, c5_case21_no_drift_whatever_the_wheel_tick)
{
	struct spottimer_register reg = timer_every(1, now() + 7777777,
						    1500000);
	struct taken t = { 0 };
	int i;

	ASSERT_EQ(0, spot_register(self->fd, &reg));
	for (i = 0; i < 100; i++) {
		struct spottimer_record last = t.rec;

		ASSERT_EQ(0, take_timed(self->fd, &t));
		ASSERT_STREQ("", wrong_indices(&t.rec, &last));
		ASSERT_STREQ("", wrong_skip_late(&reg, &t));
		ASSERT_LE(due(&reg, t.rec.scheduled_index), t.after);
	}
}

TEST_F(ctx, c5_boottime_ticks_are_numbered_on_their_clock)
{
	struct spottimer_register reg;
	struct spottimer_record rec;
	int i;

	reg = timer_every(1, now_on(CLOCK_BOOTTIME) + 5 * MSEC, 2500000);
	reg.clock = CLOCK_BOOTTIME;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, take(self->fd, &rec));
		ASSERT_EQ(i + 1, rec.delivery_index);
		ASSERT_LE(due(&reg, rec.scheduled_index),
			  now_on(CLOCK_BOOTTIME));
	}
}

TEST_F(ctx, d6_case36_a_first_time_in_the_past_counts_from_there)
{
	struct spottimer_register reg = timer_every(1, now() - SEC,
						    300 * MSEC);
	struct taken t;

	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, take_timed(self->fd, &t));
	EXPECT_LE(4, t.rec.scheduled_index);
	EXPECT_EQ(1, t.rec.delivery_index);
	EXPECT_EQ(t.rec.scheduled_index - 1, t.rec.skipped_ticks);
	EXPECT_STREQ("", wrong_skip_late(&reg, &t));
}

TEST_F(ctx, d6_a_period_of_1_ns_since_boot)
{
	struct spottimer_register reg = timer_every(1, 0, 1);
	struct taken t = { 0 };
	int i;

	ASSERT_EQ(0, spot_register(self->fd, &reg));
	for (i = 0; i < 5; i++) {
		struct spottimer_record last = t.rec;

		ASSERT_EQ(0, take_timed(self->fd, &t));
		EXPECT_STREQ("", wrong_indices(&t.rec, &last));
		/* the number of the tick tells the time */
		EXPECT_LE(t.before, (__s64)t.rec.scheduled_index - 1);
		EXPECT_GE(t.after, (__s64)t.rec.scheduled_index - 1);
	}
}

TEST_F(ctx, d6_the_longest_period_has_one_tick)
{
	static const __u32 policy[] = {
		SPOTTIMER_SKIP_LATE, SPOTTIMER_CATCH_UP, SPOTTIMER_DELAY_NEXT,
	};
	struct spottimer_register reg;
	struct spottimer_record rec;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(policy); i++) {
		reg = timer_every(i, now(), INT64_MAX);
		reg.policy = policy[i];
		ASSERT_EQ(0, spot_register(self->fd, &reg));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_TICK(rec, i, reg.generation, 1, 1);
		EXPECT_EQ(SPOTTIMER_PENDING, query(self->fd, i, 0).state);
	}
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, d6_policies_are_mixed_in_one_context)
{
	struct spottimer_register reg[3];
	struct taken t, last[3];
	__s64 completed[3] = { 0 };
	__u64 left[3] = { 0 };
	unsigned int i, k;

	for (k = 0; k < 3; k++) {
		reg[k] = timer_every(k, now() + 5 * MSEC, (k + 2) * MSEC);
		reg[k].policy = k;
		reg[k].max_catch_up = 2;
	}
	ASSERT_EQ(3, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, 3,
				sizeof(reg[0])));
	memset(last, 0, sizeof(last));
	for (i = 0; i < 60; i++) {
		if (i % 10 == 9)
			sleep_until(now() + 15 * MSEC);
		ASSERT_EQ(0, take_timed(self->fd, &t));
		k = t.rec.key;
		ASSERT_GT(3, k);
		ASSERT_STREQ("", wrong_indices(&t.rec, &last[k].rec));
		ASSERT_STREQ("", wrong_by_policy(&reg[k], &t, &left[k],
						 completed[k]));
		completed[k] = t.before;
		last[k] = t;
	}
	for (k = 0; k < 3; k++)
		EXPECT_LT(0, last[k].rec.delivery_index);
}

TEST_HARNESS_MAIN
