// SPDX-License-Identifier: GPL-2.0
/*
 * What can be seen from outside: trace events, counters and the histogram of
 * lateness. No other timers are about while this runs.
 */
#include "spottimer_test.h"

#include <linux/random.h>
#include <sys/mount.h>
#include <sys/random.h>

#define DEBUGFS	"/sys/kernel/debug/spottimer/"
#define COUNTERS	DEBUGFS "counters"
#define TRACING	"/sys/kernel/tracing/"
#define EVENTS	TRACING "events/spottimer/"

/*
 * Trace events
 */

struct event {
	char name[32];
	char text[256];
};

enum { MAX_EVENTS = 4096 };

static struct event event[MAX_EVENTS];
static int nr_events;

/* Returns false if addresses cannot be told from each other yet. */
static bool parse_events(void)
{
	FILE *file = fopen(TRACING "trace", "r");
	bool hidden = false;
	char line[512];

	nr_events = 0;
	while (file && nr_events < MAX_EVENTS && fgets(line, sizeof(line), file)) {
		char *at = strstr(line, ": spottimer_");

		if (line[0] != '#' && at &&
		    sscanf(at, ": spottimer_%31[a-z]: %255[^\n]",
			   event[nr_events].name, event[nr_events].text) == 2)
			nr_events++;
		hidden = hidden || strstr(line, "ptrval");
	}
	if (file)
		fclose(file);
	return !hidden;
}

/*
 * Addresses are shown as hashes, once there are random numbers for that. A small
 * guest that has just come up may take minutes to find some: give it any then.
 */
static void have_random(void)
{
	struct {
		struct rand_pool_info info;
		char bytes[64];
	} pool = { .info = { .entropy_count = 512, .buf_size = 64 } };
	char random;
	int fd;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) > 0)
		return;
	fd = open("/dev/random", O_WRONLY);
	ioctl(fd, RNDADDENTROPY, &pool);
	close(fd);
}

/* Read what has been traced, in the order of time. Returns the number of events. */
static int read_events(void)
{
	__s64 since = 0;

	have_random();
	while (!parse_events())
		if (!look_again(&since))
			return 0;
	return nr_events;
}

/* What follows "@name=" in an event. False if there is no such field. */
static bool field_text(const struct event *e, const char *name, char *text,
		       size_t size)
{
	size_t len = strlen(name);
	const char *at = e->text;

	while (at && (strncmp(at, name, len) || at[len] != '=')) {
		at = strchr(at, ' ');
		if (at)
			at++;
	}
	if (!at)
		return false;
	at += len + 1;
	snprintf(text, size, "%.*s", (int)strcspn(at, " "), at);
	return true;
}

static bool field_is(const struct event *e, const char *name, const char *value)
{
	char text[64];

	return field_text(e, name, text, sizeof(text)) && !strcmp(text, value);
}

static long long field(const struct event *e, const char *name)
{
	char text[64];

	return field_text(e, name, text, sizeof(text)) ?
	       strtoll(text, NULL, 10) : LLONG_MIN;
}

/*
 * The first event of that name after @last which says that @what is @value; any
 * such event with @what NULL. NULL if there is none.
 */
static const struct event *event_after(const struct event *last,
				       const char *name, const char *what,
				       const char *value)
{
	const struct event *e;

	for (e = last ? last + 1 : event; e < event + nr_events; e++)
		if (!strcmp(e->name, name) &&
		    (!what || field_is(e, what, value)))
			return e;
	return NULL;
}

static const struct event *event_of_key(const char *name, __u64 key)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)key);
	return event_after(NULL, name, "key", text);
}

FIXTURE(trace) {
	int fd;
};

FIXTURE_SETUP(trace)
{
	if (access(TRACING "events", F_OK))
		mount("tracefs", TRACING, "tracefs", 0, NULL);
	if (access(TRACING "events", F_OK))
		SKIP(return, "this kernel has no trace events");
	ASSERT_EQ(0, access(EVENTS "enable", F_OK));
	/*
	 * Else the kernel notes the names of processes, for which it patches the
	 * scheduler while that runs. QEMU gets this wrong every now and then.
	 */
	ASSERT_EQ(0, write_file(TRACING "options/record-cmd", "0"));
	ASSERT_EQ(0, write_file(TRACING "trace", ""));
	ASSERT_EQ(0, write_file(EVENTS "enable", "1"));
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(trace)
{
	close(self->fd);
	write_file(EVENTS "enable", "0");
}

TEST_F(trace, j2_events_tell_the_life_of_a_timer)
{
	const struct event *reg, *start, *expire, *ready, *deliver, *done, *end;
	struct spottimer_register r = timer_every(77, now() + 20 * MSEC,
						  200 * MSEC);
	struct spottimer_record rec[2];
	char core[24];

	r.flags |= SPOTTIMER_REG_MANUAL;
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	ASSERT_EQ(0, spot_register(self->fd, &r));
	ASSERT_EQ(0, take(self->fd, &rec[0]));
	sleep_until(now() + 500 * MSEC);
	ASSERT_EQ(0, complete(self->fd, 77, 0, 0));
	ASSERT_EQ(0, take(self->fd, &rec[1]));
	ASSERT_EQ(0, complete(self->fd, 77, 0, -5));
	ASSERT_EQ(0, cancel(self->fd, 77, 0, 0).error);
	ASSERT_LT(0, read_events());

	reg = event_of_key("register", 77);
	ASSERT_NE(NULL, reg);
	EXPECT_EQ((long long)r.generation, field(reg, "generation"));
	EXPECT_LT(1, field(reg, "generation"));
	EXPECT_EQ(r.first, field(reg, "deadline"));
	EXPECT_EQ(r.period, field(reg, "period"));
	EXPECT_TRUE(field_is(reg, "clock", "monotonic"));
	ASSERT_TRUE(field_text(reg, "core", core, sizeof(core)));

	/* the engine, which knows no keys */
	start = event_after(NULL, "start", "core", core);
	ASSERT_NE(NULL, start);
	EXPECT_EQ(r.first, field(start, "deadline"));
	EXPECT_EQ(r.period, field(start, "period"));
	expire = event_after(start, "expire", "core", core);
	ASSERT_NE(NULL, expire);
	EXPECT_EQ(r.first, field(expire, "deadline"));
	EXPECT_LE(r.first, field(expire, "now"));
	EXPECT_EQ(field(expire, "now") - r.first, field(expire, "late"));
	EXPECT_EQ(field(start, "on_cpu"), field(expire, "on_cpu"));
	ready = event_after(expire, "ready", "core", core);
	ASSERT_NE(NULL, ready);
	EXPECT_EQ(r.first, field(ready, "deadline"));

	/* the first handler */
	deliver = event_after(ready, "deliver", "core", core);
	ASSERT_NE(NULL, deliver);
	EXPECT_EQ(77, field(deliver, "key"));
	EXPECT_EQ((long long)r.generation, field(deliver, "generation"));
	EXPECT_EQ(1, field(deliver, "delivery"));
	EXPECT_EQ((long long)rec[0].scheduled_index,
		  field(deliver, "scheduled"));
	EXPECT_EQ((long long)rec[0].skipped_ticks, field(deliver, "skipped"));
	EXPECT_LE(0, field(deliver, "late"));
	done = event_after(deliver, "complete", "core", core);
	ASSERT_NE(NULL, done);
	EXPECT_EQ(77, field(done, "key"));
	EXPECT_EQ((long long)r.generation, field(done, "generation"));
	EXPECT_EQ(1, field(done, "delivery"));
	EXPECT_EQ((long long)rec[0].scheduled_index, field(done, "scheduled"));
	EXPECT_EQ(0, field(done, "result"));

	/* the second one, for which ticks were skipped; it is ready at once */
	ready = event_after(done, "ready", "core", core);
	ASSERT_NE(NULL, ready);
	EXPECT_LE(0, field(ready, "late"));
	deliver = event_after(ready, "deliver", "core", core);
	ASSERT_NE(NULL, deliver);
	EXPECT_EQ(2, field(deliver, "delivery"));
	EXPECT_EQ((long long)rec[1].scheduled_index,
		  field(deliver, "scheduled"));
	EXPECT_EQ((long long)rec[1].skipped_ticks, field(deliver, "skipped"));
	EXPECT_LT(0, field(deliver, "skipped"));
	done = event_after(deliver, "complete", "core", core);
	ASSERT_NE(NULL, done);
	EXPECT_EQ(-5, field(done, "result"));

	end = event_after(done, "cancel", "core", core);
	ASSERT_NE(NULL, end);
	EXPECT_EQ(77, field(end, "key"));
	EXPECT_EQ((long long)r.generation, field(end, "generation"));
	EXPECT_EQ(2, field(end, "started"));
	EXPECT_TRUE(field_is(end, "state", "pending") ||
		    field_is(end, "state", "ready"));
	EXPECT_NE(NULL, event_after(done, "stop", "core", core));
	EXPECT_EQ(NULL, event_after(end, "expire", "core", core));

	/* the other timer has done nothing but begin */
	EXPECT_NE(NULL, event_of_key("register", 1));
	EXPECT_EQ(NULL, event_of_key("deliver", 1));
	EXPECT_EQ(NULL, event_of_key("cancel", 1));
}

TEST_F(trace, j2_a_cancel_says_where_the_timer_was)
{
	struct spottimer_record rec;
	int fd = spot_open(O_NONBLOCK);
	const struct event *e;

	ASSERT_LE(0, fd);
	ASSERT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(-EINPROGRESS, cancel(self->fd, 1, 0, 0).error);
	ASSERT_NE(0, arm_once(self->fd, 2, 0, 0));
	ASSERT_TRUE(wait_state(self->fd, 2, 0, SPOTTIMER_READY));
	ASSERT_EQ(0, cancel(self->fd, 2, 0, 0).error);
	ASSERT_NE(0, arm_once(self->fd, 3, HOUR, 0));
	/* all: the one that runs is cancelled for a second time */
	ASSERT_EQ(-EINPROGRESS,
		  cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL).error);
	/* so does the close of its file */
	ASSERT_NE(0, arm_once(fd, 4, HOUR, 0));
	close(fd);
	ASSERT_LT(0, read_events());

	e = event_of_key("cancel", 1);
	ASSERT_NE(NULL, e);
	EXPECT_TRUE(field_is(e, "state", "running"));
	EXPECT_EQ(1, field(e, "started"));
	e = event_of_key("cancel", 2);
	ASSERT_NE(NULL, e);
	EXPECT_TRUE(field_is(e, "state", "ready"));
	EXPECT_EQ(0, field(e, "started"));
	e = event_of_key("cancel", 3);
	ASSERT_NE(NULL, e);
	EXPECT_TRUE(field_is(e, "state", "pending"));
	e = event_of_key("cancel", 4);
	ASSERT_NE(NULL, e);
	EXPECT_TRUE(field_is(e, "state", "pending"));
}

TEST_F(trace, j1_j2_cascades_are_told)
{
	long long cascaded = counter("cascaded"), moved = 0;
	const struct event *e = NULL;
	struct spottimer_record rec[20];
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_NE(0, arm_once(self->fd, i, 500 * MSEC, 0));
	ASSERT_EQ(20, take_all(self->fd, rec, 20));
	ASSERT_LT(0, read_events());
	cascaded = counter("cascaded") - cascaded;

	/* so far away they wait on an upper level at first */
	EXPECT_LE(20, cascaded);
	while ((e = event_after(e, "cascade", NULL, NULL))) {
		EXPECT_LT(0, field(e, "moved"));
		EXPECT_TRUE(field_is(e, "clock", "monotonic"));
		EXPECT_EQ(0, field(e, "critical"));
		EXPECT_LT(0, field(e, "tick"));
		moved += field(e, "moved");
	}
	EXPECT_EQ(cascaded, moved);
}

TEST_F(trace, j2_events_of_leases)
{
	struct spottimer_register r = timer_once(9, 2 * SEC);
	const struct event *e, *call;
	struct spottimer_record rec;
	char core[24];

	/* one runs out, and a function of the lease's own timer notices */
	ASSERT_EQ(0, lease_grant(self->fd, 5, 11, 20 * MSEC));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(SPOTTIMER_REC_LEASE, rec.flags);
	ASSERT_EQ(-EKEYEXPIRED, lease_renew(self->fd, 5, 11, SEC));

	/* one is revoked before a tick under it */
	ASSERT_EQ(0, lease_grant(self->fd, 5, 12, HOUR));
	r.owner = 5;
	r.epoch = 12;
	ASSERT_EQ(0, spot_register(self->fd, &r));
	ASSERT_EQ(0, lease_revoke(self->fd, 5, 12, 0));
	ASSERT_TRUE(wait_state(self->fd, 9, 0, SPOTTIMER_HELD));
	EXPECT_TRUE(nothing(self->fd));
	ASSERT_LT(0, read_events());

	e = event_after(NULL, "lease", "op", "grant");
	ASSERT_NE(NULL, e);
	EXPECT_EQ(5, field(e, "owner"));
	EXPECT_EQ(11, field(e, "epoch"));
	EXPECT_EQ(20 * MSEC, field(e, "deadline"));
	EXPECT_EQ(0, field(e, "error"));

	call = event_after(NULL, "call", "function", "spot_lease_expire");
	ASSERT_NE(NULL, call);
	EXPECT_EQ(1, field(call, "generation"));
	EXPECT_EQ(1, field(call, "delivery"));
	EXPECT_EQ(1, field(call, "scheduled"));
	e = event_after(call, "lapse", "owner", "5");
	ASSERT_NE(NULL, e);
	EXPECT_EQ(11, field(e, "epoch"));
	ASSERT_TRUE(field_text(call, "core", core, sizeof(core)));
	e = event_after(e, "return", "core", core);
	ASSERT_NE(NULL, e);
	EXPECT_EQ(1, field(e, "generation"));
	EXPECT_TRUE(field_is(e, "verdict", "done"));
	EXPECT_LE(0, field(e, "ns"));

	e = event_after(NULL, "lease", "op", "renew");
	ASSERT_NE(NULL, e);
	EXPECT_EQ(-EKEYEXPIRED, field(e, "error"));
	e = event_after(NULL, "lease", "op", "revoke");
	ASSERT_NE(NULL, e);
	EXPECT_EQ(12, field(e, "epoch"));

	e = event_of_key("register", 9);
	ASSERT_NE(NULL, e);
	EXPECT_EQ(5, field(e, "owner"));
	ASSERT_TRUE(field_text(e, "core", core, sizeof(core)));
	e = event_after(e, "hold", "core", core);
	ASSERT_NE(NULL, e);
	EXPECT_TRUE(field_is(e, "by", "lease"));
	EXPECT_EQ(NULL, event_of_key("deliver", 9));
}

TEST_F(trace, j2_a_tick_that_waits_for_an_earlier_handler)
{
	struct spottimer_record rec;
	const struct event *e;
	char core[24];

	ASSERT_NE(0, arm_once(self->fd, 3, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_NE(0, arm_once(self->fd, 3, 0, 0));
	ASSERT_TRUE(wait_state(self->fd, 3, 0, SPOTTIMER_HELD));
	EXPECT_TRUE(nothing(self->fd));
	ASSERT_LT(0, read_events());

	e = event_after(event_of_key("register", 3), "register", "key", "3");
	ASSERT_NE(NULL, e);
	ASSERT_TRUE(field_text(e, "core", core, sizeof(core)));
	e = event_after(e, "hold", "core", core);
	ASSERT_NE(NULL, e);
	EXPECT_TRUE(field_is(e, "by", "handler"));
}

TEST_F(trace, j2_a_dead_cpu_is_left)
{
	const char *online = "/sys/devices/system/cpu/cpu1/online";
	const struct event *e;
	cpu_set_t set;
	char core[24];

	if (access(online, W_OK))
		SKIP(return, "this takes a CPU that can be taken away");
	ASSERT_EQ(0, stay_on_cpu(1));
	ASSERT_NE(0, arm_once(self->fd, 8, HOUR, 0));
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	ASSERT_EQ(0, write_file(online, "0"));
	ASSERT_EQ(0, write_file(online, "1"));
	ASSERT_LT(0, read_events());

	e = event_of_key("register", 8);
	ASSERT_NE(NULL, e);
	ASSERT_TRUE(field_text(e, "core", core, sizeof(core)));
	e = event_after(e, "migrate", "core", core);
	ASSERT_NE(NULL, e);
	EXPECT_EQ(1, field(e, "from"));
	EXPECT_NE(1, field(e, "to"));
	EXPECT_LE(0, field(e, "to"));
	EXPECT_LT(HOUR, field(e, "deadline"));
}

/*
 * Counters
 */

enum { MAX_CPUS = 64, MAX_ROWS = 64 };

/* A line of a table in debugfs */
struct row {
	char name[32];
	long long total;
	long long cpu[MAX_CPUS];
	int cpus;
};

static struct row row[MAX_ROWS];

/* Returns the number of rows, 0 if the file is not as it should be. */
static int read_rows(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[2048];
	int n = 0;

	while (file && n < MAX_ROWS && fgets(line, sizeof(line), file)) {
		struct row *r = &row[n++];
		char *at = line, *word;

		word = strsep(&at, "\n ");
		snprintf(r->name, sizeof(r->name), "%s", word);
		r->total = -1;
		r->cpus = 0;
		while ((word = strsep(&at, "\n "))) {
			if (!*word)
				continue;
			if (r->total < 0)
				r->total = atoll(word);
			else if (r->cpus < MAX_CPUS)
				r->cpu[r->cpus++] = atoll(word);
		}
		if (r->total < 0)
			n = 0;
	}
	if (file)
		fclose(file);
	return n;
}

static long long cpu_counter(int cpu, const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), DEBUGFS "cpu%d/counters", cpu);
	return file_number(path, name);
}

/* The sum of the histogram's buckets, over all CPUs. */
static long long expired(void)
{
	int n = read_rows(DEBUGFS "lateness");
	long long sum = 0;

	while (n-- > 0)
		sum += row[n].total;
	return sum;
}

TEST(j1_counters_are_in_the_order_in_which_trouble_is_traced)
{
	static const char * const name[] = {
		"started", "candidates", "ready", "handlers", "handler_ns",
		"late_ns", "cascaded", "exhausted", "merged", "skipped",
		"refused", "refused_read", "migrated",
	};
	int n = read_rows(COUNTERS), i, k = 0;

	ASSERT_LT(0, n);
	for (i = 0; i < n && k < (int)ARRAY_LEN(name); i++)
		k += !strcmp(row[i].name, name[k]);
	EXPECT_EQ((int)ARRAY_LEN(name), k);
}

TEST_F(ctx, j1_counters_follow_a_tick)
{
	static const char * const name[] = {
		"started", "candidates", "ready", "handlers",
	};
	static struct spottimer_record rec[200];
	struct spottimer_register past = timer_every(1, 1, 0);
	long long before[ARRAY_LEN(name)], merged, skipped, late;
	int i;

	for (i = 0; i < (int)ARRAY_LEN(name); i++)
		before[i] = counter(name[i]);
	merged = counter("merged");
	skipped = counter("skipped");
	late = counter("late_ns");
	for (i = 0; i < 200; i++)
		ASSERT_NE(0, arm_once(self->fd, i, MSEC, 0));
	ASSERT_EQ(200, take_all(self->fd, rec, 200));
	for (i = 0; i < (int)ARRAY_LEN(name); i++) {
		EXPECT_EQ(200, counter(name[i]) - before[i])
			TH_LOG("%s", name[i]);
	}
	EXPECT_EQ(merged, counter("merged"));
	EXPECT_EQ(skipped, counter("skipped"));
	EXPECT_LT(late, counter("late_ns"));

	/* one that was past by years is not late by years */
	if (now_on(CLOCK_REALTIME) < HOUR)
		return;
	late = counter("late_ns");
	past.clock = CLOCK_REALTIME;
	ASSERT_EQ(0, spot_register(self->fd, &past));
	ASSERT_EQ(0, take(self->fd, rec));
	EXPECT_EQ(late, counter("late_ns"));
}

TEST_F(ctx, j1_merges_and_skips)
{
	long long merged = counter("merged"), skipped = counter("skipped");
	long long ready = counter("ready"), again = counter("ready_again");
	struct spottimer_record rec;
	__u64 sum = 0;
	int i, n = 0;

	ASSERT_NE(0, arm_every(self->fd, 1, 2 * MSEC, SPOTTIMER_REG_MANUAL));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, take(self->fd, &rec));
		sum += rec.skipped_ticks;
		n += !!rec.skipped_ticks;
		sleep_until(now() + 20 * MSEC);
		ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	}
	EXPECT_LE(4, n);
	EXPECT_EQ(n, counter("merged") - merged);
	EXPECT_EQ((long long)sum, counter("skipped") - skipped);
	/* from the wheel once, and then because it was due at completion */
	EXPECT_EQ(1, counter("ready") - ready);
	EXPECT_EQ(5, counter("ready_again") - again);
}

TEST_F(ctx, j1_functions_are_handlers_and_take_time)
{
	long long handlers = counter("handlers"), called = counter("called");
	long long ns = counter("handler_ns");
	struct spottimer_record rec;

	/* that of a lease, which runs out */
	ASSERT_EQ(0, lease_grant(self->fd, 1, 1, MSEC));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(SPOTTIMER_REC_LEASE, rec.flags);
	ASSERT_TRUE(wait_hrtimers(0));
	EXPECT_EQ(1, counter("called") - called);
	EXPECT_EQ(1, counter("handlers") - handlers);
	EXPECT_LT(ns, counter("handler_ns"));
}

TEST_F(ctx, g3_j1_refusals_at_expiry_and_at_reading)
{
	long long refused = counter("refused"), late = expired();
	long long at_read = counter("refused_read");
	struct spottimer_register r = timer_once(1, 0);

	ASSERT_EQ(0, lease_grant(self->fd, 1, 1, HOUR));
	r.owner = 1;
	r.epoch = 1;
	ASSERT_EQ(0, spot_register(self->fd, &r));
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	r = timer_once(2, 2 * SEC);
	r.owner = 1;
	r.epoch = 1;
	ASSERT_EQ(0, spot_register(self->fd, &r));
	ASSERT_EQ(0, lease_revoke(self->fd, 1, 1, 0));
	EXPECT_EQ(0, counter("refused") - refused);
	EXPECT_EQ(0, counter("refused_read") - at_read);

	EXPECT_TRUE(nothing(self->fd));
	EXPECT_EQ(1, counter("refused_read") - at_read);
	ASSERT_TRUE(wait_state(self->fd, 2, 0, SPOTTIMER_HELD));
	EXPECT_EQ(1, counter("refused") - refused);
	EXPECT_TRUE(nothing(self->fd));
	EXPECT_EQ(1, counter("refused_read") - at_read);
	EXPECT_EQ(2, expired() - late);
	EXPECT_EQ(2, read_fdinfo(self->fd, "held"));
}

TEST_F(ctx, a9_j1_an_exhausted_budget_is_counted)
{
	long long exhausted = counter("exhausted"), budget;
	static struct spottimer_record rec[100];
	struct spottimer_register reg[100];
	__s64 first = now() + 300 * MSEC;
	int i;

	budget = read_param("budget");
	ASSERT_LT(0, budget);
	for (i = 0; i < 100; i++)
		reg[i] = timer_every(i, first, 0);
	ASSERT_EQ(100, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, 100,
				  sizeof(reg[0])));
	ASSERT_EQ(0, write_param("budget", 10));
	i = take_all(self->fd, rec, 100);
	ASSERT_EQ(0, write_param("budget", budget));
	ASSERT_EQ(100, i);
	EXPECT_LE(9, counter("exhausted") - exhausted);
}

TEST_F(ctx, j1_each_cpu_for_itself_and_all_together)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long long before[MAX_CPUS];
	cpu_set_t set;
	int i, n, cpu;

	ASSERT_GE(MAX_CPUS, cpus);
	CPU_ZERO(&set);
	for (cpu = 0; cpu < cpus; cpu++) {
		CPU_SET(cpu, &set);
		before[cpu] = cpu_counter(cpu, "started");
		ASSERT_LE(0, before[cpu]);
		ASSERT_EQ(0, stay_on_cpu(cpu));
		for (i = 0; i <= cpu; i++)
			ASSERT_NE(0, arm_once(self->fd, cpu * 100 + i, HOUR, 0));
	}
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	for (cpu = 0; cpu < cpus; cpu++)
		EXPECT_EQ(cpu + 1, cpu_counter(cpu, "started") - before[cpu]);

	n = read_rows(COUNTERS);
	ASSERT_LT(10, n);
	for (i = 0; i < n; i++) {
		bool is_max = !strncmp(row[i].name, "pass_max", 8);
		long long total = 0;

		EXPECT_LE(cpus, row[i].cpus);
		for (cpu = 0; cpu < row[i].cpus; cpu++) {
			if (!is_max)
				total += row[i].cpu[cpu];
			else if (total < row[i].cpu[cpu])
				total = row[i].cpu[cpu];
			EXPECT_EQ(row[i].cpu[cpu],
				  cpu_counter(cpu, row[i].name))
				TH_LOG("%s of CPU %d", row[i].name, cpu);
		}
		EXPECT_EQ(total, row[i].total)
			TH_LOG("%s", row[i].name);
	}
}

/*
 * The histogram of lateness
 */

static long long bucket(const char *name)
{
	return file_number(DEBUGFS "lateness", name);
}

TEST_F(ctx, j3_histogram_counts_every_expiry)
{
	static struct spottimer_record rec[300];
	long long before = expired(), least = 0;
	int i, n, cpu;

	ASSERT_LE(0, before);
	for (i = 0; i < 300; i++)
		ASSERT_NE(0, arm_once(self->fd, i, i * MSEC / 10, 0));
	ASSERT_NE(0, arm_once(self->fd, 300, HOUR, 0));
	ASSERT_EQ(300, take_all(self->fd, rec, 300));
	EXPECT_EQ(300, expired() - before);

	/* powers of two, and the CPUs make up the total */
	n = read_rows(DEBUGFS "lateness");
	EXPECT_EQ(26, n);
	for (i = 0; i < n; i++) {
		long long total = 0;

		EXPECT_EQ(least, atoll(row[i].name));
		least = least ? 2 * least : 1024;
		for (cpu = 0; cpu < row[i].cpus; cpu++)
			total += row[i].cpu[cpu];
		EXPECT_EQ(total, row[i].total);
	}
}

TEST_F(ctx, j3_each_in_its_bucket)
{
	long long some = bucket("4294967296"), most = bucket("17179869184");
	struct spottimer_register r = timer_every(1, 0, 0);
	struct spottimer_record rec;

	ASSERT_LE(0, some);
	ASSERT_LE(0, most);
	/* 5 s late, and a little more: from 2^32 ns to less than 2^33 */
	sleep_until(6 * SEC);
	r.first = now() - 5 * SEC;
	ASSERT_EQ(0, spot_register(self->fd, &r));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(1, bucket("4294967296") - some);

	/* since 1970 */
	r.generation = 0;
	r.first = 0;
	r.clock = CLOCK_REALTIME;
	ASSERT_EQ(0, spot_register(self->fd, &r));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(1, bucket("17179869184") - most);
	EXPECT_EQ(1, bucket("4294967296") - some);
}

TEST_F(ctx, j3_reset_of_the_histogram_and_the_largest_pass)
{
	long long started, before;

	ASSERT_TRUE(make_ready(self->fd, 10));
	ASSERT_TRUE(wait_hrtimers(0));
	before = expired();
	started = counter("started");
	EXPECT_LE(10, before);
	EXPECT_LT(0, counter("pass_max"));
	EXPECT_LT(0, counter("pass_max_ns"));

	/* only a 1 does it */
	EXPECT_EQ(-EINVAL, write_file(DEBUGFS "reset", "0"));
	EXPECT_EQ(-EINVAL, write_file(DEBUGFS "reset", "2"));
	EXPECT_EQ(-EINVAL, write_file(DEBUGFS "reset", "yes"));
	EXPECT_EQ(-EINVAL, write_file(DEBUGFS "reset", "\n"));
	EXPECT_EQ(before, expired());
	EXPECT_LT(0, counter("pass_max"));

	EXPECT_EQ(0, write_file(DEBUGFS "reset", "1\n"));
	EXPECT_EQ(0, expired());
	EXPECT_EQ(0, counter("pass_max"));
	EXPECT_EQ(0, counter("pass_max_ns"));
	EXPECT_EQ(started, counter("started"));

	/* and it goes on from there */
	ASSERT_NE(0, arm_once(self->fd, 100, 0, 0));
	ASSERT_TRUE(wait_state(self->fd, 100, 0, SPOTTIMER_READY));
	ASSERT_TRUE(wait_hrtimers(0));
	EXPECT_EQ(1, expired());
	EXPECT_EQ(1, counter("pass_max"));
}

TEST_F(ctx, j3_fdinfo_counts_what_is_held_and_what_has_ended)
{
	struct spottimer_record rec;
	long long memory = read_fdinfo(self->fd, "memory");

	EXPECT_LT(0, memory);
	EXPECT_EQ(-1, read_fdinfo(self->fd, "next"));
	ASSERT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	/* it waits until the handler of its key's last generation is done */
	ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_HELD));
	ASSERT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	ASSERT_EQ(0, cancel(self->fd, 2, 0, 0).error);

	EXPECT_EQ(2, read_fdinfo(self->fd, "registered"));
	EXPECT_EQ(1, read_fdinfo(self->fd, "running"));
	EXPECT_EQ(1, read_fdinfo(self->fd, "held"));
	EXPECT_EQ(1, read_fdinfo(self->fd, "ended"));
	EXPECT_EQ(0, read_fdinfo(self->fd, "pending"));
	EXPECT_EQ(0, read_fdinfo(self->fd, "ready"));
	/* it comes in blocks, which are not larger than a page */
	EXPECT_LE(memory + 3 * 128, read_fdinfo(self->fd, "memory"));
	EXPECT_GE(memory + 4096, read_fdinfo(self->fd, "memory"));
}

TEST_HARNESS_MAIN
