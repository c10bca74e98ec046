// SPDX-License-Identifier: GPL-2.0
/*
 * Does what must not be done. If the kernel that is to look for mistakes does
 * not complain about these, then its silence about spottimer means nothing.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *what = "";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "which mistake to make");

static DEFINE_MUTEX(canary_a);
static DEFINE_MUTEX(canary_b);
static DEFINE_SPINLOCK(canary_lock);

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

static void canary_list(void)
{
	LIST_HEAD(head);
	LIST_HEAD(entry);

	list_add(&entry, &head);
	list_add(&entry, &head);
}

static void canary_free(void)
{
	int *p = kmalloc(sizeof(*p), GFP_KERNEL);

	kfree(p);
	WRITE_ONCE(*p, 1);
}

static const struct {
	const char *what;
	void (*fn)(void);
} canaries[] = {
	{ "deadlock", canary_deadlock },
	{ "sleep", canary_sleep },
	{ "list", canary_list },
	{ "free", canary_free },
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
