/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doubly linked lists with the kernel's names. Removing an entry checks the links
 * of its neighbours: one that is removed twice ends the program. Not so with
 * LIST_UNCHECKED, for measurements.
 */
#ifndef HARNESS_LINUX_LIST_H
#define HARNESS_LINUX_LIST_H

#include <stdio.h>
#include <stdlib.h>

#include <linux/types.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define list_entry(ptr, type, member)	container_of(ptr, type, member)
#define list_first_entry(head, type, member) \
	list_entry((head)->next, type, member)

static inline void list_check(bool good, const char *what)
{
#ifdef LIST_UNCHECKED
	return;
#endif
	if (good)
		return;
	fflush(stdout);
	fprintf(stderr, "list corrupted: %s\n", what);
	abort();
}

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_join(struct list_head *prev, struct list_head *next)
{
	prev->next = next;
	next->prev = prev;
}

/* Join the neighbours of an entry that is removed. */
static inline void __list_del(struct list_head *prev, struct list_head *next)
{
	list_check(prev->next == next->prev && prev->next != next,
		   "the removed entry's neighbours");
	list_join(prev, next);
}

/* Move all of @list to the front of @head. */
static inline void list_splice_init(struct list_head *list,
				    struct list_head *head)
{
	if (list_empty(list))
		return;
	list_join(list->prev, head->next);
	list_join(head, list->next);
	INIT_LIST_HEAD(list);
}

/* Move all of @list to the end of @head. */
static inline void list_splice_tail_init(struct list_head *list,
					 struct list_head *head)
{
	list_splice_init(list, head->prev);
}

#endif
