// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that go offline with timers on them, and come back. Timers wait on the
 * CPU on which they were registered, so the tests choose where they run.
 * SPOT_HOTPLUG_SECONDS on the kernel's command line makes the longest of them
 * go on for that long.
 */
#include "spottimer_test.h"

#define TIMERS		4000
#define PERIOD		(50 * MSEC)

static struct {
	__s64 first;
	__u64 delivered, scheduled;
	bool checked;
} timers[TIMERS];

/* Register keys @from to @to, the first ticks from @first on, @step apart. */
static bool register_range(int fd, int from, int to, __s64 first, __s64 step,
			   __s64 period)
{
	int i;

	for (i = from; i < to; i++)
		timers[i].first = first + (i - from) * step;
	return register_many(fd, timer_every(from, first, period), to - from,
			     step) == to - from;
}

/* Whether @rec is the next one of its timer, and not too early. */
static bool follows(const struct spottimer_record *rec, __s64 period)
{
	__u64 last, key = rec->key;

	if (key >= TIMERS)
		return false;
	last = timers[key].scheduled;
	if (rec->delivery_index != ++timers[key].delivered ||
	    rec->scheduled_index <= last ||
	    rec->skipped_ticks != rec->scheduled_index - last - 1)
		return false;
	timers[key].scheduled = rec->scheduled_index;
	return now() >= timers[key].first +
			(__s64)(rec->scheduled_index - 1) * period;
}

/* Read once, with patience. Returns how many records, all of which followed. */
static int read_following(int fd, __s64 period)
{
	static struct spottimer_record rec[512];
	int n, i;

	if (!readable_for(fd, PATIENCE))
		return -ETIME;
	n = read_records(fd, rec, ARRAY_LEN(rec));
	for (i = 0; i < n; i++)
		if (!follows(&rec[i], period))
			return -EBADMSG;
	return n;
}

FIXTURE(hotplug) {
	int fd;
};

FIXTURE_SETUP(hotplug)
{
	if (access("/sys/devices/system/cpu/cpu1/online", W_OK))
		SKIP(return, "there is no CPU that can go offline");
	memset(timers, 0, sizeof(timers));
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(hotplug)
{
	set_online(1, 1);
	close(self->fd);
}

TEST_F(hotplug, a12_timers_of_a_cpu_that_went_come_once_and_in_time)
{
	struct spottimer_record rec;
	int got = 0, n;

	ASSERT_EQ(0, stay_on_cpu(1));
	ASSERT_TRUE(register_range(self->fd, 0, TIMERS, now() + 300 * MSEC,
				   200000, 0));
	ASSERT_EQ(0, stay_on_cpu(0));
	ASSERT_TRUE(set_online(1, 0));
	while (got < TIMERS) {
		n = read_following(self->fd, 0);
		ASSERT_LE(0, n);
		got += n;
	}
	for (n = 0; n < TIMERS; n++)
		ASSERT_EQ(1, timers[n].delivered);
	EXPECT_EQ(-EAGAIN, read_records(self->fd, &rec, 1));
}

/* Far ones too, on all levels, and they can be cancelled afterwards. */
TEST_F(hotplug, a12_far_timers_of_a_cpu_that_went_are_kept)
{
	static const __s64 delay[] = { 1, 60, 3600, 86400, 400 * 86400LL };
	unsigned int i;

	ASSERT_EQ(0, stay_on_cpu(1));
	for (i = 0; i < ARRAY_LEN(delay); i++)
		ASSERT_NE(0, arm_once(self->fd, i, delay[i] * SEC, 0));
	ASSERT_EQ(0, stay_on_cpu(0));
	ASSERT_TRUE(set_online(1, 0));
	for (i = 1; i < ARRAY_LEN(delay); i++) {
		struct spottimer_query q = query(self->fd, i, 0);

		EXPECT_EQ(SPOTTIMER_PENDING, q.state);
		EXPECT_GT(q.remaining, delay[i] * SEC - PATIENCE * MSEC);
		EXPECT_EQ(0, cancel(self->fd, i, 0, 0).error);
	}
	ASSERT_EQ(1, read_following(self->fd, 0));
}

/* What the CPU slept must not make it late, or early. */
TEST_F(hotplug, a12_case20_a_cpu_that_comes_back_knows_the_time)
{
	struct spottimer_record rec[2];
	__s64 first;

	ASSERT_EQ(0, stay_on_cpu(1));
	ASSERT_NE(0, arm_once(self->fd, 0, HOUR, 0));
	ASSERT_EQ(0, stay_on_cpu(0));
	ASSERT_TRUE(set_online(1, 0));
	sleep_until(now() + 300 * MSEC);
	ASSERT_TRUE(set_online(1, 1));

	ASSERT_NE(0, arm_once(self->fd, 1, 3 * SEC, 0));
	ASSERT_EQ(0, stay_on_cpu(1));
	first = now() + 20 * MSEC;
	ASSERT_NE(0, arm_once(self->fd, 2, 20 * MSEC, 0));
	ASSERT_EQ(0, take(self->fd, &rec[0]));
	EXPECT_GE(now(), first);
	EXPECT_EQ(2, rec[0].key);
	ASSERT_EQ(0, take(self->fd, &rec[1]));
	EXPECT_EQ(1, rec[1].key);
}

/* What another thread is to do until it is told to stop, and has done enough. */
static bool go_on(const bool *stop, long changes)
{
	return changes <= 4 || !__atomic_load_n(stop, __ATOMIC_RELAXED);
}

static void *come_and_go(void *stop)
{
	intptr_t changes = 0;

	while (go_on(stop, changes)) {
		changes += set_online(1, 0);
		changes += set_online(1, 1);
	}
	return (void *)changes;
}

TEST_F(hotplug, a12_repeating_timers_go_on_while_cpus_come_and_go)
{
	bool stop = false;
	unsigned int missing = TIMERS;
	pthread_t thread;
	void *changes;
	__s64 end;
	int n, i;

	ASSERT_EQ(0, stay_on_cpu(1));
	ASSERT_TRUE(register_range(self->fd, 0, TIMERS / 2, now() + PERIOD,
				   10000, PERIOD));
	ASSERT_EQ(0, stay_on_cpu(0));
	ASSERT_TRUE(register_range(self->fd, TIMERS / 2, TIMERS, now() + PERIOD,
				   10000, PERIOD));
	ASSERT_EQ(0, pthread_create(&thread, NULL, come_and_go, &stop));
	for (end = now() + 4 * SEC, i = 0; now() < end; i++) {
		/* fails while that CPU is away */
		stay_on_cpu(i % 2);
		n = read_following(self->fd, PERIOD);
		EXPECT_LE(0, n);
		if (n < 0)
			break;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, &changes));
	EXPECT_LT(4, (intptr_t)changes);
	ASSERT_LE(0, n);

	/* none has fallen silent */
	for (i = 0; i < TIMERS; i++)
		timers[i].checked = false;
	for (end = now() + PATIENCE * MSEC; missing && now() < end;) {
		static __u64 before[TIMERS];

		for (i = 0; i < TIMERS; i++)
			before[i] = timers[i].delivered;
		ASSERT_LE(0, read_following(self->fd, PERIOD));
		for (i = 0; i < TIMERS; i++) {
			if (timers[i].checked || before[i] == timers[i].delivered)
				continue;
			timers[i].checked = true;
			missing--;
		}
	}
	EXPECT_EQ(0, missing);
}

/*
 * A crowd of timers of all kinds, some repeating, some critical, while all CPUs
 * but the first go offline and come back at random. Those with one tick are
 * registered anew when it has come, on whichever CPU.
 */
#define CROWD		(100000 / scale())
#define CROWD_PERIOD	(4 * SEC)

enum {
	CROWD_BATCH = 500,
	CROWD_REPEATS = 1,	/* every second one */
	CROWD_CRITICAL = 15,	/* and one in 16 of either kind, by key >> 1 */
};

static struct member {
	__u64 generation;
	__s64 first;
	__u64 delivered, scheduled;
	bool again;
} *crowd;

static bool crowd_repeats(__u64 key)
{
	return key & CROWD_REPEATS;
}

static struct spottimer_register crowd_timer(__u64 key)
{
	struct spottimer_register reg;

	reg = timer_every(key, now() + 200 * MSEC + rand() % 4000 * MSEC +
			  rand() % MSEC, 0);
	if (crowd_repeats(key))
		reg.period = CROWD_PERIOD;
	if (!(key >> 1 & CROWD_CRITICAL))
		reg.flags |= SPOTTIMER_REG_CRITICAL;
	return reg;
}

/* Register the timers whose keys are given. */
static bool crowd_register(int fd, const __u64 *key, int n)
{
	static struct spottimer_register reg[CROWD_BATCH];
	int i;

	for (i = 0; i < n; i++)
		reg[i] = crowd_timer(key[i]);
	if (n && spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, n,
			    sizeof(reg[0])) != n)
		return false;
	for (i = 0; i < n; i++) {
		if (reg[i].error)
			return false;
		crowd[key[i]] = (struct member) {
			.generation = reg[i].generation,
			.first = reg[i].first,
			.again = true,
		};
	}
	return true;
}

/* What is wrong with a record that was read at @time: early, or once too many. */
static const char *crowd_wrong(const struct spottimer_record *rec, __s64 time)
{
	struct member *m;

	if (rec->key >= (__u64)CROWD)
		return "of nobody";
	m = &crowd[rec->key];
	if (rec->generation != m->generation)
		return "of an old generation";
	if (time < m->first + (__s64)(rec->scheduled_index - 1) * CROWD_PERIOD)
		return "early";
	if (rec->delivery_index != ++m->delivered ||
	    rec->scheduled_index <= m->scheduled ||
	    (!crowd_repeats(rec->key) && m->delivered != 1))
		return "twice";
	m->scheduled = rec->scheduled_index;
	m->again = true;
	return NULL;
}

/* Read once. Those that have ended are registered anew, where @again. */
static const char *crowd_read(int fd, bool again, long long *came)
{
	static struct spottimer_record rec[CROWD_BATCH];
	__u64 key[CROWD_BATCH];
	const char *wrong;
	int n, i, ended = 0;
	__s64 time;

	if (!readable_for(fd, PATIENCE))
		return "nothing comes";
	n = read_records(fd, rec, CROWD_BATCH);
	if (n < 0 && n != -EAGAIN)
		return "cannot read";
	time = now();
	for (i = 0; i < n; i++) {
		wrong = crowd_wrong(&rec[i], time);
		if (wrong)
			return wrong;
		if (!crowd_repeats(rec[i].key))
			key[ended++] = rec[i].key;
		++*came;
	}
	if (again && !crowd_register(fd, key, ended))
		return "cannot register";
	return NULL;
}

struct shuffle {
	int cpus;
	bool stop;
	intptr_t changes;
};

static void *shuffle_cpus(void *arg)
{
	struct shuffle *s = arg;
	unsigned int random = 12;
	__u64 offline = 0;
	int cpu;

	while (go_on(&s->stop, s->changes)) {
		cpu = 1 + rand_r(&random) % (s->cpus - 1);
		s->changes += set_online(cpu, offline >> cpu & 1);
		offline ^= 1ULL << cpu;
		usleep(rand_r(&random) % 20000);
	}
	for (cpu = 1; cpu < s->cpus; cpu++)
		set_online(cpu, 1);
	return NULL;
}

TEST_F_TIMEOUT(hotplug, a12_a_crowd_while_cpus_come_and_go_at_random, 600)
{
	int seconds = number_from_env("SPOT_HOTPLUG_SECONDS", 10);
	struct shuffle shuffle = {
		.cpus = sysconf(_SC_NPROCESSORS_CONF),
	};
	long long migrated = counter("migrated"), came = 0;
	const char *wrong = NULL;
	__u64 key[CROWD_BATCH];
	int i, n, missing;
	pthread_t thread;
	__s64 end;

	crowd = calloc(CROWD, sizeof(*crowd));
	ASSERT_NE(NULL, crowd);
	for (i = 0; i < CROWD; i += n) {
		for (n = 0; n < CROWD_BATCH && i + n < CROWD; n++)
			key[n] = i + n;
		stay_on_cpu(rand() % shuffle.cpus);
		ASSERT_TRUE(crowd_register(self->fd, key, n));
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, shuffle_cpus, &shuffle));
	for (end = now() + seconds * SEC; !wrong && now() < end;) {
		/* fails while that CPU is away */
		stay_on_cpu(rand() % shuffle.cpus);
		wrong = crowd_read(self->fd, true, &came);
	}
	__atomic_store_n(&shuffle.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(NULL, wrong);
	migrated = counter("migrated") - migrated;
	TH_LOG("%ld changes of %d CPUs, %lld timers moved, %lld came in %d s",
	       shuffle.changes, shuffle.cpus, migrated, came, seconds);
	EXPECT_LT(4, shuffle.changes);
	EXPECT_LT(0, migrated);

	/* none is lost: each one comes, or comes again */
	for (i = 0; i < CROWD; i++)
		crowd[i].again = !crowd_repeats(i) && crowd[i].delivered;
	end = now() + 4 * PATIENCE * MSEC;
	do {
		wrong = crowd_read(self->fd, false, &came);
		for (i = 0, missing = 0; i < CROWD; i++)
			missing += !crowd[i].again;
	} while (!wrong && missing && now() < end);
	ASSERT_EQ(NULL, wrong);
	EXPECT_EQ(0, missing);
	free(crowd);
}

TEST_HARNESS_MAIN
