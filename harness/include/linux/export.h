/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HARNESS_EXPORT_H
#define HARNESS_EXPORT_H

#define EXPORT_SYMBOL_GPL(name)	_Static_assert(1, #name)

#endif
