/* SPDX-License-Identifier: GPL-2.0 */
/* glibc has __always_inline; noinline is told to the preprocessor. */
#ifndef HARNESS_LINUX_COMPILER_H
#define HARNESS_LINUX_COMPILER_H

#include <sys/cdefs.h>

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#endif
