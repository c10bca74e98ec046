/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's counters in debugfs, and how much of a test a slow kernel gets.
 */
#ifndef SPOTTIMER_COUNTERS_H
#define SPOTTIMER_COUNTERS_H

#include "spottimer_test.h"

#define COUNTERS "/sys/kernel/debug/spottimer/counters"

/* The number that follows @name at the beginning of a line, -1 if none does. */
static inline long long read_number(const char *path, const char *name)
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

static inline long long counter(const char *name)
{
	return read_number(COUNTERS, name);
}

/* Wait for the number of hrtimers in use, over all CPUs. */
static inline bool wait_hrtimers(long long n)
{
	__s64 since = 0;

	while (counter("hrtimers") != n)
		if (!look_again(&since))
			return false;
	return true;
}

/*
 * A number from the environment: init hands on what it was told by the kernel's
 * command line.
 */
static inline int number_from_env(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value && atoi(value) > 0 ? atoi(value) : otherwise;
}

/*
 * A kernel that looks for mistakes takes too long for the large numbers, and
 * keeps what was freed for a while, to see who uses it still: there they are
 * divided by this.
 */
static inline int scale(void)
{
	static int value;

	if (!value)
		value = number_from_env("SPOT_SCALE", 1);
	return value;
}

#endif /* SPOTTIMER_COUNTERS_H */
