/* SPDX-License-Identifier: GPL-2.0 */
/* Just enough of the kernel's <linux/types.h> for what the harness compiles. */
#ifndef HARNESS_LINUX_TYPES_H
#define HARNESS_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/compiler.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

struct list_head {
	struct list_head *next, *prev;
};

#endif
