// SPDX-License-Identifier: GPL-2.0
/*
 * Does what must not be done. If the kernel that is to look for mistakes does
 * not complain about these, then its silence about spottimer means nothing.
 */
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *what = "";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "which mistake to make");

static DEFINE_MUTEX(canary_a);
static DEFINE_MUTEX(canary_b);
static DEFINE_SPINLOCK(canary_lock);
static int canary_sum;

static void canary_deadlock(void)
{
	mutex_lock(&canary_a);
	mutex_lock(&canary_b);
	mutex_unlock(&canary_b);
	mutex_unlock(&canary_a);

	mutex_lock(&canary_b);
	mutex_lock(&canary_a);
	mutex_unlock(&canary_a);
	mutex_unlock(&canary_b);
}

static void canary_sleep(void)
{
	spin_lock(&canary_lock);
	mutex_lock(&canary_a);
	mutex_unlock(&canary_a);
	spin_unlock(&canary_lock);
}

/* More than fits: the number of bits is not known when this is compiled. */
static void canary_shift(void)
{
	int bits = 77;

	OPTIMIZER_HIDE_VAR(bits);
	canary_sum = 1 << bits;
}

static void canary_list(void)
{
	LIST_HEAD(head);
	LIST_HEAD(entry);

	list_add(&entry, &head);
	list_add(&entry, &head);
}

static void canary_fn(struct timer_list *timer)
{
}

static void canary_object(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	timer_setup(timer, canary_fn, 0);
	mod_timer(timer, jiffies + HZ);
	kfree(timer);
}

static void canary_free(void)
{
	int *p = kmalloc(sizeof(*p), GFP_KERNEL);

	kfree(p);
	WRITE_ONCE(*p, 1);
}

static void canary_warn(void)
{
	WARN(1, "canary\n");
}

/* Some of them, since a stale pointer may lie somewhere. */
static void canary_leak(void)
{
	int i;

	for (i = 0; i < 10; i++) {
		void *p = kzalloc(100, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
}

static int canary_race_thread(void *unused)
{
	while (!kthread_should_stop()) {
		canary_sum++;
		cond_resched();
	}
	return 0;
}

static void canary_race(void)
{
	unsigned long end = jiffies + 2 * HZ;
	struct task_struct *thread;

	thread = kthread_run(canary_race_thread, NULL, "canary");
	if (IS_ERR(thread))
		return;
	while (time_before(jiffies, end)) {
		canary_sum++;
		cond_resched();
	}
	kthread_stop(thread);
}

static const struct {
	const char *what;
	void (*fn)(void);
} canaries[] = {
	{ "deadlock", canary_deadlock },
	{ "sleep", canary_sleep },
	{ "shift", canary_shift },
	{ "list", canary_list },
	{ "object", canary_object },
	{ "free", canary_free },
	{ "warn", canary_warn },
	{ "leak", canary_leak },
	{ "race", canary_race },
};

static int __init canary_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(canaries); i++)
		if (!strcmp(canaries[i].what, what))
			canaries[i].fn();
	return 0;
}

static void __exit canary_exit(void)
{
}

module_init(canary_init);
module_exit(canary_exit);

MODULE_DESCRIPTION("Mistakes that a debug kernel has to find");
MODULE_LICENSE("GPL");
