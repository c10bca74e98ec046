/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HARNESS_LINUX_PREFETCH_H
#define HARNESS_LINUX_PREFETCH_H

#define prefetchw(x)	__builtin_prefetch(x, 1)

#endif
