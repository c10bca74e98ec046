// SPDX-License-Identifier: GPL-2.0
/*
 * Owners and leases.
 *
 * A lease that is to run out is granted for long, and its deadline is moved
 * near only when all is prepared: however slow the machine, nothing runs out
 * before its time.
 */
#include "spottimer_test.h"

#define OWNER	42

static struct spottimer_register owned(__u64 key, __s64 first, __s64 period,
				       __u64 epoch)
{
	struct spottimer_register reg = timer_every(key, first, period);

	reg.owner = OWNER;
	reg.epoch = epoch;
	reg.cookie = 1000 + key;
	return reg;
}

/* Register such a timer, due from now on. Returns its generation. */
static __u64 arm_owned(int fd, __u64 key, __s64 period, __u64 epoch,
		       __u32 flags)
{
	struct spottimer_register reg = owned(key, now(), period, epoch);

	reg.flags |= flags;
	return spot_register(fd, &reg) ? 0 : reg.generation;
}

/* Try to register one. Returns the error. */
static int try_owned(int fd, __u64 key, __u64 epoch)
{
	struct spottimer_register reg = owned(key, now() + HOUR, 0, epoch);

	return spot_register(fd, &reg);
}

/*
 * Let the lease run out soon: move its deadline, and wait for it. Returns the
 * deadline.
 */
static __s64 run_out(int fd, __u64 epoch)
{
	__s64 delay, deadline;
	int ret;

	/* on a slow machine it may have passed before the kernel looks at it */
	for (delay = 15 * MSEC; delay < 10 * SEC; delay *= 3) {
		deadline = now_on(CLOCK_BOOTTIME) + delay;
		ret = lease(fd, SPOTTIMER_LEASE_RENEW, OWNER, epoch, deadline,
			    SPOTTIMER_LEASE_ABSTIME);
		if (ret != -EINVAL)
			break;
	}
	if (ret)
		return -1;
	sleep_until_on(CLOCK_BOOTTIME, deadline);
	return deadline;
}

#define EXPECT_LEASE(rec, owner_, epoch) do {				\
	const struct spottimer_record rec_ = (rec);			\
									\
	EXPECT_EQ(SPOTTIMER_REC_LEASE, rec_.flags);			\
	EXPECT_EQ(0, rec_.key);						\
	EXPECT_EQ(owner_, rec_.owner);					\
	EXPECT_EQ(epoch, rec_.generation);				\
} while (0)

/* The same, and take the record that says so: nothing else may come first. */
static int run_out_and_take(int fd, __u64 epoch)
{
	struct spottimer_record rec;
	int ret;

	if (run_out(fd, epoch) < 0)
		return -EPROTO;
	ret = take(fd, &rec);
	if (ret)
		return ret;
	return rec.flags == SPOTTIMER_REC_LEASE && rec.generation == epoch ?
		0 : -EPROTO;
}

/*
 * G1, G2: who is admitted
 */

TEST_F(ctx, g2_without_a_lease_nothing_is_registered)
{
	EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 1, 1));
	EXPECT_EQ(-ENOENT, query(self->fd, 1, 0).error);
	EXPECT_EQ(-EKEYEXPIRED, lease_renew(self->fd, OWNER, 1, HOUR));
	EXPECT_EQ(-EKEYEXPIRED, lease_revoke(self->fd, OWNER, 1, 0));
}

TEST_F(ctx, g2_under_a_lease_ticks_come)
{
	struct spottimer_record rec;
	__u64 generation;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 5, HOUR));
	generation = arm_owned(self->fd, 1, 0, 5, 0);
	ASSERT_NE(0, generation);
	EXPECT_EQ(OWNER, query(self->fd, 1, 0).owner);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, generation, 1, 1);
	EXPECT_EQ(OWNER, rec.owner);
	EXPECT_EQ(1001, rec.cookie);
}

TEST_F(ctx, g2_another_epoch_is_stale)
{
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 5, HOUR));
	EXPECT_EQ(-ESTALE, try_owned(self->fd, 1, 4));
	EXPECT_EQ(-ESTALE, try_owned(self->fd, 1, 6));
	EXPECT_EQ(-ESTALE, lease_renew(self->fd, OWNER, 4, HOUR));
	EXPECT_EQ(-ESTALE, lease_renew(self->fd, OWNER, 6, HOUR));
	EXPECT_EQ(-ESTALE, lease_revoke(self->fd, OWNER, 4, 0));
	EXPECT_EQ(-ESTALE, lease_revoke(self->fd, OWNER, 6, 0));
	EXPECT_EQ(-ENOENT, query(self->fd, 1, 0).error);
	EXPECT_EQ(0, try_owned(self->fd, 1, 5));
}

TEST_F(ctx, g2_a_refusal_leaves_the_timer_of_that_key_alone)
{
	__u64 generation = arm_once(self->fd, 1, HOUR, 0);

	EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 1, 1));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 5, HOUR));
	EXPECT_EQ(-ESTALE, try_owned(self->fd, 1, 4));
	EXPECT_EQ(generation, query(self->fd, 1, 0).generation);
}

TEST_F(ctx, g1_owners_of_two_files_have_nothing_to_do_with_each_other)
{
	int other = spot_open(O_NONBLOCK);

	ASSERT_LE(0, other);
	ASSERT_EQ(0, lease_grant(other, OWNER, 5, HOUR));
	EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 1, 5));
	EXPECT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	close(other);
}

TEST_F(ctx, g1_a_batch_has_a_result_for_each)
{
	struct spottimer_lease entry[4];
	int i;

	memset(entry, 0, sizeof(entry));
	for (i = 0; i < 4; i++) {
		entry[i].owner = OWNER + i % 3;
		entry[i].epoch = 1;
		entry[i].deadline = HOUR;
		entry[i].error = 1;
	}
	entry[1].epoch = 0;
	ASSERT_EQ(4, spot_batch(self->fd, SPOTTIMER_IOC_LEASE, entry, 4,
				sizeof(entry[0])));
	EXPECT_EQ(0, entry[0].error);
	EXPECT_EQ(-EINVAL, entry[1].error);
	EXPECT_EQ(0, entry[2].error);
	/* the first one once more */
	EXPECT_EQ(-ESTALE, entry[3].error);
}

TEST_F(ctx, g1_a_deadline_at_the_end_of_time)
{
	EXPECT_EQ(0, lease_grant(self->fd, OWNER, 1, INT64_MAX));
	EXPECT_EQ(0, try_owned(self->fd, 1, 1));
	EXPECT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_RENEW, OWNER, 1,
			   INT64_MAX, SPOTTIMER_LEASE_ABSTIME));
	EXPECT_EQ(0, try_owned(self->fd, 1, 1));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

/*
 * G3: the deadline
 */

TEST_F(ctx, g3_from_the_deadline_on_no_handler_starts)
{
	struct spottimer_record rec;
	__s64 deadline, before;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	ASSERT_NE(0, arm_owned(self->fd, 1, 2 * MSEC, 1, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	deadline = now_on(CLOCK_BOOTTIME) + 60 * MSEC;
	ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_RENEW, OWNER, 1, deadline,
			   SPOTTIMER_LEASE_ABSTIME));
	do {
		ASSERT_TRUE(readable_for(self->fd, PATIENCE));
		before = now_on(CLOCK_BOOTTIME);
		if (read_records(self->fd, &rec, 1) != 1)
			continue;
		if (rec.flags & SPOTTIMER_REC_TICK)
			EXPECT_LT(before, deadline);
	} while (!(rec.flags & SPOTTIMER_REC_LEASE));
	EXPECT_LE(deadline, now_on(CLOCK_BOOTTIME));
	EXPECT_LEASE(rec, OWNER, 1);

	/* one such record, and no burst */
	EXPECT_TRUE(nothing_for(self->fd, 2 * A_WHILE));
	EXPECT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_HELD));
}

TEST_F(ctx, g3_a_record_queued_before_the_deadline_does_not_start_after_it)
{
	struct spottimer_record rec[4];
	__u64 generation[2];
	int i;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	for (i = 0; i < 2; i++) {
		generation[i] = arm_owned(self->fd, i, i ? MSEC : 0, 1, 0);
		ASSERT_TRUE(wait_state(self->fd, i, generation[i],
				       SPOTTIMER_READY));
	}
	ASSERT_LT(0, run_out(self->fd, 1));
	ASSERT_EQ(1, take_all(self->fd, rec, 1));
	EXPECT_LEASE(rec[0], OWNER, 1);
	EXPECT_FALSE(readable(self->fd));
	EXPECT_EQ(-EAGAIN, read_records(self->fd, rec, 4));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(SPOTTIMER_HELD,
			  query(self->fd, i, generation[i]).state);
		EXPECT_EQ(0, query(self->fd, i, generation[i]).started);
	}
}

TEST_F(ctx, g3_query_says_that_a_record_is_held_from_the_deadline_on)
{
	__u64 generation;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	generation = arm_owned(self->fd, 1, MSEC, 1, 0);
	ASSERT_TRUE(wait_state(self->fd, 1, generation, SPOTTIMER_READY));
	ASSERT_LT(0, run_out(self->fd, 1));
	/* whether or not somebody has tried to read it */
	EXPECT_EQ(SPOTTIMER_HELD, query(self->fd, 1, generation).state);
	EXPECT_EQ(0, query(self->fd, 1, generation).started);
}

TEST_F(ctx, g3_other_timers_go_on)
{
	struct spottimer_record rec;
	int i;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER + 1, 1, HOUR));
	ASSERT_NE(0, arm_owned(self->fd, 1, MSEC, 1, 0));
	ASSERT_EQ(0, run_out_and_take(self->fd, 1));
	ASSERT_NE(0, arm_every(self->fd, 2, 2 * MSEC, 0));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(2, rec.key);
	}
	EXPECT_EQ(0, lease_renew(self->fd, OWNER + 1, 1, HOUR));
}

TEST_F(ctx, g2_g3_what_is_due_at_the_deadline_or_later_does_not_come)
{
	static const __s64 offset[] = { -50 * MSEC, 0, 1, MSEC, 20 * MSEC };
	struct spottimer_register reg;
	struct spottimer_record rec;
	__s64 deadline;
	unsigned int i;
	bool lapsed = false;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	deadline = now_on(CLOCK_BOOTTIME) + 100 * MSEC;
	for (i = 0; i < ARRAY_LEN(offset); i++) {
		reg = owned(i, deadline + offset[i], 0, 1);
		reg.clock = CLOCK_BOOTTIME;
		ASSERT_EQ(0, spot_register(self->fd, &reg));
	}
	ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_RENEW, OWNER, 1, deadline,
			   SPOTTIMER_LEASE_ABSTIME));
	while (!lapsed) {
		ASSERT_EQ(0, take(self->fd, &rec));
		lapsed = rec.flags & SPOTTIMER_REC_LEASE;
		EXPECT_EQ(0, rec.key);
	}
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, g3_after_the_deadline_nothing_is_registered)
{
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	ASSERT_LT(0, run_out(self->fd, 1));
	EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 1, 1));
	EXPECT_EQ(-ENOENT, query(self->fd, 1, 0).error);
}

TEST_F(ctx, g3_an_owner_without_timers_gets_its_record_too)
{
	struct spottimer_record rec;
	__s64 deadline;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 7, HOUR));
	deadline = run_out(self->fd, 7);
	ASSERT_LT(0, deadline);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_LEASE(rec, OWNER, 7);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, g3_each_owner_gets_one_record)
{
	enum { N = 5 };
	struct spottimer_record rec[N];
	unsigned int seen = 0;
	int i;

	for (i = 0; i < N; i++)
		ASSERT_EQ(0, lease_grant(self->fd, OWNER + i, 1 + i,
					 10 * MSEC));
	ASSERT_EQ(N, take_all(self->fd, rec, N));
	for (i = 0; i < N; i++) {
		EXPECT_LEASE(rec[i], OWNER + rec[i].generation - 1,
			     rec[i].generation);
		seen |= 1U << rec[i].generation;
	}
	EXPECT_EQ((1 << (N + 1)) - 2, seen);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, g3_case38_a_process_that_was_stopped_gets_nothing_of_the_old_epoch)
{
	struct spottimer_record rec;
	int pipefd[2], status;
	__u64 started;
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* takes until its lease has ended, and tells */
		do {
			if (take(self->fd, &rec) ||
			    write(pipefd[1], &rec, sizeof(rec)) != sizeof(rec))
				_exit(1);
		} while (!(rec.flags & SPOTTIMER_REC_LEASE));
		_exit(!nothing_for(self->fd, A_WHILE));
	}
	ASSERT_NE(0, arm_owned(self->fd, 1, 2 * MSEC, 1, 0));
	ASSERT_EQ(sizeof(rec), read(pipefd[0], &rec, sizeof(rec)));
	EXPECT_EQ(SPOTTIMER_REC_TICK, rec.flags);

	ASSERT_EQ(0, kill(pid, SIGSTOP));
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	/* what it took before */
	ASSERT_EQ(0, fcntl(pipefd[0], F_SETFL, O_NONBLOCK));
	while (read(pipefd[0], &rec, sizeof(rec)) == sizeof(rec))
		EXPECT_EQ(SPOTTIMER_REC_TICK, rec.flags);
	ASSERT_EQ(0, fcntl(pipefd[0], F_SETFL, 0));
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	started = query(self->fd, 1, 0).started;
	ASSERT_LT(0, run_out(self->fd, 1));
	ASSERT_EQ(0, kill(pid, SIGCONT));

	ASSERT_EQ(sizeof(rec), read(pipefd[0], &rec, sizeof(rec)));
	/* it may have been stopped between the read and the telling */
	if (rec.flags & SPOTTIMER_REC_TICK)
		ASSERT_EQ(sizeof(rec), read(pipefd[0], &rec, sizeof(rec)));
	EXPECT_LEASE(rec, OWNER, 1);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* not even one that it took and did not tell of */
	EXPECT_EQ(started, query(self->fd, 1, 0).started);
	EXPECT_EQ(SPOTTIMER_HELD, query(self->fd, 1, 0).state);
}

/* Set the wall clock, by so much from what it is. */
static bool set_wall_clock(__s64 offset)
{
	__s64 time = now_on(CLOCK_REALTIME) + offset;
	struct timespec ts = { time / SEC, time % SEC };

	return !clock_settime(CLOCK_REALTIME, &ts);
}

/* A lease is a day longer or shorter by no clock that somebody sets. */
TEST_F(ctx, g1_g3_case39_the_wall_clock_is_nothing_to_a_lease)
{
	static const __s64 jump[] = { 24 * HOUR, -24 * HOUR };
	struct spottimer_record rec;
	__s64 deadline;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(jump); i++) {
		ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1 + i, HOUR));
		ASSERT_TRUE(set_wall_clock(jump[i]));
		EXPECT_EQ(0, try_owned(self->fd, 1, 1 + i));
		EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

		deadline = now_on(CLOCK_BOOTTIME) + 200 * MSEC;
		ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_RENEW, OWNER,
				   1 + i, deadline, SPOTTIMER_LEASE_ABSTIME));
		EXPECT_TRUE(set_wall_clock(-jump[i]));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_LE(deadline, now_on(CLOCK_BOOTTIME));
		EXPECT_LEASE(rec, OWNER, 1 + i);
		EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 1, 1 + i));
	}
}

/*
 * G1, G5: renewals
 */

TEST_F(ctx, g3_with_renewals_in_time_ticks_go_on)
{
	struct spottimer_record rec;
	__u64 last = 0;
	int i;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, 5 * SEC));
	ASSERT_NE(0, arm_owned(self->fd, 1, MSEC, 1, 0));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(SPOTTIMER_REC_TICK, rec.flags);
		EXPECT_EQ(last + 1, rec.delivery_index);
		last = rec.delivery_index;
		ASSERT_EQ(0, lease_renew(self->fd, OWNER, 1,
					 5 * SEC + i * MSEC));
	}
}

/* What renewing must leave alone, in words */
static void read_work(char *text, size_t size)
{
	snprintf(text, size,
		 "%lld started, %lld cancelled, %lld passes, %lld looked at, %lld moved",
		 counter("started"), counter("cancelled"), counter("passes"),
		 counter("candidates"), counter("cascaded"));
}

/* With one timer, and with a hundred thousand: nothing is done in the engine. */
TEST_F_TIMEOUT(ctx, g5_renewing_costs_the_same_with_any_number_of_timers, 120)
{
	enum { N = 1000 };
	static struct spottimer_register reg[N];
	int many = 100000 / scale() / N, i, k;
	char before[160], after[160];

	ASSERT_TRUE(wait_hrtimers(0));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, 2 * HOUR));
	ASSERT_EQ(0, try_owned(self->fd, UINT64_MAX, 1));
	for (i = 0; i <= many; i += many) {
		read_work(before, sizeof(before));
		for (k = 1; k <= 1000; k++)
			ASSERT_EQ(0, lease_renew(self->fd, OWNER, 1,
						 (2 + !!i) * HOUR + k * SEC));
		read_work(after, sizeof(after));
		EXPECT_STREQ(before, after);

		for (k = 0; !i && k < many * N; k++) {
			reg[k % N] = owned(k, now() + HOUR + k, SEC, 1);
			if (k % N != N - 1)
				continue;
			ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER,
						reg, N, sizeof(reg[0])));
			ASSERT_EQ(0, reg[N - 1].error);
		}
	}
}

TEST_F(ctx, g3_a_renewal_outlives_the_first_deadline)
{
	struct spottimer_record rec;
	__s64 deadline;
	int i;

	/* on a busy machine it may take more than one attempt */
	for (i = 1; i < 50; i++) {
		deadline = now_on(CLOCK_BOOTTIME) + 20 * MSEC;
		ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER, i,
				   deadline, SPOTTIMER_LEASE_ABSTIME));
		if (!lease_renew(self->fd, OWNER, i, HOUR))
			break;
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_LEASE(rec, OWNER, i);
	}
	ASSERT_GT(50, i);
	sleep_until_on(CLOCK_BOOTTIME, deadline);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_EQ(0, try_owned(self->fd, 1, i));
}

TEST_F(ctx, g4_a_lease_that_has_run_out_cannot_be_renewed)
{
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 3, HOUR));
	ASSERT_LT(0, run_out(self->fd, 3));
	EXPECT_EQ(-EKEYEXPIRED, lease_renew(self->fd, OWNER, 3, HOUR));
	EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 1, 3));
}

/*
 * G4: new grants
 */

TEST_F(ctx, g4_an_older_or_equal_epoch_is_not_granted)
{
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 5, HOUR));
	EXPECT_EQ(-ESTALE, lease_grant(self->fd, OWNER, 4, HOUR));
	EXPECT_EQ(-ESTALE, lease_grant(self->fd, OWNER, 5, HOUR));
	EXPECT_EQ(0, try_owned(self->fd, 1, 5));
	ASSERT_LT(0, run_out(self->fd, 5));
	EXPECT_EQ(-ESTALE, lease_grant(self->fd, OWNER, 1, HOUR));
	EXPECT_EQ(-ESTALE, lease_grant(self->fd, OWNER, 5, HOUR));
	EXPECT_EQ(0, lease_grant(self->fd, OWNER, UINT64_MAX, HOUR));
	EXPECT_EQ(0, try_owned(self->fd, 1, UINT64_MAX));
}

/* For every operation that takes one, whether or not it would be granted. */
TEST_F(ctx, g4_case37_after_a_new_grant_the_old_token_is_stale)
{
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	ASSERT_LT(0, run_out(self->fd, 1));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 2, HOUR));
	EXPECT_EQ(-ESTALE, try_owned(self->fd, 1, 1));
	EXPECT_EQ(-ESTALE, lease_renew(self->fd, OWNER, 1, HOUR));
	EXPECT_EQ(-ESTALE, lease_revoke(self->fd, OWNER, 1, 0));
	EXPECT_EQ(-ESTALE, lease_revoke(self->fd, OWNER, 1,
					SPOTTIMER_LEASE_FORGET));
	EXPECT_EQ(-ESTALE, lease_grant(self->fd, OWNER, 1, HOUR));
	EXPECT_EQ(-ESTALE, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER, 1,
				 HOUR, SPOTTIMER_LEASE_ADOPT));
	/* none of them has done anything to the new one */
	EXPECT_EQ(-ENOENT, query(self->fd, 1, 0).error);
	EXPECT_EQ(0, try_owned(self->fd, 1, 2));
	EXPECT_EQ(0, lease_renew(self->fd, OWNER, 2, HOUR));
}

FIXTURE(regrant) {
	int fd;
};

FIXTURE_VARIANT(regrant) {
	bool expired;
};

FIXTURE_VARIANT_ADD(regrant, live) {
	.expired = false,
};

FIXTURE_VARIANT_ADD(regrant, expired) {
	.expired = true,
};

FIXTURE_SETUP(regrant)
{
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
}

FIXTURE_TEARDOWN(regrant)
{
	close(self->fd);
}

/* Let the lease of epoch 1 run out, where that is what is tested. */
static int maybe_expire(int fd, bool expired)
{
	return expired ? run_out_and_take(fd, 1) : 0;
}

/* Take what is there. Returns how many records were ticks. */
static int drain_ticks(int fd)
{
	struct spottimer_record rec;
	int ticks = 0;

	while (read_records(fd, &rec, 1) == 1)
		ticks += !!(rec.flags & SPOTTIMER_REC_TICK);
	return ticks;
}

TEST_F(regrant, g4_case40_a_new_grant_ends_the_old_timers)
{
	struct spottimer_record rec;
	__u64 old[3], new;
	int i;

	/* one that is ready, one that is due later, one that is far */
	old[0] = arm_owned(self->fd, 0, 0, 1, 0);
	ASSERT_TRUE(wait_state(self->fd, 0, 0, SPOTTIMER_READY));
	for (i = 1; i < 3; i++) {
		struct spottimer_register reg;

		reg = owned(i, now() + (i == 1 ? 30 * MSEC : HOUR), MSEC, 1);
		ASSERT_EQ(0, spot_register(self->fd, &reg));
		old[i] = reg.generation;
	}
	ASSERT_EQ(0, maybe_expire(self->fd, variant->expired));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 2, HOUR));
	EXPECT_EQ(0, drain_ticks(self->fd));
	EXPECT_TRUE(nothing_for(self->fd, 2 * A_WHILE));

	/* they are over, and their keys are free at once */
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(is_over(self->fd, i, old[i]));
		new = arm_owned(self->fd, i, 0, 2, SPOTTIMER_REG_EXCL);
		EXPECT_LT(old[i], new);
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_TICK(rec, i, new, 1, 1);
	}
}

TEST_F(regrant, g4_case40_the_keys_are_free_as_soon_as_the_deadline_has_come)
{
	struct spottimer_register reg = owned(1, now() + HOUR, 0, 1);

	ASSERT_EQ(0, spot_register(self->fd, &reg));
	if (variant->expired)
		ASSERT_LT(0, run_out(self->fd, 1));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 2, HOUR));
	reg = owned(1, now() + HOUR, 0, 2);
	reg.flags |= SPOTTIMER_REG_EXCL;
	EXPECT_EQ(0, spot_register(self->fd, &reg));
}

TEST_F(regrant, g4_adopted_timers_go_on_without_the_missed_ticks)
{
	struct spottimer_register reg = owned(1, now(), 2 * MSEC, 1);
	struct spottimer_record rec = { 0 }, last;
	__s64 granted;
	int i;

	/* all of the missed ticks would come, if they were not skipped */
	reg.policy = SPOTTIMER_CATCH_UP;
	reg.max_catch_up = INT_MAX;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(0, maybe_expire(self->fd, variant->expired));
	if (variant->expired) {
		drain_ticks(self->fd);
		EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	}
	last.delivery_index = query(self->fd, 1, 0).started;
	last.scheduled_index = query(self->fd, 1, 0).scheduled;

	granted = now();
	ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER, 2, HOUR,
			   SPOTTIMER_LEASE_ADOPT));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(SPOTTIMER_REC_TICK, rec.flags);
		EXPECT_EQ(reg.generation, rec.generation);
		EXPECT_EQ(last.delivery_index + 1, rec.delivery_index);
		EXPECT_EQ(rec.scheduled_index - last.scheduled_index - 1,
			  rec.skipped_ticks);
		/* only what came due since */
		if (variant->expired)
			EXPECT_LT(granted, reg.first +
				  ((__s64)rec.scheduled_index - 1) *
				  reg.period);
		/* a gap once, at the most */
		if (i || !variant->expired)
			EXPECT_EQ(0, rec.skipped_ticks);
		last = rec;
	}
}

TEST_F(ctx, g4_an_adopted_timer_whose_only_tick_was_missed_has_ended)
{
	__u64 generation;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	generation = arm_owned(self->fd, 1, 0, 1, 0);
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	ASSERT_EQ(0, run_out_and_take(self->fd, 1));
	ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER, 2, HOUR,
			   SPOTTIMER_LEASE_ADOPT));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_TRUE(is_over(self->fd, 1, generation));
}

TEST_F(regrant, g4_an_adopted_timer_that_was_not_due_yet_just_fires)
{
	struct spottimer_register reg;
	struct spottimer_record rec;

	reg = owned(1, now() + 300 * MSEC, 0, 1);
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, maybe_expire(self->fd, variant->expired));
	ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER, 2, HOUR,
			   SPOTTIMER_LEASE_ADOPT));
	if (variant->expired && now() >= reg.first)
		SKIP(return, "the machine was too slow");
	do {
		ASSERT_EQ(0, take(self->fd, &rec));
	} while (rec.flags & SPOTTIMER_REC_LEASE);
	EXPECT_TICK(rec, 1, reg.generation, 1, 1);
	EXPECT_EQ(OWNER, rec.owner);
}

/*
 * G6: handlers that run when the lease ends
 */

TEST_F(regrant, g6_a_handler_that_runs_may_be_completed)
{
	struct spottimer_record rec;
	__u64 generation;

	generation = arm_owned(self->fd, 1, 2 * MSEC, 1, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(0, maybe_expire(self->fd, variant->expired));
	if (!variant->expired)
		ASSERT_EQ(0, lease_revoke(self->fd, OWNER, 1, 0));
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, generation).state);
	EXPECT_EQ(0, complete(self->fd, 1, generation, -EIO));
	EXPECT_EQ(-EIO, query(self->fd, 1, generation).result);
	EXPECT_EQ(0, drain_ticks(self->fd));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_TRUE(wait_state(self->fd, 1, generation, SPOTTIMER_HELD));
}

TEST_F(regrant, g6_also_after_a_new_grant)
{
	struct spottimer_record rec;
	__u64 generation, new;

	generation = arm_owned(self->fd, 1, 2 * MSEC, 1, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(0, maybe_expire(self->fd, variant->expired));
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 2, HOUR));
	EXPECT_EQ(0, drain_ticks(self->fd));

	/* the key is free, but one handler runs at a time */
	new = arm_owned(self->fd, 1, MSEC, 2, SPOTTIMER_REG_EXCL);
	ASSERT_NE(0, new);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	do {
		ASSERT_EQ(0, take(self->fd, &rec));
	} while (rec.flags & SPOTTIMER_REC_END);
	EXPECT_EQ(new, rec.generation);
	EXPECT_EQ(1, rec.delivery_index);
}

TEST_F(regrant, g6_an_adopted_timer_goes_on_after_completion)
{
	struct spottimer_record rec;
	__u64 generation, last;

	generation = arm_owned(self->fd, 1, 2 * MSEC, 1, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	last = rec.scheduled_index;
	ASSERT_EQ(0, maybe_expire(self->fd, variant->expired));
	ASSERT_EQ(0, drain_ticks(self->fd));
	ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER, 2, HOUR,
			   SPOTTIMER_LEASE_ADOPT));
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, generation).state);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(generation, rec.generation);
	EXPECT_EQ(2, rec.delivery_index);
	EXPECT_EQ(rec.scheduled_index - last - 1, rec.skipped_ticks);
}

/*
 * Revoke, forget, cancel
 */

TEST_F(ctx, g1_a_lease_that_is_revoked_has_ended)
{
	struct spottimer_record rec;
	__u64 generation;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	generation = arm_owned(self->fd, 1, MSEC, 1, 0);
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(0, lease_revoke(self->fd, OWNER, 1, 0));
	EXPECT_EQ(0, drain_ticks(self->fd));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_EQ(1, query(self->fd, 1, generation).started);
	EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 2, 1));
	EXPECT_EQ(-EKEYEXPIRED, lease_renew(self->fd, OWNER, 1, HOUR));
	EXPECT_EQ(-ESTALE, lease_grant(self->fd, OWNER, 1, HOUR));
	EXPECT_EQ(0, lease_grant(self->fd, OWNER, 2, HOUR));
	EXPECT_EQ(0, try_owned(self->fd, 2, 2));
}

TEST_F(ctx, g1_a_ready_record_is_withdrawn_by_a_revocation)
{
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	ASSERT_NE(0, arm_owned(self->fd, 1, 0, 1, 0));
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	ASSERT_EQ(0, lease_revoke(self->fd, OWNER, 1, 0));
	EXPECT_EQ(0, drain_ticks(self->fd));
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, g1_an_owner_that_is_forgotten_begins_anew)
{
	struct spottimer_record rec;
	__u64 generation;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 9, HOUR));
	generation = arm_owned(self->fd, 1, MSEC, 9, 0);
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(0, lease_revoke(self->fd, OWNER, 9, SPOTTIMER_LEASE_FORGET));
	EXPECT_EQ(0, drain_ticks(self->fd));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_TRUE(is_over(self->fd, 1, generation));
	EXPECT_EQ(-EKEYEXPIRED, try_owned(self->fd, 1, 9));

	/* its epoch is forgotten, too */
	EXPECT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	EXPECT_NE(0, arm_owned(self->fd, 1, MSEC, 1, SPOTTIMER_REG_EXCL));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_LT(generation, rec.generation);
}

TEST_F(ctx, g4_a_timer_that_is_held_can_be_cancelled)
{
	struct spottimer_cancel c;
	__u64 generation;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	generation = arm_owned(self->fd, 1, MSEC, 1, 0);
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	ASSERT_EQ(0, run_out_and_take(self->fd, 1));
	ASSERT_TRUE(wait_state(self->fd, 1, generation, SPOTTIMER_HELD));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_EQ(0, c.error);
	EXPECT_EQ(0, c.started);
	EXPECT_TRUE(is_over(self->fd, 1, generation));
	ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER, 2, HOUR,
			   SPOTTIMER_LEASE_ADOPT));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, g4_a_timer_that_is_held_can_be_replaced)
{
	struct spottimer_record rec;
	__u64 generation;

	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 1, HOUR));
	ASSERT_NE(0, arm_owned(self->fd, 1, MSEC, 1, 0));
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	ASSERT_EQ(0, run_out_and_take(self->fd, 1));
	/* by one without an owner */
	generation = arm_once(self->fd, 1, 0, SPOTTIMER_REG_REARM);
	ASSERT_NE(0, generation);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, generation, 1, 1);
	EXPECT_EQ(0, rec.owner);
}

TEST_HARNESS_MAIN
