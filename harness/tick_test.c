// SPDX-License-Identifier: GPL-2.0
/*
 * Nanoseconds to wheel ticks: the precomputed reciprocal must agree with a
 * plain division over the whole range of ktime (contract A3, A6).
 */
#include <linux/limits.h>

#include "spot_wheel.h"
#include "tap.h"

static const u32 some_lengths[] = {
	2, 3, 4, 5, 7, 10, 641, 1000, 65535, 65536, 65537, 99999, 100000,
	100001, 999999, 1000000, 1000001, 4194304, 10000000, 999999999,
	1000000000, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
};

static void check_time(const struct spot_tick_len *tick, __int128_t ns)
{
	__uint128_t from = ns > 0 ? ns : 0;

	if (ns < S64_MIN || ns > S64_MAX)
		return;
	CHECK_EQ(spot_tick_floor(tick, ns), from / tick->ns);
	CHECK_EQ(spot_tick_ceil(tick, ns), (from + tick->ns - 1) / tick->ns);
}

/* The @n-th wheel tick, which is where a wrong reciprocal shows, and around. */
static void check_tick(const struct spot_tick_len *tick, u64 n)
{
	__int128_t ns = (__int128_t)n * tick->ns;

	check_time(tick, ns - 1);
	check_time(tick, ns);
	check_time(tick, ns + 1);
}

static void check_length(u32 ns, unsigned int samples)
{
	struct spot_tick_len tick;
	u64 last = S64_MAX / ns;
	unsigned int bit, i;

	tap_where("tick of %llu ns", ns, 0);
	spot_tick_len_init(&tick, ns);
	CHECK_EQ(tick.ns, ns);

	for (bit = 0; bit < 64; bit++) {
		check_tick(&tick, (1ULL << bit) - 1);
		check_tick(&tick, 1ULL << bit);
		check_tick(&tick, (1ULL << bit) + 1);
		check_time(&tick, (__int128_t)(1ULL << bit) - 1);
		check_time(&tick, (__int128_t)(1ULL << bit));
		check_time(&tick, (__int128_t)(1ULL << bit) + 1);
	}
	for (i = 0; i < samples; i++) {
		check_tick(&tick, i);
		check_tick(&tick, last - i);
		check_tick(&tick, rnd_below(last));
		check_tick(&tick, rnd_bits(63));
		check_time(&tick, rnd_bits(63));
		check_time(&tick, S64_MAX - (s64)i);
	}
}

static void chosen_lengths(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(some_lengths); i++)
		check_length(some_lengths[i], 10000);
}

static void any_length(void)
{
	unsigned int bit, i;

	for (bit = 1; bit < 32; bit++) {
		if (bit > 1)
			check_length((1U << bit) - 1, 200);
		check_length(1U << bit, 200);
		check_length((1U << bit) + 1, 200);
	}
	for (i = 0; i < 5000; i++)
		check_length(2 + rnd_below(U32_MAX - 1), 20);
}

static void times_before_zero(void)
{
	struct spot_tick_len tick;

	spot_tick_len_init(&tick, 1000000);
	check_time(&tick, 0);
	check_time(&tick, -1);
	check_time(&tick, -1000000);
	check_time(&tick, S64_MIN);
}

/* 19 ns on ticks of 10 ns is not before tick 2. */
static void rounding_up(void)
{
	struct spot_tick_len tick;

	spot_tick_len_init(&tick, 10);
	CHECK_EQ(spot_tick_ceil(&tick, 19), 2);
	CHECK_EQ(spot_tick_ceil(&tick, 20), 2);
	CHECK_EQ(spot_tick_ceil(&tick, 21), 3);
	CHECK_EQ(spot_tick_floor(&tick, 19), 1);
	CHECK_EQ(spot_tick_floor(&tick, 20), 2);
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "a3_case2_deadline_rounds_up", rounding_up },
		{ "a6_exact_for_chosen_tick_lengths", chosen_lengths },
		{ "a6_exact_for_any_tick_length", any_length },
		{ "a6_times_before_zero_count_as_zero", times_before_zero },
	};

	return tap_run(tests, ARRAY_SIZE(tests));
}
