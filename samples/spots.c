// SPDX-License-Identifier: GPL-2.0
/*
 * spots [SECONDS [SPOTS]]: what spottimer is for, at the size it is for.
 *
 * Ten thousand spots have three timers each: two that repeat, every 100 and
 * every 350 ms, and the timeout of a session, which is put off whenever there
 * is traffic. All are registered through one file, a thousand in a call, and
 * their ticks are taken by one thread with epoll and read.
 *
 * Every record is checked against what the interface promises. Nothing is
 * asked about how late it comes: that depends on the machine, and is shown.
 * The status is 0 if all promises were kept and there were ticks at all.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/spottimer.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MSEC		1000000LL
#define SEC		(1000 * MSEC)

#define BATCH		1000	/* entries in a call */
#define RECORDS		8192	/* records in a read, at most */
#define TRAFFIC_EVERY	(100 * MSEC)
#define TRAFFIC_SHARE	10	/* one spot in ten has traffic each time */
#define PATIENCE	(10 * SEC)	/* for what is due in the end */
#define SHOWN		10	/* broken promises that are shown one by one */

/* Lateness is sorted into classes; the last has what is later than all. */
#define LATE_CLASS	(50 * MSEC / 1000)
#define LATE_CLASSES	100001

#define COUNTERS	"/sys/kernel/debug/spottimer/counters"

enum kind {
	FAST,
	SLOW,
	SESSION,
	KINDS
};

static const __s64 length[KINDS] = {
	[FAST]		= 100 * MSEC,
	[SLOW]		= 350 * MSEC,
	[SESSION]	= 2 * SEC,
};

/**
 * struct timer - what we know of a timer; its index goes along as the cookie
 * @generation: 0 if there is none, that is, if its session has timed out
 * @delivered: DeliveryIndex of the last record
 * @scheduled: ScheduledIndex of the last record
 * @first: when it was first due
 * @after: where the next tick counts from the last one's completion
 *	(SPOTTIMER_DELAY_NEXT): it is not due before
 * @touched: round of traffic that it was last in
 */
struct timer {
	__u64 generation;
	__u64 delivered;
	__u64 scheduled;
	__s64 first;
	__s64 after;
	unsigned int touched;
};

enum promise {
	EARLY,
	GAP,
	STALE,
	LOST,
	UNKNOWN,
	ORDER,
	SKIPPED,
	FLAGS,
	GENERATION,
	ENTRY,
	CANCEL,
	HRTIMERS,
	PROMISES
};

static const char * const promise_name[PROMISES] = {
	[EARLY]		= "early tick",
	[GAP]		= "gap in DeliveryIndex",
	[STALE]		= "stale generation",
	[LOST]		= "tick did not come",
	[UNKNOWN]	= "record of no timer of ours",
	[ORDER]		= "ScheduledIndex does not rise",
	[SKIPPED]	= "SkippedTicks does not fit",
	[FLAGS]		= "flags do not fit",
	[GENERATION]	= "generation does not rise",
	[ENTRY]		= "entry of a batch failed",
	[CANCEL]	= "cancel of all timers",
	[HRTIMERS]	= "more hrtimers than CPUs",
};

static struct timer *timers;
static unsigned int spots = 10000;
static unsigned int live;
static __u64 newest_generation;

static __u64 ticks, skipped, fired, rearmed;
static unsigned int late[LATE_CLASSES];
static __u64 lates;
static __s64 latest, latest_lately;
static unsigned int broken[PROMISES];
static unsigned int shown;
static long hrtimers = -1;

static __s64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static unsigned int random_below(unsigned int n)
{
	static __u64 state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 32) * n >> 32;
}

/*
 * Keys are ours to choose: here the spot, numbered from 1, and which of its
 * timers it is.
 */
static __u64 key_of(unsigned int index)
{
	return (__u64)(index / KINDS + 1) << 8 | index % KINDS;
}

static enum kind kind_of(unsigned int index)
{
	return index % KINDS;
}

/* One spot in a hundred has each of the policies that are not the default. */
static __u32 policy_of(unsigned int index)
{
	switch (index / KINDS % 100) {
	case 33:
		return SPOTTIMER_CATCH_UP;
	case 66:
		return SPOTTIMER_DELAY_NEXT;
	default:
		return SPOTTIMER_SKIP_LATE;
	}
}

/*
 * Broken promises
 */

static void broke(enum promise promise, __u64 key, long long is,
		  long long expected)
{
	broken[promise]++;
	if (shown++ < SHOWN)
		printf("BROKEN: %s (timer %llx: %lld, expected %lld)\n",
		       promise_name[promise], key, is, expected);
}

static void check_record(const struct spottimer_record *rec,
			 const struct timer *timer)
{
	__u32 flags = SPOTTIMER_REC_TICK;

	if (kind_of(rec->cookie) == SESSION)
		flags |= SPOTTIMER_REC_LAST;
	if (rec->flags != flags)
		broke(FLAGS, rec->key, rec->flags, flags);

	if (rec->delivery_index != timer->delivered + 1)
		broke(GAP, rec->key, rec->delivery_index, timer->delivered + 1);

	if (rec->scheduled_index <= timer->scheduled)
		broke(ORDER, rec->key, rec->scheduled_index,
		      timer->scheduled + 1);
	if (rec->scheduled_index < rec->delivery_index)
		broke(ORDER, rec->key, rec->scheduled_index,
		      rec->delivery_index);

	if (rec->skipped_ticks != rec->scheduled_index - timer->scheduled - 1)
		broke(SKIPPED, rec->key, rec->skipped_ticks,
		      rec->scheduled_index - timer->scheduled - 1);
}

/* Sort in how late a record was for the oldest tick that it stands for. */
static void count_late(__s64 ns)
{
	__s64 class = ns / LATE_CLASS;

	if (class < 0)
		class = 0;
	if (class >= LATE_CLASSES)
		class = LATE_CLASSES - 1;
	late[class]++;
	lates++;
	if (ns > latest)
		latest = ns;
	if (ns > latest_lately)
		latest_lately = ns;
}

/* When the next tick of a timer is due. */
static __s64 next_due(unsigned int index)
{
	const struct timer *timer = &timers[index];
	enum kind kind = kind_of(index);

	if (kind != SESSION && policy_of(index) == SPOTTIMER_DELAY_NEXT)
		return timer->after;
	return timer->first + timer->scheduled * length[kind];
}

/* @before and @after: the time before and after the record was read. */
static void check_time(const struct spottimer_record *rec, struct timer *timer,
		       __s64 before, __s64 after)
{
	__s64 period = length[kind_of(rec->cookie)];
	__s64 due = next_due(rec->cookie);

	if (policy_of(rec->cookie) != SPOTTIMER_DELAY_NEXT)
		count_late(after - due);
	/* where the next tick counts from completion: that was in the read */
	timer->after = before + period;

	due += (rec->scheduled_index - timer->scheduled - 1) * period;
	if (after < due)
		broke(EARLY, rec->key, after - due, 0);
}

/*
 * Registering
 */

static struct spottimer_register batch[BATCH];
static unsigned int batched;

static void registered(const struct spottimer_register *reg)
{
	struct timer *timer = &timers[reg->cookie];

	if (reg->error) {
		broke(ENTRY, reg->key, reg->error, 0);
		return;
	}
	if (reg->generation <= newest_generation)
		broke(GENERATION, reg->key, reg->generation,
		      newest_generation + 1);
	newest_generation = reg->generation;

	if (!timer->generation)
		live++;
	else
		rearmed++;
	timer->generation = reg->generation;
	timer->delivered = 0;
	timer->scheduled = 0;
	timer->first = reg->first;
	timer->after = reg->first;
}

static int batch_ioctl(int fd, unsigned long cmd, void *entries,
		       unsigned int count, unsigned int size)
{
	struct spottimer_batch arg = {
		.entries = (unsigned long)entries,
		.count = count,
		.stride = size,
	};

	return ioctl(fd, cmd, &arg);
}

static void register_batch(int fd)
{
	unsigned int i;
	int done;

	if (!batched)
		return;
	done = batch_ioctl(fd, SPOTTIMER_IOC_REGISTER, batch, batched,
			   sizeof(batch[0]));
	if (done < 0)
		err(1, "SPOTTIMER_IOC_REGISTER");
	if ((unsigned int)done != batched)
		errx(1, "registered only %d of %u", done, batched);
	for (i = 0; i < batched; i++)
		registered(&batch[i]);
	batched = 0;
}

/*
 * Have a timer registered, at the latest by register_batch(). What we know
 * says whether the kernel has one of that key, so let it check that.
 */
static void register_timer(int fd, unsigned int index, __s64 first)
{
	const struct timer *timer = &timers[index];
	enum kind kind = kind_of(index);

	batch[batched++] = (struct spottimer_register) {
		.key = key_of(index),
		.generation = timer->generation,
		.first = first,
		.period = kind == SESSION ? 0 : length[kind],
		.cookie = index,
		.clock = CLOCK_MONOTONIC,
		.policy = policy_of(index),
		.max_catch_up = 3,
		.flags = SPOTTIMER_REG_ABSTIME |
			 (timer->generation ? SPOTTIMER_REG_REARM :
					      SPOTTIMER_REG_EXCL),
	};
	if (batched == BATCH)
		register_batch(fd);
}

/* The first due times are spread, so that they do not all come at once. */
static void register_all(int fd)
{
	__s64 begin = now(), start = begin;
	unsigned int i;

	for (i = 0; i < spots * KINDS; i++) {
		__s64 first = length[kind_of(i)];

		if (!batched)
			start = now();
		first = 1 + random_below(first);
		register_timer(fd, i, start + first);
	}
	register_batch(fd);
	printf("%u timers of %u spots registered in %lld ms\n", live, spots,
	       (now() - begin) / MSEC);
}

/* Traffic puts off the timeout of a session, or begins a new one. */
static void traffic(int fd)
{
	static unsigned int round;
	__s64 timeout = now() + length[SESSION];
	unsigned int i;

	round++;
	for (i = 0; i < spots / TRAFFIC_SHARE; i++) {
		unsigned int index = random_below(spots) * KINDS + SESSION;

		if (timers[index].touched == round)
			continue;
		timers[index].touched = round;
		register_timer(fd, index, timeout);
	}
	register_batch(fd);
}

/*
 * Taking ticks
 */

static void take(const struct spottimer_record *rec, __s64 before, __s64 after)
{
	struct timer *timer;

	if (rec->cookie >= spots * KINDS || rec->key != key_of(rec->cookie)) {
		broke(UNKNOWN, rec->key, rec->cookie, 0);
		return;
	}
	timer = &timers[rec->cookie];
	if (rec->generation != timer->generation) {
		broke(STALE, rec->key, rec->generation, timer->generation);
		return;
	}
	check_record(rec, timer);
	check_time(rec, timer, before, after);

	timer->delivered = rec->delivery_index;
	timer->scheduled = rec->scheduled_index;
	skipped += rec->skipped_ticks;
	if (kind_of(rec->cookie) == SESSION) {
		timer->generation = 0;
		live--;
		fired++;
	} else {
		ticks++;
	}
}

/* Returns the number of records; 0 if there was nothing to read. */
static unsigned int take_all(int fd)
{
	static struct spottimer_record records[RECORDS];
	__s64 before = now(), after;
	unsigned int i, count;
	ssize_t size;

	size = read(fd, records, sizeof(records));
	after = now();
	if (size < 0 && errno == EAGAIN)
		return 0;
	if (size <= 0 || size % sizeof(records[0]))
		err(1, "read returned %zd", size);

	count = size / sizeof(records[0]);
	for (i = 0; i < count; i++)
		take(&records[i], before, after);
	return count;
}

/* How many timers have a tick that was due at @time and has not come. */
static unsigned int overdue(__s64 time)
{
	unsigned int i, n = 0;

	for (i = 0; i < spots * KINDS; i++)
		if (timers[i].generation && next_due(i) <= time)
			n++;
	return n;
}

/* However slow the machine is, what is due now has to come in the end. */
static void take_overdue(int fd, int epfd)
{
	struct epoll_event event;
	__s64 time = now();
	unsigned int n;

	while ((n = overdue(time)) && now() < time + PATIENCE)
		if (epoll_wait(epfd, &event, 1, 10) > 0)
			take_all(fd);
	if (n) {
		broke(LOST, 0, n, 0);
		broken[LOST] = n;
	}
}

/*
 * What the kernel says
 */

/* The number in a line that begins with @name, or -1. */
static long number_in(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	size_t skip = strlen(name);
	long number = -1;
	char line[1024];

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, skip))
			number = strtol(line + skip, NULL, 10);
	fclose(file);
	return number;
}

static void look_at_hrtimers(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long n = number_in(COUNTERS, "hrtimers ");

	if (n > cpus)
		broke(HRTIMERS, 0, n, cpus);
	if (n > hrtimers)
		hrtimers = n;
}

static double memory_per_timer(int fd)
{
	long memory, count;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	memory = number_in(path, "memory:");
	count = number_in(path, "registered:");
	return memory > 0 && count > 0 ? (double)memory / count : -1;
}

/*
 * The program
 */

static void progress(unsigned int second)
{
	static __s64 last_time;
	static __u64 last_ticks;
	__s64 time = now();

	if (second)
		printf("%3u s %8u timers %10llu ticks %8.0f/s, latest %.1f ms\n",
		       second, live, ticks,
		       (double)(ticks - last_ticks) * SEC / (time - last_time),
		       (double)latest_lately / MSEC);
	latest_lately = 0;
	last_time = time;
	last_ticks = ticks;
}

static void run(int fd, unsigned int seconds)
{
	struct epoll_event event = { .events = EPOLLIN };
	__s64 begin, time, next_traffic;
	int epfd = epoll_create1(0);
	unsigned int second = 1;

	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll");

	progress(0);
	begin = now();
	next_traffic = begin + TRAFFIC_EVERY;
	while (second <= seconds) {
		time = now();
		if (time >= next_traffic) {
			traffic(fd);
			next_traffic = time + TRAFFIC_EVERY;
		}
		if (time >= begin + second * SEC) {
			look_at_hrtimers();
			progress(second++);
		}
		if (epoll_wait(epfd, &event, 1, 10) > 0)
			take_all(fd);
	}
	take_overdue(fd, epfd);
	close(epfd);
}

/* After a cancel has succeeded there is nothing more to read. */
static void cancel_all(int fd)
{
	struct spottimer_cancel cancel = { .flags = SPOTTIMER_CANCEL_ALL };

	if (batch_ioctl(fd, SPOTTIMER_IOC_CANCEL, &cancel, 1,
			sizeof(cancel)) != 1)
		err(1, "SPOTTIMER_IOC_CANCEL");
	if (cancel.error || cancel.result)
		broke(CANCEL, 0, cancel.error ?: cancel.result, 0);
	if (cancel.cancelled != live)
		broke(CANCEL, 0, cancel.cancelled, live);
	memset(timers, 0, spots * KINDS * sizeof(*timers));
	take_all(fd);
}

/* Milliseconds by which all but a share of the records were not later. */
static double late_quantile(double share)
{
	__u64 rank = share * lates, sum = 0;
	unsigned int class = 0;
	__s64 ns;

	while (class < LATE_CLASSES - 1 && (sum += late[class]) <= rank)
		class++;
	ns = (class + 1) * LATE_CLASS;
	return (double)(ns < latest ? ns : latest) / MSEC;
}

static void row(const char *name, __u64 value)
{
	printf("%-26s %12llu\n", name, value);
}

static bool report(double bytes)
{
	__u64 other = 0;
	unsigned int i;

	for (i = LOST + 1; i < PROMISES; i++)
		other += broken[i];

	printf("\n");
	printf("%-26s %12u of %u spots\n", "timers registered",
	       spots * KINDS, spots);
	row("ticks delivered", ticks);
	row("early ticks", broken[EARLY]);
	row("gaps in DeliveryIndex", broken[GAP]);
	row("stale generations", broken[STALE]);
	row("timers that lost a tick", broken[LOST]);
	row("other promises broken", other);
	row("skipped ticks", skipped);
	row("timeouts fired", fired);
	row("timeouts re-armed", rearmed);
	printf("%-26s %12.2f %8.2f %8.2f ms\n", "lateness p50, p99, max",
	       late_quantile(0.5), late_quantile(0.99), (double)latest / MSEC);
	if (hrtimers >= 0)
		printf("%-26s %12ld on %ld CPUs\n", "hrtimers in use", hrtimers,
		       sysconf(_SC_NPROCESSORS_ONLN));
	if (bytes >= 0)
		printf("%-26s %12.0f bytes\n", "kernel memory per timer",
		       bytes);

	for (i = 0; i < PROMISES; i++)
		if (broken[i])
			return false;
	return ticks;
}

static unsigned int number_arg(const char *arg, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (!n || n > max || *end)
		errx(2, "%s: not a number from 1 to %u", arg, max);
	return n;
}

int main(int argc, char **argv)
{
	unsigned int seconds = 8;
	double bytes;
	bool kept;
	int fd;

	if (argc > 3)
		errx(2, "usage: spots [SECONDS [SPOTS]]");
	if (argc > 1)
		seconds = number_arg(argv[1], 1000000);
	if (argc > 2)
		spots = number_arg(argv[2], 1000000);

	setvbuf(stdout, NULL, _IOLBF, 0);
	timers = calloc(spots * KINDS, sizeof(*timers));
	if (!timers)
		err(1, "calloc");
	fd = open("/dev/spottimer", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		err(1, "/dev/spottimer");

	register_all(fd);
	run(fd, seconds);
	bytes = memory_per_timer(fd);
	cancel_all(fd);
	close(fd);

	kept = report(bytes);
	printf("\n%s\n", kept ? "all promises were kept" :
	       ticks ? "NOT all promises were kept" : "NO tick came");
	return kept ? 0 : 1;
}
