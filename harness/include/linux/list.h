/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doubly linked lists with the kernel's names, which check every link that
 * they touch: an entry that is removed twice, or added where it already is,
 * ends the program.
 */
#ifndef HARNESS_LINUX_LIST_H
#define HARNESS_LINUX_LIST_H

#include <stdio.h>
#include <stdlib.h>

#include <linux/types.h>

/* where a removed entry points: nowhere, and never at itself */
#define LIST_POISON	((struct list_head *)0x5107)

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define list_entry(ptr, type, member)	container_of(ptr, type, member)
#define list_first_entry(head, type, member) \
	list_entry((head)->next, type, member)

static inline void list_check(bool good, const char *what)
{
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

/* Unlike the others it checks nothing: the wheel's way where it is measured. */
static inline void __list_del(struct list_head *prev, struct list_head *next)
{
	list_join(prev, next);
}

static inline void list_add_tail(struct list_head *entry,
				 struct list_head *head)
{
	struct list_head *last = head->prev;

	list_check(last->next == head, "the head's neighbours");
	list_check(entry != head && entry != last, "added twice");
	list_join(last, entry);
	list_join(entry, head);
}

static inline void list_del(struct list_head *entry)
{
	list_check(entry->next != LIST_POISON && entry->prev != LIST_POISON,
		   "removed twice");
	list_check(entry->prev->next == entry && entry->next->prev == entry,
		   "the removed entry's neighbours");
	list_join(entry->prev, entry->next);
	entry->next = LIST_POISON;
	entry->prev = LIST_POISON;
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
