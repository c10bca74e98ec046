/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HARNESS_LINUX_LIMITS_H
#define HARNESS_LINUX_LIMITS_H

#include <linux/types.h>

#ifndef INT_MAX
#define INT_MAX		__INT_MAX__
#endif
#define U32_MAX		(~0U)
#define U64_MAX		(~0ULL)
#define S64_MAX		((s64)(U64_MAX >> 1))
#define S64_MIN		(-S64_MAX - 1)

#endif
