/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HARNESS_LINUX_BITS_H
#define HARNESS_LINUX_BITS_H

#define BIT(n)	(1UL << (n))

#endif
