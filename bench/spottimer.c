// SPDX-License-Identifier: GPL-2.0
/* This module: as a rival, and what only it has to show. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/spottimer.h>

#define OWNER	1

static int fd, epoll;

int spot_open(void)
{
	int file = open("/dev/spottimer", O_RDWR | O_CLOEXEC);

	if (file < 0)
		err(1, "/dev/spottimer");
	return file;
}

static void batch(int file, unsigned long cmd, void *entries, long n,
		  size_t stride)
{
	struct spottimer_batch b = {
		.entries = (uintptr_t)entries,
		.count = n,
		.stride = stride,
	};

	if (ioctl(file, cmd, &b) != n)
		err(1, "ioctl");
}

static void register_timers(int file, long first, long n, __u64 owner)
{
	static struct spottimer_register regs[BATCH];
	long i, count;

	for (; n > 0; first += count, n -= count) {
		count = n < BATCH ? n : BATCH;
		for (i = 0; i < count; i++)
			regs[i] = (struct spottimer_register){
				.key = first + i,
				.first = timers[first + i].due,
				.period = timers[first + i].period,
				.owner = owner,
				.epoch = owner ? 1 : 0,
				.clock = CLOCK_MONOTONIC,
				.flags = SPOTTIMER_REG_ABSTIME,
			};
		batch(file, SPOTTIMER_IOC_REGISTER, regs, count, sizeof(regs[0]));
		for (i = 0; i < count; i++)
			if (regs[i].error)
				errx(1, "register: %s", strerror(-regs[i].error));
	}
}

static void spottimer_open(long n)
{
	struct epoll_event event = { .events = EPOLLIN };

	(void)n;
	fd = spot_open();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll");
}

/* To register a key again is to give it a new time. */
static void spottimer_arm(long first, long n)
{
	register_timers(fd, first, n, 0);
}

static void spottimer_cancel(long first, long n)
{
	static struct spottimer_cancel cancels[BATCH];
	long i, count;

	for (; n > 0; first += count, n -= count) {
		count = n < BATCH ? n : BATCH;
		for (i = 0; i < count; i++)
			cancels[i] = (struct spottimer_cancel){ .key = first + i };
		batch(fd, SPOTTIMER_IOC_CANCEL, cancels, count,
		      sizeof(cancels[0]));
		for (i = 0; i < count; i++)
			/* one that has fired is gone */
			if (cancels[i].error && cancels[i].error != -ENOENT)
				errx(1, "cancel: %s", strerror(-cancels[i].error));
	}
}

static long spottimer_deliver(__s64 until)
{
	static struct spottimer_record records[BATCH];
	struct epoll_event event;
	long taken = 0;
	ssize_t got, i;
	int n;

	n = epoll_wait(epoll, &event, 1, ms_until(until));
	if (n < 0)
		err(1, "epoll_wait");
	if (!n)
		return 0;
	got = read(fd, records, sizeof(records));
	if (got < 0)
		err(1, "read");
	for (i = 0; i < got / (ssize_t)sizeof(records[0]); i++) {
		long times = 1 + records[i].skipped_ticks;

		taken += times;
		while (times--)
			fired(records[i].key);
	}
	return taken;
}

static void spottimer_close(void)
{
	close(epoll);
	close(fd);
}

const struct rival spottimer = {
	.name = "spottimer",
	.max = 1000000,
	.open = spottimer_open,
	.arm = spottimer_arm,
	.rearm = spottimer_arm,
	.cancel = spottimer_cancel,
	.deliver = spottimer_deliver,
	.close = spottimer_close,
	.close_ends_all = true,
};

static long long counter(const char *name)
{
	return file_number("/sys/kernel/debug/spottimer/counters", name);
}

static long long param(const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/module/spottimer/parameters/%s", name);
	return file_number(path, "");
}

static void forget_longest(void)
{
	write_number("/sys/kernel/debug/spottimer/reset", 1);
}

/* A lease is renewed a thousand times, with so many timers under its owner. */
static void renew_with(long n)
{
	struct spottimer_lease l = {
		.owner = OWNER,
		.epoch = 1,
		.deadline = HOUR,
		.op = SPOTTIMER_LEASE_GRANT,
	};
	__s64 begin, due = now() + HOUR;
	int file = spot_open();
	long i;

	batch(file, SPOTTIMER_IOC_LEASE, &l, 1, sizeof(l));
	for (i = 0; i < n; i++)
		timers[i] = (struct timer){ .due = due };
	register_timers(file, 0, n, OWNER);
	l.op = SPOTTIMER_LEASE_RENEW;
	settle();
	begin = now();
	for (i = 0; i < 1000 && !l.error; i++)
		batch(file, SPOTTIMER_IOC_LEASE, &l, 1, sizeof(l));
	if (l.error)
		errx(1, "lease: %s", strerror(-l.error));
	report("lease-renew", "spottimer", n, (now() - begin) / 1000.0,
	       cost_unit());
	close(file);
	settle();
}

void bench_lease(void)
{
	renew_with(1);
	renew_with(1000);
	renew_with(100000);
}

/*
 * The longest pass of a softirq, with a million timers that come out of one
 * bucket of the third level (4096 ticks), and fire either one after the other or
 * all in its last tick. All wait on one CPU.
 */
static void pass(const char *what, const char *who, bool together)
{
	static struct spottimer_record records[BATCH];
	const long n = 1000000;
	__s64 bucket = 4096 * param("tick_ns"), begin;
	int file = spot_open();
	long i, got = 0;

	go_to_cpu(0);
	/* the beginning of a bucket that is far enough away */
	begin = (now() + 3 * SEC) / bucket * bucket + 2 * bucket;
	for (i = 0; i < n; i++) {
		timers[i].due = begin + (together ? bucket - MSEC :
					 bucket / n * i);
		timers[i].period = 0;
	}
	register_timers(file, 0, n, 0);
	if (now() >= begin)
		warnx("%s: too slow to fill the bucket before it begins", what);
	forget_longest();
	while (got < n) {
		ssize_t bytes = read(file, records, sizeof(records));

		if (bytes < 0)
			err(1, "read");
		got += bytes / sizeof(records[0]);
	}
	report(what, who, n, counter("pass_max_ns"), cost_unit());
	close(file);
	go_to_cpu(-1);
	settle();
}

void bench_pass(void)
{
	const char *path = "/sys/module/spottimer/parameters/budget";
	long long budget = param("budget");

	report("pass-budget", "spottimer", 0, param("budget_ns"), "ns");
	pass("pass-longest-bucket", "spottimer", false);
	pass("pass-longest-tick", "spottimer", true);
	/* the number of timers does not end a pass, so only the time does */
	write_number(path, 1000000);
	pass("pass-longest-bucket", "spottimer-by-time", false);
	pass("pass-longest-tick", "spottimer-by-time", true);
	write_number(path, budget);
}

/* The clock jumps over so many empty ticks to the only timer. */
static void stall(long ticks)
{
	const __s64 jump = ticks * param("tick_ns");
	struct spottimer_record record;
	struct spottimer_register reg = {
		.clock = CLOCK_REALTIME,
		.flags = SPOTTIMER_REG_ABSTIME,
	};
	int file = spot_open();
	struct timespec ts;

	reg.first = now_on(CLOCK_REALTIME) + jump;
	batch(file, SPOTTIMER_IOC_REGISTER, &reg, 1, sizeof(reg));
	if (reg.error)
		errx(1, "register: %s", strerror(-reg.error));
	forget_longest();
	ts = to_timespec(reg.first);
	if (clock_settime(CLOCK_REALTIME, &ts))
		err(1, "clock_settime");
	if (read(file, &record, sizeof(record)) != sizeof(record))
		err(1, "read");
	report("stall", "spottimer", ticks, counter("pass_max_ns"), cost_unit());
	ts = to_timespec(now_on(CLOCK_REALTIME) - jump);
	if (clock_settime(CLOCK_REALTIME, &ts))
		err(1, "clock_settime");
	close(file);
	settle();
}

void bench_stall(void)
{
	stall(100);
	stall(100000000);
}

static void do_nothing(const char *who, int seconds)
{
	struct timespec ts = { .tv_sec = seconds };
	long long passes, intr, softirq;

	settle();
	passes = counter("passes");
	intr = file_number("/proc/stat", "intr");
	softirq = file_number("/proc/stat", "softirq");
	nanosleep(&ts, NULL);
	intr = file_number("/proc/stat", "intr") - intr;
	softirq = file_number("/proc/stat", "softirq") - softirq;
	report("idle-interrupts", who, 0, (double)intr / seconds, "per second");
	report("idle-softirqs", who, 0, (double)softirq / seconds, "per second");
	report("idle-passes", who, 0,
	       (double)(counter("passes") - passes) / seconds, "per second");
}

/* What the kernel does by itself is there in all of them. */
void bench_idle(int seconds)
{
	int file;

	do_nothing("nothing", seconds);
	file = spot_open();
	do_nothing("spottimer-none", seconds);
	timers[0] = (struct timer){ .due = now() + HOUR };
	register_timers(file, 0, 1, 0);
	do_nothing("spottimer-hour", seconds);
	close(file);
}
