/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs of the harness share: a list of tests whose results are
 * printed as KTAP, checks that end a test where they fail, and random numbers
 * that are the same in every run.
 */
#ifndef HARNESS_TAP_H
#define HARNESS_TAP_H

#include <setjmp.h>
#include <stdio.h>

#include <linux/types.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct tap_test {
	const char *name;
	void (*run)(void);
};

static struct {
	jmp_buf failed;
	/* printed where a check fails: where in a long test that was */
	const char *where;
	u64 a, b;
} tap;

/* Say where the test is, for a failure; @where formats two %llu. */
static inline void tap_where(const char *where, u64 a, u64 b)
{
	tap.where = where;
	tap.a = a;
	tap.b = b;
}

static inline void tap_fail(const char *file, int line, const char *check)
{
	printf("# %s:%d: %s\n", file, line, check);
	if (tap.where) {
		printf("# ");
		printf(tap.where, tap.a, tap.b);
		printf("\n");
	}
	longjmp(tap.failed, 1);
}

#define CHECK(cond)						\
do {								\
	if (!(cond))						\
		tap_fail(__FILE__, __LINE__, #cond);		\
} while (0)

#define CHECK_EQ(is, expected)					\
do {								\
	u64 is_ = (is), expected_ = (expected);			\
								\
	if (is_ != expected_) {					\
		printf("# is %llu, expected %llu\n", is_, expected_);	\
		tap_fail(__FILE__, __LINE__, #is " == " #expected);	\
	}							\
} while (0)

/* Run the tests; the program's exit code. */
static inline int tap_run(const struct tap_test *tests, unsigned int count)
{
	static unsigned int i, bad;

	/* a crash must not take the results before it along */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%u\n", count);
	for (i = 0; i < count; i++) {
		tap.where = NULL;
		if (setjmp(tap.failed)) {
			printf("not ok %u - %s\n", i + 1, tests[i].name);
			bad++;
			continue;
		}
		tests[i].run();
		printf("ok %u - %s\n", i + 1, tests[i].name);
	}
	return bad ? 1 : 0;
}

static u64 rnd_state;

/* splitmix64 */
static inline u64 rnd(void)
{
	u64 x = rnd_state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* 0 to @n - 1; @n is at least 1 */
static inline u64 rnd_below(u64 n)
{
	return rnd() % n;
}

static inline bool one_in(unsigned int n)
{
	return !rnd_below(n);
}

/* a number of up to @bits bits, each length as likely as the others */
static inline u64 rnd_bits(unsigned int bits)
{
	u64 n = rnd_below(bits + 1);

	return n ? rnd() >> (64 - n) : 0;
}

#endif
