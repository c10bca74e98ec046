// SPDX-License-Identifier: GPL-2.0
/*
 * A million timers in one file, and what is left of them: nothing. That the
 * kernel does not stall meanwhile is seen in its log. Times are printed and not
 * judged.
 */
#include "spottimer_test.h"

enum {
	BATCH = 10000,
};

/*
 * A kernel that looks for mistakes takes too long for a million, and keeps what
 * was freed for a while, to see who uses it still: it is told to init, and so
 * comes to us by the environment.
 */
static int scale(void)
{
	const char *value = getenv("SPOT_SCALE");

	return value && atoi(value) > 0 ? atoi(value) : 1;
}

#define MILLION	(1000000 / scale())

FIXTURE(million) {
	int fd;
	long long max_user_timers;
	long slab;
};

/* kB of slab memory that the kernel uses */
static long slab_used(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[120];
	long kb = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Slab: %ld kB", &kb) == 1)
			break;
	if (file)
		fclose(file);
	return kb;
}

/*
 * The limit of a user is just a million, so that to register a million again is
 * to see that all of the first were given back.
 */
FIXTURE_SETUP(million)
{
	self->max_user_timers = read_param("max_user_timers");
	ASSERT_LT(0, self->max_user_timers);
	ASSERT_EQ(0, write_param("max_user_timers", MILLION));
	self->slab = slab_used();
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
static int register_a_million(int fd)
{
	static struct spottimer_register reg[BATCH];
	int done = 0, i, k;

	for (i = 0; i < MILLION; i += BATCH) {
		/* from an hour on, over another one */
		for (k = 0; k < BATCH; k++)
			reg[k] = timer_once(i + k, HOUR + (i + k) * 3600000LL);
		if (spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, BATCH,
			       sizeof(reg[0])) != BATCH)
			break;
		for (k = 0; k < BATCH; k++)
			done += !reg[k].error;
	}
	return done;
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
	while (slab_used() > before + (peak - before) / 4)
		if (!look_again(&since))
			return false;
	return true;
}

static double seconds_since(__s64 begin)
{
	return (now() - begin) / 1e9;
}

TEST_F_TIMEOUT(million, h5_closing_the_file_ends_them, 300)
{
	__s64 begin = now();
	long peak;

	ASSERT_EQ(MILLION, register_a_million(self->fd));
	TH_LOG("registered in %.1f s", seconds_since(begin));
	peak = slab_used();
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
	peak = slab_used();
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
