/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HARNESS_LINUX_COMPILER_H
#define HARNESS_LINUX_COMPILER_H

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#endif
