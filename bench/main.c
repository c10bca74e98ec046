// SPDX-License-Identifier: GPL-2.0
/*
 * Measure timers of several kinds, one after the other and in turns. Prints one
 * JSON object per line; a line that begins with # is for people.
 *
 *   bench [--counts N,N…] [--rounds N] [--seconds N] [--who NAME,NAME…]
 *	   [--instructions] MEASUREMENT…
 *
 * Where a nanosecond of the guest is one instruction (qemu -icount shift=0),
 * --instructions says so in the results.
 *
 * All times are whole milliseconds, as programs have them, but where lateness is
 * measured: so timers of the kernel that are due together share an interrupt.
 */
#include "bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <linux/random.h>

static const struct rival *const rivals[] = {
	&spottimer, &timerfd, &posix, &uring, &heap,
};

enum {
	MAX_TIMERS	= 1000000,
	REPEATING	= 20000,
	SESSIONS	= 10000,
	LATE		= 10000,
};

struct timer *timers;
__s64 *lateness;

static long counts[8] = { 1000, 10000, 100000 };
static int n_counts = 3, rounds = 1, seconds = 10, this_round;
static const char *who, *unit = "ns";

const char *cost_unit(void)
{
	return unit;
}

void report(const char *what, const char *name, long n, double value,
	    const char *value_unit)
{
	printf("{\"what\":\"%s\",\"who\":\"%s\",\"n\":%ld,", what, name, n);
	printf("\"round\":%d,\"value\":%.2f,\"unit\":\"%s\"}\n", this_round, value,
	       value_unit);
}

/* The number after the first word @name in a file. */
long long file_number(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	char line[65536], *end;
	size_t len = strlen(name);

	if (!file)
		err(1, "%s", path);
	while (fgets(line, sizeof(line), file)) {
		if (len && (strncmp(line, name, len) || !strchr(": \t", line[len])))
			continue;
		fclose(file);
		return strtoll(line + len + strspn(line + len, ": \t"), &end, 10);
	}
	errx(1, "%s: no %s", path, name);
}

void write_number(const char *path, long long value)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%lld", value);
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, len) != len)
		err(1, "%s", path);
	close(file);
}

/*
 * How long a CPU has been idle. Elsewhere that is known to 10 ms only; here it is
 * exact when the CPU is not idle now: so be on it. To print the file takes very
 * long while many hrtimers are armed.
 */
static __s64 idle_ns(int cpu)
{
	static char text[1 << 20];
	char name[24], *at, *field;
	size_t size = 0;
	__s64 idle = 0;
	ssize_t got;
	int i, file = open("/proc/timer_list", O_RDONLY | O_CLOEXEC);

	if (file < 0)
		err(1, "/proc/timer_list");
	while ((got = read(file, text + size, sizeof(text) - 1 - size)) > 0)
		size += got;
	close(file);
	text[size] = 0;
	snprintf(name, sizeof(name), "\ncpu: %d\n", cpu);
	at = strstr(text, name);
	for (i = 0; i < 2; i++) {
		field = at ? strstr(at, i ? ".iowait_sleeptime" :
				    ".idle_sleeptime") : NULL;
		field = field ? strchr(field, ':') : NULL;
		if (!field)
			errx(1, "/proc/timer_list");
		idle += strtoll(field + 1, NULL, 10);
	}
	return idle;
}

/* Run there only, or for -1 anywhere. */
void go_to_cpu(int cpu)
{
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	for (i = 0; i < get_nprocs(); i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "sched_setaffinity");
}

/*
 * Time in which the CPUs were not idle, whatever they did: the work of softirqs and
 * interrupts is in it. What it takes to look at that is not.
 */
static __s64 busy_since(__s64 before)
{
	__s64 busy = 0, begin, idle;
	int cpu;

	for (cpu = get_nprocs() - 1; cpu >= 0; cpu--) {
		go_to_cpu(cpu);
		begin = now();
		idle = idle_ns(cpu);
		busy += (before ? begin : now()) - idle;
	}
	go_to_cpu(-1);
	return busy - before;
}

static __s64 busy_begin(void)
{
	return busy_since(0);
}

static void sleep_ns(__s64 ns)
{
	struct timespec ts = to_timespec(ns);

	nanosleep(&ts, NULL);
}

/* Let the kernel do what it has put off, such as freeing memory. */
void settle(void)
{
	int tries = 100, quiet = 0;

	while (tries-- && quiet < 2) {
		__s64 begin = busy_begin();

		sleep_ns(50 * MSEC);
		quiet = busy_since(begin) < 5 * MSEC * get_nprocs() ? quiet + 1 : 0;
	}
}

/* The next whole millisecond that is so far away. */
static __s64 whole_ms_in(__s64 ns)
{
	return (now() + ns + MSEC) / MSEC * MSEC;
}

static unsigned int random_number(void)
{
	static __u64 state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

static void end_all(const struct rival *r, long n)
{
	if (!r->close_ends_all)
		r->cancel(0, n);
	r->close();
}

static void postpone(long n)
{
	long i;

	for (i = 0; i < n; i++)
		timers[i].due += SEC;
}

/*
 * One shot each, due at random times within a minute, an hour from now. All are
 * armed, then get another time in the same order, as at each sign of life of a
 * session, and are cancelled. The first of these times is not measured: it is
 * when some get the memory that they keep for the next ones.
 */
static void bench_arm(const struct rival *r, long n)
{
	__s64 base = whole_ms_in(HOUR), begin, armed, rearmed, cancelled;
	long i;

	for (i = 0; i < n; i++)
		timers[i] = (struct timer){
			.due = base + random_number() % 60000 * MSEC,
		};
	r->open(n);
	settle();
	begin = now();
	r->arm(0, n);
	armed = now() - begin;
	postpone(n);
	r->rearm(0, n);
	postpone(n);
	begin = now();
	r->rearm(0, n);
	rearmed = now() - begin;
	begin = now();
	r->cancel(0, n);
	cancelled = now() - begin;
	r->close();
	settle();
	if (!this_round)
		return;
	report("arm", r->name, n, (double)armed / n, unit);
	report("rearm", r->name, n, (double)rearmed / n, unit);
	report("cancel", r->name, n, (double)cancelled / n, unit);
}

/*
 * Make them due within so much time. It is not known how long that takes: tell if
 * the first was due before the last was armed.
 */
static bool arm_ahead(const struct rival *r, long n, __s64 within, __s64 ahead,
		      __s64 *takes)
{
	__s64 base = whole_ms_in(ahead), begin;
	long i;

	for (i = 0; i < n; i++)
		timers[i] = (struct timer){
			.due = base + within / MSEC * i / n * MSEC,
		};
	begin = now();
	r->arm(0, n);
	*takes = now() - begin;
	return begin + *takes < base;
}

/* What it costs from the first tick until all are taken. */
static void measure_fire(const struct rival *r, const char *what, long n,
			 __s64 within)
{
	__s64 busy, takes, ahead = 50 * MSEC + n * 2 * USEC;
	long got = 0;

	for (;;) {
		r->open(n);
		settle();
		busy = busy_begin();
		if (arm_ahead(r, n, within, ahead, &takes))
			break;
		end_all(r, n);
		ahead = 2 * (takes > ahead ? takes : ahead);
	}
	while (got < n)
		got += r->deliver(now() + HOUR);
	busy = busy_since(busy) - takes;
	report(what, r->name, n, (double)busy / n, unit);
	end_all(r, n);
	settle();
}

static void bench_fire(const struct rival *r, long n)
{
	measure_fire(r, "fire-together", n, 0);
	measure_fire(r, "fire-spread", n, SEC);
}

/* Timers of 100 ms; each millisecond as many of them. */
static void bench_repeat(const struct rival *r)
{
	__s64 busy, begin, armed, base, end, elapsed;
	long i, calls, got = 0;
	long long interrupts;

	r->open(REPEATING);
	settle();
	interrupts = file_number("/proc/stat", "intr");
	busy = busy_begin();
	base = whole_ms_in(200 * MSEC);
	for (i = 0; i < REPEATING; i++)
		timers[i] = (struct timer){
			.due = base + i % 100 * MSEC,
			.period = 100 * MSEC,
		};
	begin = now();
	r->arm(0, REPEATING);
	armed = now() - begin;
	calls = syscalls;
	end = base + seconds * SEC;
	while (now() < end)
		got += r->deliver(end);
	elapsed = now() - base;
	calls = syscalls - calls;
	interrupts = file_number("/proc/stat", "intr") - interrupts;
	begin = now();
	end_all(r, REPEATING);
	armed += now() - begin;
	busy = busy_since(busy) - armed;
	report("repeat-cpu", r->name, REPEATING, 100.0 * busy / elapsed,
	       "percent of a CPU");
	report("repeat-ticks", r->name, REPEATING, 1e9 * got / elapsed,
	       "per second");
	report("repeat-syscalls", r->name, REPEATING, 1e9 * calls / elapsed,
	       "per second");
	report("repeat-interrupts", r->name, REPEATING,
	       1e9 * interrupts / elapsed, "per second");
	settle();
}

static void touch(const struct rival *r, long first, long n, __s64 timeout)
{
	__s64 due = whole_ms_in(timeout);
	long i;

	for (i = first; i < first + n; i++)
		timers[i].due = due;
	r->rearm(first, n);
}

/*
 * Each session has a ping every 5 s, and is given up 30 s after the last sign of
 * life for a reconnection, after 60 s altogether. There is one every second, a
 * tenth of the sessions at a time.
 */
static void bench_sessions(const struct rival *r)
{
	const long share = SESSIONS / 10;
	__s64 busy, begin, base, end, next, elapsed;
	long i, calls, turn = 0;

	r->open(3 * SESSIONS);
	settle();
	busy = busy_begin();
	base = whole_ms_in(0);
	for (i = 0; i < SESSIONS; i++) {
		timers[i] = (struct timer){
			.due = base + (500 + i % 5000) * MSEC,
			.period = 5 * SEC,
		};
		timers[i + SESSIONS] = (struct timer){ .due = base + 30 * SEC };
		timers[i + 2 * SESSIONS] = (struct timer){ .due = base + 60 * SEC };
	}
	begin = now();
	r->arm(0, 3 * SESSIONS);
	busy += now() - begin;
	calls = syscalls;
	begin = now();
	end = begin + seconds * SEC;
	next = begin + 100 * MSEC;
	while (now() < end) {
		r->deliver(next < end ? next : end);
		if (now() < next)
			continue;
		touch(r, SESSIONS + turn * share, share, 30 * SEC);
		touch(r, 2 * SESSIONS + turn * share, share, 60 * SEC);
		turn = (turn + 1) % 10;
		next += 100 * MSEC;
	}
	elapsed = now() - begin;
	calls = syscalls - calls;
	begin = now();
	end_all(r, 3 * SESSIONS);
	busy += now() - begin;
	busy = busy_since(busy);
	report("session-server-cpu", r->name, SESSIONS, 100.0 * busy / elapsed,
	       "percent of a CPU");
	report("session-server-syscalls", r->name, SESSIONS,
	       1e9 * calls / elapsed, "per second");
	settle();
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	if (!dir)
		err(1, "/proc/self/fd");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long kernel_memory(void)
{
	return 1024 * (file_number("/proc/meminfo", "Slab") +
		       file_number("/proc/meminfo", "VmallocUsed"));
}

/* Of the kernel's memory, that for which the cgroup of this program pays. */
static long charged_memory(void)
{
	static const char stat[] = "/sys/fs/cgroup/bench/memory.stat";

	return file_number(stat, "kernel") - file_number(stat, "pagetables");
}

static void bench_memory(const struct rival *r, long n)
{
	long memory, charged, i;
	int files;

	for (i = 0; i < n; i++)
		timers[i] = (struct timer){ .due = whole_ms_in(HOUR) };
	settle();
	memory = kernel_memory();
	charged = charged_memory();
	files = open_files();
	r->open(n);
	r->arm(0, n);
	sleep_ns(SEC / 2);
	memory = kernel_memory() - memory;
	charged = charged_memory() - charged;
	report("memory", r->name, n, (double)memory / n, "bytes");
	report("memory-charged", r->name, n, (double)charged / n, "bytes");
	report("fds", r->name, n, open_files() - files, "files");
	end_all(r, n);
	settle();
}

static int compare(const void *a, const void *b)
{
	const __s64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* One shot each, at any time, to the microsecond, within some seconds. */
static void bench_lateness(const struct rival *r)
{
	__s64 base, late[LATE];
	long i, got = 0;

	r->open(LATE);
	settle();
	base = whole_ms_in(300 * MSEC);
	for (i = 0; i < LATE; i++)
		timers[i] = (struct timer){
			.due = base + random_number() % (seconds * 500000LL) * USEC,
		};
	r->arm(0, LATE);
	lateness = late;
	while (got < LATE)
		got += r->deliver(base + 1000 * SEC);
	lateness = NULL;
	qsort(late, LATE, sizeof(late[0]), compare);
	report("lateness-p50", r->name, LATE, late[LATE / 2], "ns");
	report("lateness-p90", r->name, LATE, late[LATE / 10 * 9], "ns");
	report("lateness-p99", r->name, LATE, late[LATE / 100 * 99], "ns");
	report("lateness-max", r->name, LATE, late[LATE - 1], "ns");
	end_all(r, LATE);
	settle();
}

static bool takes_part(const struct rival *r)
{
	size_t len = strlen(r->name);
	const char *at = who;

	if (!who)
		return true;
	while (strncmp(at, r->name, len) || (at[len] && at[len] != ',')) {
		at = strchr(at, ',');
		if (!at)
			return false;
		at++;
	}
	return true;
}

/* In turns, each round beginning with the next one. */
static const struct rival *in_turn(size_t i)
{
	const struct rival *r;

	r = rivals[(i + this_round) % ARRAY_LEN(rivals)];
	return takes_part(r) ? r : NULL;
}

static void with_each(void (*measure)(const struct rival *r))
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rivals); i++)
		if (in_turn(i))
			measure(in_turn(i));
}

static void with_each_count(void (*measure)(const struct rival *r, long n))
{
	size_t i;
	int c;

	for (c = 0; c < n_counts; c++)
		for (i = 0; i < ARRAY_LEN(rivals); i++)
			if (in_turn(i) && counts[c] <= in_turn(i)->max)
				measure(in_turn(i), counts[c]);
}

static void idle(void)
{
	bench_idle(seconds);
}

/* What can be asked for; only one of the functions is set. */
static const struct measurement {
	const char *name;
	void (*each)(const struct rival *r);
	void (*each_count)(const struct rival *r, long n);
	void (*own)(void);
} measurements[] = {
	{ .name = "arm", .each_count = bench_arm },
	{ .name = "fire", .each_count = bench_fire },
	{ .name = "memory", .each_count = bench_memory },
	{ .name = "repeat", .each = bench_repeat },
	{ .name = "sessions", .each = bench_sessions },
	{ .name = "lateness", .each = bench_lateness },
	{ .name = "lease", .own = bench_lease },
	{ .name = "idle", .own = idle },
	{ .name = "pass", .own = bench_pass },
	{ .name = "stall", .own = bench_stall },
};

static void run(const char *what)
{
	const struct measurement *m = measurements;

	while (strcmp(m->name, what))
		if (++m == measurements + ARRAY_LEN(measurements))
			errx(2, "what is %s?", what);
	if (m->each)
		with_each(m->each);
	else if (m->each_count)
		with_each_count(m->each_count);
	else
		m->own();
}

static void parse_counts(char *list)
{
	char *word;

	n_counts = 0;
	for (word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		long n = atol(word);

		if (n < 1 || n > MAX_TIMERS || n_counts == ARRAY_LEN(counts))
			errx(2, "--counts: %s", word);
		counts[n_counts++] = n;
	}
}

/*
 * As long as the kernel has no entropy it hashes all that it has for each random
 * number, of which slabs need some. Where instructions are counted nothing comes
 * in that would end that; so say that something has.
 */
static void seed_random(void)
{
	struct {
		struct rand_pool_info info;
		char bytes[64];
	} pool = {
		.info = { .entropy_count = 512, .buf_size = sizeof(pool.bytes) },
	};
	int file = open("/dev/random", O_RDWR | O_CLOEXEC);

	if (file < 0 || ioctl(file, RNDADDENTROPY, &pool))
		err(1, "/dev/random");
	close(file);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "counts", required_argument, NULL, 'c' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "who", required_argument, NULL, 'w' },
		{ "instructions", no_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	size_t i;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'c')
			parse_counts(optarg);
		else if (c == 'r')
			rounds = atoi(optarg);
		else if (c == 's')
			seconds = atoi(optarg);
		else if (c == 'w')
			who = optarg;
		else if (c == 'i')
			unit = "instructions";
		else
			return 2;
	}
	if (!strcmp(unit, "instructions"))
		seed_random();
	setvbuf(stdout, NULL, _IOLBF, 0);
	timers = malloc(MAX_TIMERS * sizeof(*timers));
	if (!timers)
		err(1, "malloc");
	/* what is touched here for the first time is not measured */
	memset(timers, 0, MAX_TIMERS * sizeof(*timers));
	for (i = 0; i < ARRAY_LEN(rivals); i++)
		if (takes_part(rivals[i]))
			bench_arm(rivals[i], 1000);
	for (this_round = 1; this_round <= rounds; this_round++)
		for (c = optind; c < argc; c++)
			run(argv[c]);
	return 0;
}
