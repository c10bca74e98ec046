/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HARNESS_LINUX_BUILD_BUG_H
#define HARNESS_LINUX_BUILD_BUG_H

/* the compiler takes static_assert() without a message, too */
#include <assert.h>

#endif
