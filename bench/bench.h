/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the benchmarks share: the rivals, each with the same few operations, and
 * helpers. What goes wrong ends the program: a figure of something that did not
 * work is worth nothing.
 */
#ifndef SPOTTIMER_BENCH_H
#define SPOTTIMER_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/types.h>

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

#define USEC		1000LL
#define MSEC		1000000LL
#define SEC		1000000000LL
#define HOUR		(3600 * SEC)

/* Timers that are handed to the kernel in one call, by those who can. */
#define BATCH		4096

/* What is known of each timer: it is named by its place in this array. */
struct timer {
	__s64 due;	/* CLOCK_MONOTONIC, the next time */
	__s64 period;	/* or 0 */
};

extern struct timer *timers;

/**
 * struct rival - one way to have many timers
 * @name: how it is called in the results
 * @max: the most timers with which it can be measured
 * @open: prepare for that many timers
 * @arm: make these timers and start them, by @timers
 * @rearm: they run; give them the new time that is in @timers
 * @cancel: end them and give back what they used
 * @deliver: wait until a timer is due, but not beyond a time; call fired() for
 *	each timer that was. Returns how many there were.
 * @close: give back the rest
 * @close_ends_all: there may be timers then
 */
struct rival {
	const char *name;
	long max;
	void (*open)(long n);
	void (*arm)(long first, long n);
	void (*rearm)(long first, long n);
	void (*cancel)(long first, long n);
	long (*deliver)(__s64 until);
	void (*close)(void);
	bool close_ends_all;
};

extern const struct rival spottimer, timerfd, posix, uring, heap;

/* Set where it is to be noted how late each timer was taken. */
extern __s64 *lateness;

/* System calls made so far. */
extern long syscalls;

static inline __s64 now_on(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static inline __s64 now(void)
{
	return now_on(CLOCK_MONOTONIC);
}

static inline struct timespec to_timespec(__s64 ns)
{
	return (struct timespec){ .tv_sec = ns / SEC, .tv_nsec = ns % SEC };
}

/* Milliseconds to wait until that time, for epoll_wait(); not less. */
static inline int ms_until(__s64 until)
{
	__s64 ns = until - now();

	return ns > 0 ? (ns + MSEC - 1) / MSEC : 0;
}

/* A rival tells that a timer was due and has been taken. */
static inline void fired(long i)
{
	if (lateness)
		lateness[i] = now() - timers[i].due;
	if (timers[i].period)
		timers[i].due += timers[i].period;
}

/* bench/main.c */
void report(const char *what, const char *who, long n, double value,
	    const char *unit);
void settle(void);
void go_to_cpu(int cpu);
long long file_number(const char *path, const char *name);
void write_number(const char *path, long long value);
const char *cost_unit(void);

/* bench/spottimer.c: what only this module has */
int spot_open(void);
void bench_lease(void);
void bench_pass(void);
void bench_stall(void);
void bench_idle(int seconds);

#endif /* SPOTTIMER_BENCH_H */
