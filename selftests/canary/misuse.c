// SPDX-License-Identifier: GPL-2.0
/*
 * Does with a timer of spottimer's what its users must not do. A kernel that
 * watches over the lives of objects has to complain.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "spot_timer.h"

static char *what = "";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "start: without having set it up; free: while it lives");

static enum spot_verdict misuse_fn(struct spot_timer *timer,
				   const struct spot_tick *tick)
{
	return SPOT_DONE;
}

static int __init misuse_init(void)
{
	const struct spot_schedule when = { .first = KTIME_MAX };
	struct spot_timer *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return -ENOMEM;
	if (!strcmp(what, "free"))
		spot_timer_setup(timer, misuse_fn, SPOT_MONOTONIC, 0);
	spot_timer_start(timer, &when);
	if (!strcmp(what, "free"))
		kfree(timer);
	return 0;
}

static void __exit misuse_exit(void)
{
}

module_init(misuse_init);
module_exit(misuse_exit);

MODULE_DESCRIPTION("mistakes in the use of spottimer, made on purpose");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "SPOTTIMER");
