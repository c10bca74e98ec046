// SPDX-License-Identifier: GPL-2.0
/*
 * A million timers in one file: how they come, and what is left of them, which
 * is nothing. That the kernel does not stall meanwhile is seen in its log. Times
 * are printed and not judged.
 */
#include "spottimer_test.h"

enum {
	BATCH = 10000,
};

#define MILLION	(1000000 / scale())

FIXTURE(million) {
	int fd;
	long long max_user_timers;
	long slab;
};

/*
 * The limit of a user is just a million, so that to register a million again is
 * to see that all of the first were given back.
 */
FIXTURE_SETUP(million)
{
	self->max_user_timers = read_param("max_user_timers");
	ASSERT_LT(0, self->max_user_timers);
	ASSERT_EQ(0, write_param("max_user_timers", MILLION));
	self->slab = slab_kb();
	ASSERT_LT(0, self->slab);
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(million)
{
	EXPECT_EQ(0, write_param("max_user_timers", self->max_user_timers));
	close(self->fd);
}

/* Returns how many were registered. */
static int register_million(int fd, __s64 first, __s64 step)
{
	return register_many(fd, timer_every(0, first, 0), MILLION, step);
}

/* The same from an hour on, over another one. */
static int register_a_million(int fd)
{
	return register_million(fd, now() + HOUR, 3600000);
}

/*
 * Memory that RCU frees comes back a little later, and never to the last page:
 * most of what was added is enough to see that it was.
 */
static bool slab_comes_back(long before, long peak)
{
	__s64 since = 0;

	if (scale() != 1)
		return true;
	while (slab_kb() > before + (peak - before) / 4)
		if (!look_again(&since))
			return false;
	return true;
}

static double seconds_since(__s64 begin)
{
	return (now() - begin) / 1e9;
}

enum {
	CRITICAL = 16,
};

/*
 * All in one bucket of the third level, which holds four seconds: they have to
 * be registered before it begins, which takes as long as it takes. Returns 1 if
 * they were, 0 if that was too slow, -1 if it failed.
 */
static int fill_a_bucket(int fd, __s64 *first)
{
	__s64 bucket = 64 * 64 * read_param("tick_ns"), begin = now(), takes;
	int i, done;

	if (register_many(fd, timer_every(0, begin + HOUR, 0), BATCH, 0) != BATCH)
		return -1;
	takes = (now() - begin) * (MILLION / BATCH);
	*first = (now() + 2 * takes + SEC) / bucket * bucket + bucket;
	/* a thousand for each tick, or a share of that */
	done = register_million(fd, *first, MSEC * scale() / 1000);
	for (i = 0; i < CRITICAL; i++) {
		struct spottimer_register reg;

		reg = timer_every(MILLION + i, *first, 0);
		reg.flags |= SPOTTIMER_REG_CRITICAL;
		done += !spot_register(fd, &reg);
	}
	return done == MILLION + CRITICAL ? now() < *first : -1;
}

struct pass_counts {
	long long passes, entries, max;
};

static struct pass_counts pass_counts(void)
{
	struct pass_counts c = {
		.passes = counter("passes"),
		.entries = counter("candidates") + counter("cascaded"),
		.max = counter("pass_max"),
	};

	return c;
}

/*
 * Read them all: the critical ones ahead of all the others, and those in the
 * order of their times. Returns what is wrong, or "".
 */
static const char *read_million(int fd, __s64 first)
{
	static struct spottimer_record rec[BATCH];
	int got = 0, n, i;

	while (got < MILLION + CRITICAL) {
		n = readable_for(fd, 4 * PATIENCE) ?
			read_records(fd, rec, BATCH) : -ETIME;
		if (n < 0)
			return "they do not come";
		if (now() < first)
			return "early";
		for (i = 0; i < n; i++, got++) {
			bool critical = got < CRITICAL;

			if ((int)rec[i].key != got - CRITICAL +
					       critical * (CRITICAL + MILLION))
				return critical ? "critical ones wait" :
						  "out of order";
		}
	}
	return nothing(fd) ? "" : "too many";
}

FIXTURE(bucket) {
	int fd;
	__s64 first;
	struct pass_counts before;
	long long budget, budget_ns;
};

FIXTURE_VARIANT(bucket) {
	bool by_time;
};

FIXTURE_VARIANT_ADD(bucket, by_timers) {
	.by_time = false,
};

FIXTURE_VARIANT_ADD(bucket, by_time) {
	.by_time = true,
};

FIXTURE_SETUP(bucket)
{
	int tries = 5, ret;

	self->budget = read_param("budget");
	self->budget_ns = read_param("budget_ns");
	ASSERT_LT(0, self->budget);
	ASSERT_LT(0, self->budget_ns);
	ASSERT_EQ(0, stay_on_cpu(0));
	do {
		self->fd = spot_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd);
		self->before = pass_counts();
		ret = fill_a_bucket(self->fd, &self->first);
		ASSERT_LE(0, ret);
		if (!ret)
			close(self->fd);
	} while (!ret && --tries);
	ASSERT_EQ(1, ret);
}

FIXTURE_TEARDOWN(bucket)
{
	EXPECT_EQ(0, write_param("budget", self->budget));
	EXPECT_EQ(0, write_param("budget_ns", self->budget_ns));
	close(self->fd);
}

/*
 * Once only the number of timers ends a pass, once only its time. The number is
 * such that a pass which keeps to it is the largest so far: the counter is a
 * maximum of all time.
 */
TEST_F_TIMEOUT(bucket, a9_no_pass_takes_more_than_its_budget, 300)
{
	long long budget = self->before.max + 500;
	struct pass_counts after;

	if (variant->by_time)
		budget = 1000000;
	ASSERT_EQ(0, write_param("budget", budget));
	ASSERT_EQ(0, write_param("budget_ns", variant->by_time ? 10000 :
						100000000));
	ASSERT_STREQ("", read_million(self->fd, self->first));
	after = pass_counts();
	TH_LOG("%lld passes, %lld timers moved or expired, largest pass %lld, longest pass %lld ns",
	       after.passes - self->before.passes,
	       after.entries - self->before.entries, after.max,
	       counter("pass_max_ns"));
	/* each was moved down at least once, and expired once */
	EXPECT_LE(2 * MILLION, after.entries - self->before.entries);
	if (variant->by_time) {
		/* all in ten passes of 10 us each? no machine is so fast */
		EXPECT_LT(10, after.passes - self->before.passes);
		EXPECT_LT(after.max, MILLION);
	} else {
		EXPECT_LE(budget, after.max);
		/* moved and expired, they come on top of one pass */
		EXPECT_GE(budget + 2 * CRITICAL, after.max);
	}
}

TEST_F_TIMEOUT(million, h5_closing_the_file_ends_them, 300)
{
	__s64 begin = now();
	long peak;

	ASSERT_EQ(MILLION, register_a_million(self->fd));
	TH_LOG("registered in %.1f s", seconds_since(begin));
	peak = slab_kb();
	TH_LOG("%ld bytes each, of slab memory",
	       (peak - self->slab) * 1024 / MILLION);
	EXPECT_EQ(0, arm_once(self->fd, MILLION, HOUR, 0));

	begin = now();
	close(self->fd);
	TH_LOG("closed in %.1f s", seconds_since(begin));
	EXPECT_TRUE(slab_comes_back(self->slab, peak));

	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(MILLION, register_a_million(self->fd));
}

TEST_F_TIMEOUT(million, h5_killing_the_process_ends_them, 300)
{
	int pipefd[2], status, n;
	__s64 begin;
	long peak;
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd = spot_open(0);

		close(self->fd);
		n = register_a_million(fd);
		if (write(pipefd[1], &n, sizeof(n)) != sizeof(n))
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(sizeof(n), read(pipefd[0], &n, sizeof(n)));
	ASSERT_EQ(MILLION, n);
	peak = slab_kb();
	EXPECT_EQ(0, arm_once(self->fd, 1, HOUR, 0));

	begin = now();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	TH_LOG("killed in %.1f s", seconds_since(begin));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	EXPECT_TRUE(slab_comes_back(self->slab, peak));
	EXPECT_EQ(MILLION, register_a_million(self->fd));
}

TEST_F_TIMEOUT(million, e7_cancelling_all_ends_them, 300)
{
	struct spottimer_cancel c;
	__s64 begin;

	ASSERT_EQ(MILLION, register_a_million(self->fd));
	begin = now();
	c = cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL);
	TH_LOG("cancelled in %.1f s", seconds_since(begin));
	EXPECT_EQ(0, c.error);
	EXPECT_EQ(MILLION, c.cancelled);
	EXPECT_TRUE(nothing(self->fd));
	/* there is room for as many again in the same file */
	EXPECT_EQ(MILLION, register_a_million(self->fd));
}

TEST_HARNESS_MAIN
