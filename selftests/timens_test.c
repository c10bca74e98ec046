// SPDX-License-Identifier: GPL-2.0
/*
 * Time namespaces: absolute times are those of the caller's namespace, relative
 * ones are the same everywhere (contract A1).
 */
#include "spottimer_test.h"

/* Clocks of the namespace that is entered differ by this many seconds. */
FIXTURE(timens) {
	int fd;
};

FIXTURE_VARIANT(timens) {
	int monotonic;
	int boottime;
};

FIXTURE_VARIANT_ADD(timens, ahead) {
	.monotonic = 100000,
	.boottime = 3000000,
};

/* There is no time before zero, so it cannot be far behind. */
FIXTURE_VARIANT_ADD(timens, behind) {
	.monotonic = -1,
	.boottime = -2,
};

FIXTURE_VARIANT_ADD(timens, ahead_and_behind) {
	.monotonic = 50 * 365 * 86400,
	.boottime = -1,
};

FIXTURE_SETUP(timens)
{
	char text[80];

	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	/* timers of before, in the time of the machine */
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	if (unshare(CLONE_NEWTIME))
		SKIP(return, "no time namespaces");
	while (now_on(CLOCK_BOOTTIME) < 3 * SEC)
		usleep(10000);
	snprintf(text, sizeof(text), "monotonic %d 0\nboottime %d 0\n",
		 variant->monotonic, variant->boottime);
	ASSERT_EQ(0, write_file("/proc/self/timens_offsets", text));
}

FIXTURE_TEARDOWN(timens)
{
	close(self->fd);
}

/*
 * Only children of the process are in the namespace. Runs the rest of the test
 * in one, which ends with it.
 */
#define IN_NAMESPACE()							\
	for (pid_t pid_ = fork_into(_metadata); !pid_; _exit(0))

static pid_t fork_into(struct __test_metadata *_metadata)
{
	pid_t pid = fork();
	int status;

	ASSERT_LE(0, pid);
	if (!pid)
		return pid;
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	return pid;
}

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

TEST_F(timens, a1_the_clocks_do_differ)
{
	__s64 mono = now(), boot = now_on(CLOCK_BOOTTIME);

	IN_NAMESPACE() {
		EXPECT_LE(mono + variant->monotonic * SEC, now());
		EXPECT_GE(mono + variant->monotonic * SEC + PATIENCE * MSEC,
			  now());
		EXPECT_LE(boot + variant->boottime * SEC,
			  now_on(CLOCK_BOOTTIME));
	}
}

TEST_F(timens, a1_an_absolute_time_is_that_of_the_caller)
{
	IN_NAMESPACE() {
		struct spottimer_register reg;
		struct spottimer_record rec;
		struct spottimer_query q;
		unsigned int i;

		for (i = 0; i < ARRAY_LEN(clocks); i++) {
			__s64 begin = now_on(clocks[i]), passed;

			/* what remains does not depend on where one is */
			reg = timer_every(10 + i, begin + HOUR, SEC);
			reg.clock = clocks[i];
			ASSERT_EQ(0, spot_register(self->fd, &reg));
			q = query(self->fd, 10 + i, 0);
			passed = now_on(clocks[i]) - begin;
			EXPECT_GE(HOUR, q.remaining);
			EXPECT_LE(HOUR - passed, q.remaining);

			/* never early, and not much too late */
			reg = timer_every(20 + i, now_on(clocks[i]) + 20 * MSEC,
					  0);
			reg.clock = clocks[i];
			ASSERT_EQ(0, spot_register(self->fd, &reg));
			ASSERT_EQ(0, take(self->fd, &rec));
			EXPECT_LE(reg.first, now_on(clocks[i]));
			EXPECT_TICK(rec, 20 + i, reg.generation, 1, 1);
		}
	}
}

TEST_F(timens, a1_ticks_are_numbered_on_the_callers_clock)
{
	IN_NAMESPACE() {
		struct spottimer_register reg;
		struct spottimer_record rec;
		unsigned int i;

		for (i = 0; i < ARRAY_LEN(clocks); i++) {
			__s64 at = now_on(clocks[i]);
			__s64 first = at - 500 * MSEC;

			reg = timer_every(20 + i, first, 10 * MSEC);
			reg.clock = clocks[i];
			ASSERT_EQ(0, spot_register(self->fd, &reg));
			ASSERT_EQ(0, take(self->fd, &rec));
			/* the newest that was due when it was taken */
			EXPECT_LE(51, rec.scheduled_index);
			EXPECT_GE((now_on(clocks[i]) - first) / (10 * MSEC) + 1,
				  rec.scheduled_index);
			EXPECT_EQ(0, cancel(self->fd, 20 + i, 0, 0).error);
		}
	}
}

TEST_F(timens, a1_a_relative_time_is_the_same_everywhere)
{
	IN_NAMESPACE() {
		struct spottimer_register reg;
		struct spottimer_record rec;
		struct spottimer_query q;
		unsigned int i;

		for (i = 0; i < ARRAY_LEN(clocks); i++) {
			__s64 begin = now_on(clocks[i]);

			reg = timer_once(10 + i, HOUR);
			reg.clock = clocks[i];
			ASSERT_EQ(0, spot_register(self->fd, &reg));
			q = query(self->fd, 10 + i, 0);
			EXPECT_GE(HOUR, q.remaining);
			EXPECT_LE(HOUR - (now_on(clocks[i]) - begin),
				  q.remaining);

			begin = now_on(clocks[i]);
			reg = timer_once(20 + i, 20 * MSEC);
			reg.clock = clocks[i];
			ASSERT_EQ(0, spot_register(self->fd, &reg));
			ASSERT_EQ(0, take(self->fd, &rec));
			EXPECT_LE(begin + 20 * MSEC, now_on(clocks[i]));
			EXPECT_TICK(rec, 20 + i, reg.generation, 1, 1);
		}
	}
}

TEST_F(timens, a1_a_timer_does_not_belong_to_a_namespace)
{
	__s64 begin = now();
	struct spottimer_query q;

	IN_NAMESPACE() {
		/* that of before has its time still */
		q = query(self->fd, 1, 0);
		EXPECT_EQ(0, q.error);
		EXPECT_GE(HOUR, q.remaining);
		EXPECT_LE(HOUR - PATIENCE * MSEC, q.remaining);
		ASSERT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	}
	/* and one of there is seen from here */
	q = query(self->fd, 2, 0);
	EXPECT_EQ(0, q.error);
	EXPECT_GE(HOUR, q.remaining);
	EXPECT_LE(HOUR - (now() - begin), q.remaining);
}

/* A time that is there before the machine's clocks began is just past. */
TEST_F(timens, a1_h1_times_at_both_ends)
{
	IN_NAMESPACE() {
		struct spottimer_register reg;
		struct spottimer_record rec;
		unsigned int i;

		for (i = 0; i < ARRAY_LEN(clocks); i++) {
			reg = timer_every(20 + i, 0, 0);
			reg.clock = clocks[i];
			ASSERT_EQ(0, spot_register(self->fd, &reg));
			ASSERT_EQ(0, take(self->fd, &rec));
			EXPECT_TICK(rec, 20 + i, reg.generation, 1, 1);

			reg = timer_every(30 + i, INT64_MAX, 0);
			reg.clock = clocks[i];
			ASSERT_EQ(0, spot_register(self->fd, &reg));
			EXPECT_LT(100LL * 365 * 24 * HOUR,
				  query(self->fd, 30 + i, 0).remaining);
		}
		EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	}
}

TEST_F(timens, g1_a1_the_deadline_of_a_lease_is_that_of_the_caller)
{
	IN_NAMESPACE() {
		__s64 begin = now_on(CLOCK_BOOTTIME);
		const __u32 abstime = SPOTTIMER_LEASE_ABSTIME;
		struct spottimer_record rec;
		__s64 deadline;

		/* what is past here is refused, what is to come is granted */
		EXPECT_EQ(-EINVAL, lease(self->fd, SPOTTIMER_LEASE_GRANT, 1, 1,
					 begin, abstime));
		EXPECT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, 1, 1,
				   begin + HOUR, abstime));
		EXPECT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_GRANT, 2, 1,
				   INT64_MAX, abstime));
		EXPECT_EQ(0, lease_grant(self->fd, 3, 1, HOUR));
		EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

		deadline = now_on(CLOCK_BOOTTIME) + 30 * MSEC;
		ASSERT_EQ(0, lease(self->fd, SPOTTIMER_LEASE_RENEW, 1, 1,
				   deadline, abstime));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_LE(deadline, now_on(CLOCK_BOOTTIME));
		EXPECT_EQ(SPOTTIMER_REC_LEASE, rec.flags);
		EXPECT_EQ(1, rec.owner);

		deadline = now_on(CLOCK_BOOTTIME) + 30 * MSEC;
		ASSERT_EQ(0, lease_renew(self->fd, 3, 1, 30 * MSEC));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_LE(deadline, now_on(CLOCK_BOOTTIME));
		EXPECT_EQ(3, rec.owner);
	}
}

TEST_HARNESS_MAIN
