// SPDX-License-Identifier: GPL-2.0
/*
 * What the engine costs, as the counters in debugfs show it, and what an open
 * file tells in its fdinfo. No other timers are about while this runs.
 */
#include "spottimer_test.h"

#include <dirent.h>

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

TEST_F(ctx, a7_a11_idle_time_costs_no_pass)
{
	long long passes;

	ASSERT_TRUE(wait_hrtimers(0));
	passes = counter("passes");
	ASSERT_LE(0, passes);
	sleep_until(now() + SEC);
	EXPECT_EQ(passes, counter("passes"));

	/* nor does one that is far, however long its owner waits for it */
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_FALSE(readable_for(self->fd, 1000));
	EXPECT_EQ(passes, counter("passes"));
}

/* The passes that the timers of one test take, and how often it waited. */
struct wake_ups {
	long long passes;
	long long spurious;
	int waits;
};

enum { SHARERS = 10 };

/*
 * Timers that are due @step apart, the last one on a tick with a round number.
 * Returns false if the machine was too slow for what is to be seen.
 */
static bool count_wake_ups(int fd, __s64 step, __s64 slack, struct wake_ups *w)
{
	__s64 round = 64 * 64 * read_param("tick_ns");
	__s64 end = now() / round * round + round;
	struct spottimer_register reg[SHARERS];
	struct spottimer_record rec;
	int i;

	/* the very next such tick: no bucket that they are in begins before */
	if (end - now() < SEC + SHARERS * step) {
		sleep_until(end);
		end += round;
	}
	w->passes = counter("passes");
	w->spurious = counter("spurious");
	for (i = 0; i < SHARERS; i++) {
		reg[i] = timer_every(i, end - (SHARERS - 1 - i) * step, 0);
		reg[i].slack = slack;
	}
	if (spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, SHARERS,
		       sizeof(reg[0])) != SHARERS || now() >= reg[0].first)
		return false;
	w->waits = 0;
	for (i = 0; i < SHARERS; i++) {
		w->waits += !readable(fd);
		if (take(fd, &rec) || now() < reg[rec.key].first)
			return false;
	}
	w->passes = counter("passes") - w->passes;
	w->spurious = counter("spurious") - w->spurious;
	return true;
}

TEST_F(ctx, a14_with_slack_timers_share_a_wake_up)
{
	struct wake_ups w;

	ASSERT_EQ(0, stay_on_cpu(0));
	ASSERT_TRUE(wait_hrtimers(0));
	ASSERT_TRUE(count_wake_ups(self->fd, MSEC, SHARERS * MSEC, &w));
	EXPECT_EQ(1, w.passes);
	EXPECT_EQ(0, w.spurious);
	EXPECT_EQ(1, w.waits);
}

/* So far apart that the slowest of machines wakes up in between. */
TEST_F(ctx, a14_without_slack_each_has_its_own)
{
	struct wake_ups w;

	ASSERT_EQ(0, stay_on_cpu(0));
	ASSERT_TRUE(wait_hrtimers(0));
	ASSERT_TRUE(count_wake_ups(self->fd, 100 * MSEC, 0, &w));
	EXPECT_LT(1, w.waits);
	EXPECT_LE(w.waits, w.passes);
	EXPECT_EQ(0, w.spurious);
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
	struct spottimer_register reg = timer_once(0, 30 * SEC);
	cpu_set_t set;
	int cpu, done = 0;

	reg.period = SEC;
	for (cpu = 0; cpu < cpus; cpu++) {
		ASSERT_EQ(0, stay_on_cpu(cpu));
		reg.key = done;
		done += register_many(self->fd, reg, N / cpus, 1000);
	}
	ASSERT_EQ(N / cpus * cpus, done);
	CPU_ZERO(&set);
	for (cpu = 0; cpu < cpus; cpu++)
		CPU_SET(cpu, &set);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	EXPECT_EQ(cpus, counter("hrtimers"));
	EXPECT_EQ(0, count_threads());
	EXPECT_EQ(done, read_fdinfo(self->fd, "pending"));
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

/*
 * One thread on each of two CPUs registers timers that are due at once or a
 * little later, and cancels those of the other one, while they expire. Every
 * timer has a key of its own.
 */
#define RACE_KEYS	1000000	/* of each thread, at the most */
#define RACE_TIME	(3 * SEC)

enum {
	RACE_BATCH = 64,
	RACE_CAME = 1,
	RACE_CANCELLED = 16,
};

static struct racer {
	int fd, cpu;
	unsigned int registered;	/* written by itself, read by the other */
	bool done;			/* with registering */
	const char *wrong;
	__u8 fate[RACE_KEYS];
} racer[2];

static void race_fate(struct racer *racer, unsigned int i, int fate)
{
	__atomic_add_fetch(&racer->fate[i], fate, __ATOMIC_RELAXED);
}

static bool race_register(struct racer *me, unsigned int *random)
{
	struct spottimer_register reg[RACE_BATCH];
	__u64 key = (__u64)me->cpu * RACE_KEYS + me->registered;
	int i;

	for (i = 0; i < RACE_BATCH; i++)
		reg[i] = timer_once(key + i, rand_r(random) % (4 * MSEC));
	if (spot_batch(me->fd, SPOTTIMER_IOC_REGISTER, reg, RACE_BATCH,
		       sizeof(reg[0])) != RACE_BATCH || reg[RACE_BATCH - 1].error)
		return false;
	__atomic_add_fetch(&me->registered, RACE_BATCH, __ATOMIC_RELEASE);
	return true;
}

/* The other one's, from @from on. They have ended then, this way or that. */
static bool race_cancel(struct racer *other, unsigned int from, unsigned int n)
{
	struct spottimer_cancel c[RACE_BATCH];
	unsigned int i;

	memset(c, 0, sizeof(c));
	for (i = 0; i < n; i++)
		c[i].key = (__u64)other->cpu * RACE_KEYS + from + i;
	if (spot_batch(other->fd, SPOTTIMER_IOC_CANCEL, c, n,
		       sizeof(c[0])) != (int)n)
		return false;
	for (i = 0; i < n; i++) {
		if (c[i].cancelled)
			race_fate(other, from + i, RACE_CANCELLED);
		/* one that came may be forgotten by now */
		if (c[i].error ? c[i].error != -ENOENT :
				 c[i].cancelled + c[i].started != 1)
			return false;
	}
	return true;
}

static void *race(void *arg)
{
	struct racer *me = arg, *other = &racer[!me->cpu];
	unsigned int random = me->cpu, cancelled = 0, n;
	__s64 end = now() + RACE_TIME;

	if (stay_on_cpu(me->cpu))
		me->wrong = "cannot stay on a CPU";
	while (!me->wrong) {
		n = __atomic_load_n(&other->registered, __ATOMIC_ACQUIRE);
		n = n - cancelled < RACE_BATCH ? n - cancelled : RACE_BATCH;
		if (n && !race_cancel(other, cancelled, n))
			me->wrong = "cancel";
		cancelled += n;
		if (now() < end && me->registered + RACE_BATCH <= RACE_KEYS) {
			if (!race_register(me, &random))
				me->wrong = "register";
		} else {
			__atomic_store_n(&me->done, true, __ATOMIC_RELEASE);
			if (!n && __atomic_load_n(&other->done,
						  __ATOMIC_ACQUIRE) &&
			    cancelled == other->registered)
				break;
		}
	}
	__atomic_store_n(&me->done, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F(ctx, e1_case24_each_comes_once_or_is_cancelled)
{
	unsigned int came = 0, cancelled = 0, i, k;
	struct spottimer_record rec[RACE_BATCH];
	pthread_t thread[2];
	int n;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "this takes two CPUs");
	for (k = 0; k < 2; k++) {
		racer[k].fd = self->fd;
		racer[k].cpu = k;
	}
	for (k = 0; k < 2; k++)
		ASSERT_EQ(0, pthread_create(&thread[k], NULL, race, &racer[k]));
	while (!__atomic_load_n(&racer[0].done, __ATOMIC_ACQUIRE) ||
	       !__atomic_load_n(&racer[1].done, __ATOMIC_ACQUIRE)) {
		if (!readable_for(self->fd, 10))
			continue;
		n = read_records(self->fd, rec, RACE_BATCH);
		while (n-- > 0)
			race_fate(&racer[rec[n].key / RACE_KEYS],
				  rec[n].key % RACE_KEYS, RACE_CAME);
	}
	for (k = 0; k < 2; k++) {
		ASSERT_EQ(0, pthread_join(thread[k], NULL));
		ASSERT_EQ(NULL, racer[k].wrong);
	}
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	for (k = 0; k < 2; k++) {
		for (i = 0; i < racer[k].registered; i++) {
			came += racer[k].fate[i] == RACE_CAME;
			cancelled += racer[k].fate[i] == RACE_CANCELLED;
		}
	}
	TH_LOG("%u came, %u were cancelled", came, cancelled);
	EXPECT_EQ(racer[0].registered + racer[1].registered, came + cancelled);
	EXPECT_LT(0, came);
	EXPECT_LT(0, cancelled);
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
	ASSERT_EQ(N, register_many(self->fd, timer_once(0, HOUR), N, 0));
	for (i = 0; i < CANCELLED; i++)
		ASSERT_EQ(0, cancel(self->fd, i, 0, 0).error);
	EXPECT_EQ(N, counter("started") - started);
	EXPECT_EQ(CANCELLED, counter("cancelled") - cancelled);
	EXPECT_EQ(0, counter("ready") - ready);

	ASSERT_EQ(N, register_many(self->fd, timer_once(N, 0), N, 1000));
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

	EXPECT_EQ(6, read_fdinfo(self->fd, "registered"));
	EXPECT_EQ(3, read_fdinfo(self->fd, "pending"));
	EXPECT_EQ(1, read_fdinfo(self->fd, "ready"));
	EXPECT_EQ(2, read_fdinfo(self->fd, "running"));
	EXPECT_EQ(1, read_fdinfo(self->fd, "owners"));
	EXPECT_LT(HOUR / 2, read_fdinfo(self->fd, "next"));
	EXPECT_GE(HOUR, read_fdinfo(self->fd, "next"));

	ASSERT_EQ(0, cancel(self->fd, 4, 0, 0).error);
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	EXPECT_EQ(4, read_fdinfo(self->fd, "registered"));
	EXPECT_EQ(2, read_fdinfo(self->fd, "pending"));
	EXPECT_EQ(1, read_fdinfo(self->fd, "running"));
}

TEST_HARNESS_MAIN
