// SPDX-License-Identifier: GPL-2.0
/*
 * What the engine costs, as the counters in debugfs show it, and what an open
 * file tells in its fdinfo. No other timers are about while this runs.
 */
#include "spottimer_test.h"

#include <dirent.h>

#define COUNTERS "/sys/kernel/debug/spottimer/counters"

/* The number that follows @name at the beginning of a line, -1 if none does. */
static long long read_number(const char *path, const char *name)
{
	size_t len = strlen(name);
	long long value = -1;
	char line[1024];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && strchr(": \t", line[len]) &&
		    sscanf(line + len, "%*[: \t]%lld", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

static long long counter(const char *name)
{
	return read_number(COUNTERS, name);
}

/* Wait for the number of hrtimers in use, over all CPUs. */
static bool wait_hrtimers(long long n)
{
	__s64 since = 0;

	while (counter("hrtimers") != n)
		if (!look_again(&since))
			return false;
	return true;
}

static long long fd_number(int fd, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return read_number(path, name);
}

/* Register @n timers with keys from @key on. Returns how many it did. */
static int register_many(int fd, __u64 key, int n, __s64 delay, __s64 period)
{
	struct spottimer_register reg[500];
	int done = 0, i;

	while (done < n) {
		for (i = 0; i < (int)ARRAY_LEN(reg) && done + i < n; i++) {
			reg[i] = timer_once(key + done + i, delay + i * 1000);
			reg[i].period = period;
		}
		if (spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, i,
			       sizeof(reg[0])) != i || reg[0].error)
			break;
		done += i;
	}
	return done;
}

/* Kernel threads with "spot" in their names; they have no command line. */
static int count_threads(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		char path[280], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgetc(file) == EOF) {
			fclose(file);
			snprintf(path, sizeof(path), "/proc/%s/comm",
				 entry->d_name);
			file = fopen(path, "r");
			if (file && fgets(name, sizeof(name), file))
				n += !!strstr(name, "spot");
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return n;
}

TEST_F(ctx, a7_without_a_timer_no_hrtimer_is_armed)
{
	struct spottimer_record rec;

	EXPECT_TRUE(wait_hrtimers(0));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_EQ(1, counter("hrtimers"));
	ASSERT_NE(0, arm_once(self->fd, 1, MSEC, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TRUE(wait_hrtimers(0));
}

TEST_F(ctx, a7_after_a_cancel_no_hrtimer_is_armed)
{
	EXPECT_TRUE(wait_hrtimers(0));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	ASSERT_EQ(0, cancel(self->fd, 1, 0, 0).error);
	EXPECT_TRUE(wait_hrtimers(0));
}

TEST_F(ctx, d5_while_a_handler_runs_its_timer_costs_nothing)
{
	struct spottimer_record rec;

	EXPECT_TRUE(wait_hrtimers(0));
	ASSERT_NE(0, arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TRUE(wait_hrtimers(0));
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	EXPECT_EQ(0, take(self->fd, &rec));
}

TEST_F(ctx, a11_many_timers_need_one_hrtimer_per_cpu_and_no_thread)
{
	enum { N = 20000 };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	int cpu, done = 0;

	for (cpu = 0; cpu < cpus; cpu++) {
		ASSERT_EQ(0, stay_on_cpu(cpu));
		done += register_many(self->fd, done, N / cpus, 30 * SEC, SEC);
	}
	ASSERT_EQ(N / cpus * cpus, done);
	CPU_ZERO(&set);
	for (cpu = 0; cpu < cpus; cpu++)
		CPU_SET(cpu, &set);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	EXPECT_EQ(cpus, counter("hrtimers"));
	EXPECT_EQ(0, count_threads());
	EXPECT_EQ(done, fd_number(self->fd, "pending"));
}

TEST_F(ctx, a11_many_files_need_no_more)
{
	enum { N = 200 };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int fd[N], i;

	for (i = 0; i < N; i++) {
		fd[i] = spot_open(O_NONBLOCK);
		ASSERT_LE(0, fd[i]);
		ASSERT_NE(0, arm_once(fd[i], 1, HOUR, 0));
	}
	EXPECT_LE(1, counter("hrtimers"));
	EXPECT_GE(cpus, counter("hrtimers"));
	for (i = 0; i < N; i++)
		close(fd[i]);
}

TEST_F(ctx, j1_what_goes_in_comes_out)
{
	enum { N = 1000, CANCELLED = 300 };
	static struct spottimer_record rec[N];
	long long started = counter("started");
	long long cancelled = counter("cancelled");
	long long ready = counter("ready");
	int i;

	ASSERT_LE(0, started);
	ASSERT_EQ(N, register_many(self->fd, 0, N, HOUR, 0));
	for (i = 0; i < CANCELLED; i++)
		ASSERT_EQ(0, cancel(self->fd, i, 0, 0).error);
	EXPECT_EQ(N, counter("started") - started);
	EXPECT_EQ(CANCELLED, counter("cancelled") - cancelled);
	EXPECT_EQ(0, counter("ready") - ready);

	ASSERT_EQ(N, register_many(self->fd, N, N, 0, 0));
	ASSERT_EQ(N, take_all(self->fd, rec, N));
	EXPECT_EQ(N, counter("ready") - ready);
}

TEST_F(ctx, j3_fdinfo_counts_timers_by_state)
{
	struct spottimer_register reg = timer_once(7, HOUR);
	struct spottimer_record rec;

	ASSERT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_NE(0, arm_once(self->fd, 2, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_NE(0, arm_once(self->fd, 3, 0, 0));
	ASSERT_TRUE(wait_state(self->fd, 3, 0, SPOTTIMER_READY));
	ASSERT_EQ(0, lease_grant(self->fd, 42, 1, HOUR));
	reg.owner = 42;
	reg.epoch = 1;
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	ASSERT_NE(0, arm_once(self->fd, 4, HOUR, 0));
	ASSERT_NE(0, arm_once(self->fd, 5, 2 * HOUR, 0));

	EXPECT_EQ(6, fd_number(self->fd, "registered"));
	EXPECT_EQ(3, fd_number(self->fd, "pending"));
	EXPECT_EQ(1, fd_number(self->fd, "ready"));
	EXPECT_EQ(2, fd_number(self->fd, "running"));
	EXPECT_EQ(1, fd_number(self->fd, "owners"));
	EXPECT_LT(HOUR / 2, fd_number(self->fd, "next"));
	EXPECT_GE(HOUR, fd_number(self->fd, "next"));

	ASSERT_EQ(0, cancel(self->fd, 4, 0, 0).error);
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	EXPECT_EQ(4, fd_number(self->fd, "registered"));
	EXPECT_EQ(2, fd_number(self->fd, "pending"));
	EXPECT_EQ(1, fd_number(self->fd, "running"));
}

TEST_HARNESS_MAIN
