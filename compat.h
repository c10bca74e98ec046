/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that are supported, in this one place.
 */
#ifndef SPOT_COMPAT_H
#define SPOT_COMPAT_H

#include <linux/hrtimer.h>

/* static stubs for tests, from 6.3 */
#ifdef SPOT_NO_STATIC_STUB
#define KUNIT_STATIC_STUB_REDIRECT(fn, args...)	((void)(fn))
#else
#include <kunit/static_stub.h>
#endif

/* hrtimer_setup() replaces hrtimer_init(), from 6.13 */
#ifdef SPOT_NO_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

#endif /* SPOT_COMPAT_H */
