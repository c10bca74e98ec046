/* SPDX-License-Identifier: GPL-2.0 */
/* Bit searches on 64 bits. For 0, __ffs() and __fls() are undefined: UBSan. */
#ifndef HARNESS_LINUX_BITOPS_H
#define HARNESS_LINUX_BITOPS_H

#include <linux/types.h>

static inline int fls(unsigned int x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline unsigned long __fls(unsigned long x)
{
	return 63 - __builtin_clzl(x);
}

static inline unsigned long __ffs(unsigned long x)
{
	return __builtin_ctzl(x);
}

#endif
