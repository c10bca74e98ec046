// SPDX-License-Identifier: GPL-2.0
/*
 * CLOCK_REALTIME, which is set while timers wait on it (contract A13).
 *
 * How far it is ahead of CLOCK_MONOTONIC is what setting it changes, and what
 * the fixture puts right again.
 */
#include "spottimer_test.h"

#define DAY	(24 * HOUR)
#define YEAR	(365 * DAY)

FIXTURE(realtime) {
	int fd;
	__s64 ahead;
};

static __s64 wall(void)
{
	return now_on(CLOCK_REALTIME);
}

static int set_wall(__s64 time)
{
	struct timespec ts = { time / SEC, time % SEC };

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

/* Step the clock, and keep the latest time that it has shown in @seen. */
static int step_wall(__s64 by, __s64 *seen)
{
	__s64 time = wall();

	*seen = time > *seen ? time : *seen;
	*seen = time + by > *seen ? time + by : *seen;
	return by ? set_wall(time + by) : 0;
}

FIXTURE_SETUP(realtime)
{
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->ahead = wall() - now();
	/* so that there is room before it, however the machine was started */
	ASSERT_EQ(0, set_wall(50 * YEAR + now()));
}

FIXTURE_TEARDOWN(realtime)
{
	set_wall(self->ahead + now());
	close(self->fd);
}

static __s64 arm_wall(int fd, __u64 key, __s64 time)
{
	struct spottimer_register reg = timer_every(key, time, 0);

	reg.clock = CLOCK_REALTIME;
	return spot_register(fd, &reg);
}

/* Timers on all levels of the wheel, up to years; all are later than an hour. */
#define FAR	10

static __s64 far(int i)
{
	return HOUR + ((60 * SEC) << 2 * i);
}

static const __s64 shifts[] = { 3 * SEC, DAY, 3 * YEAR };

TEST_F(realtime, a13_forward_what_is_due_comes_and_the_rest_waits)
{
	struct spottimer_record rec;
	size_t s;
	int i;

	for (s = 0; s < ARRAY_LEN(shifts); s++) {
		__s64 start = wall();
		int due = 0;

		for (i = 0; i < FAR; i++)
			ASSERT_EQ(0, arm_wall(self->fd, i, start + far(i)));
		ASSERT_EQ(0, arm_wall(self->fd, FAR, start + 2 * SEC));
		ASSERT_TRUE(nothing(self->fd));

		ASSERT_EQ(0, set_wall(start + shifts[s]));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(FAR, rec.key);
		while (due < FAR && start + far(due) <= start + shifts[s]) {
			ASSERT_EQ(0, take(self->fd, &rec));
			EXPECT_EQ(due, rec.key);
			due++;
		}
		EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
		/* what is left comes as soon as the clock says so */
		for (i = due; i < FAR; i++) {
			EXPECT_EQ(SPOTTIMER_PENDING, query(self->fd, i, 0).state);
			ASSERT_EQ(0, set_wall(start + far(i) - SEC));
			EXPECT_TRUE(nothing(self->fd));
			ASSERT_EQ(0, set_wall(start + far(i)));
			ASSERT_EQ(0, take(self->fd, &rec));
			EXPECT_EQ(i, rec.key);
		}
	}
}

TEST_F(realtime, a13_backward_the_wait_grows)
{
	struct spottimer_record rec;
	size_t s;
	int i;

	for (s = 0; s < ARRAY_LEN(shifts); s++) {
		__s64 start = wall();

		for (i = 0; i < FAR; i++)
			ASSERT_EQ(0, arm_wall(self->fd, i, start + far(i)));
		ASSERT_EQ(0, arm_wall(self->fd, FAR, start + A_WHILE * MSEC));

		ASSERT_EQ(0, set_wall(start - shifts[s]));
		EXPECT_TRUE(nothing_for(self->fd, 3 * A_WHILE));
		EXPECT_LT(shifts[s] - 2 * SEC,
			  query(self->fd, FAR, 0).remaining);

		ASSERT_EQ(0, set_wall(start + A_WHILE * MSEC));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(FAR, rec.key);
		for (i = 0; i < FAR; i++) {
			ASSERT_EQ(0, set_wall(start + far(i) - SEC));
			EXPECT_TRUE(nothing(self->fd));
			ASSERT_EQ(0, set_wall(start + far(i)));
			ASSERT_EQ(0, take(self->fd, &rec));
			EXPECT_EQ(i, rec.key);
		}
	}
}

TEST_F(realtime, a13_after_the_clock_was_set_back_a_new_timer_comes_in_time)
{
	struct spottimer_record rec;
	size_t s;

	for (s = 0; s < ARRAY_LEN(shifts); s++) {
		/* the wheel has seen this time */
		ASSERT_EQ(0, arm_wall(self->fd, 1, wall()));
		ASSERT_EQ(0, take(self->fd, &rec));

		ASSERT_EQ(0, set_wall(wall() - shifts[s]));
		ASSERT_EQ(0, arm_wall(self->fd, 2, wall() + 5 * MSEC));
		/* PATIENCE is longer than the shortest of the shifts */
		ASSERT_TRUE(readable_for(self->fd, s ? PATIENCE : 2000));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(2, rec.key);
	}
}

TEST_F(realtime, a13_what_was_due_when_the_clock_was_set_back)
{
	struct spottimer_record rec;
	int i;

	/*
	 * It would come at the next wheel tick, and often has before the clock
	 * is set. If not it has to wait a second, but not for that tick.
	 */
	for (i = 0; i < 5; i++) {
		__s64 time = wall();

		ASSERT_EQ(0, arm_wall(self->fd, i, time - HOUR));
		ASSERT_EQ(0, set_wall(time - HOUR - SEC));
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(i, rec.key);
	}
}

TEST_F(realtime, a13_a_timer_that_repeats_skips_or_catches_up)
{
	struct spottimer_register reg = timer_every(1, wall() + SEC, SEC);
	struct spottimer_record rec[3];

	reg.clock = CLOCK_REALTIME;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	reg.key = 2;
	reg.generation = 0;
	reg.policy = SPOTTIMER_CATCH_UP;
	reg.max_catch_up = 2;
	ASSERT_EQ(0, spot_register(self->fd, &reg));

	/* in the middle of a period, which is long enough for all of this */
	ASSERT_EQ(0, set_wall(reg.first + DAY + SEC / 10));
	ASSERT_EQ(3, take_all(self->fd, rec, 3));
	EXPECT_EQ(1, rec[0].key);
	EXPECT_LE(24 * 3600 + 1, rec[0].scheduled_index);
	EXPECT_EQ(rec[0].scheduled_index - 1, rec[0].skipped_ticks);
	EXPECT_EQ(2, rec[1].key);
	EXPECT_LE(24 * 3600, rec[1].scheduled_index);
	EXPECT_EQ(2, rec[2].key);
	EXPECT_EQ(rec[1].scheduled_index + 1, rec[2].scheduled_index);

	/* tick by tick it goes on from there only when that time has come again */
	ASSERT_EQ(0, set_wall(reg.first));
	EXPECT_TRUE(nothing_for(self->fd, 1200));
	ASSERT_EQ(0, set_wall(reg.first + 2 * DAY));
	ASSERT_EQ(0, take(self->fd, &rec[0]));
	EXPECT_EQ(2, rec[0].delivery_index);
	EXPECT_LE(2 * 24 * 3600 + 1, rec[0].scheduled_index);
}

TEST_F(realtime, a13_a_relative_time_counts_from_the_clock_at_the_call)
{
	struct spottimer_register reg = timer_once(1, HOUR);
	struct spottimer_record rec;

	reg.clock = CLOCK_REALTIME;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_EQ(0, set_wall(wall() + HOUR - 10 * SEC));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	ASSERT_EQ(0, set_wall(wall() + 10 * SEC));
	EXPECT_EQ(0, take(self->fd, &rec));
}

TEST_F(realtime, a13_other_clocks_do_not_care)
{
	static const __s64 steps[] = { YEAR, -2 * YEAR, YEAR + SEC, -SEC };
	struct spottimer_record rec;
	__s64 start = now();
	size_t i;

	ASSERT_LT(0, arm_once(self->fd, 1, 200 * MSEC, 0));
	ASSERT_LT(0, arm_once(self->fd, 2, HOUR, 0));
	for (i = 0; i < ARRAY_LEN(steps); i++)
		ASSERT_EQ(0, set_wall(wall() + steps[i]));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(1, rec.key);
	EXPECT_LE(start + 200 * MSEC, now());
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(realtime, a13_a_thousand_timers_and_a_clock_that_jumps)
{
	const __u64 n = 1000;
	__s64 start = wall();
	unsigned int seed = 1;
	__s64 seen = 0;
	__u64 i, came = 0;
	__s64 due[1000];

	for (i = 0; i < n; i++) {
		due[i] = start + rand_r(&seed) % (10 * 60 * 1000) * MSEC;
		ASSERT_EQ(0, arm_wall(self->fd, i, due[i]));
	}
	/* three seconds back for every ten forward */
	while (came < n) {
		struct spottimer_record rec[64];
		int got;

		ASSERT_EQ(0, step_wall(came & 1 ? -3 * SEC : 10 * SEC, &seen));
		ASSERT_GT(start + 2 * HOUR, seen);
		usleep(2000);
		got = read_records(self->fd, rec, ARRAY_LEN(rec));
		ASSERT_EQ(0, step_wall(got == -EAGAIN ? 10 * SEC : 0, &seen));
		while (got > 0) {
			i = rec[--got].key;
			EXPECT_NE(0, due[i]);
			EXPECT_LE(due[i], seen);
			due[i] = 0;
			came++;
		}
	}
	EXPECT_TRUE(nothing(self->fd));
}

TEST_HARNESS_MAIN
