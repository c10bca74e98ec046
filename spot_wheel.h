/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A hierarchical timing wheel with exact deadlines.
 *
 * Pure bookkeeping: no clock, no lock, no CPU. The owner of a wheel serialises
 * the calls and says what time it is. See spot_wheel.c for how it works.
 */
#ifndef SPOT_WHEEL_H
#define SPOT_WHEEL_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/types.h>

/* Slots per level: 64 as shipped; tests compile the wheel with 8 as well. */
#ifndef SPOT_WHEEL_BITS
#define SPOT_WHEEL_BITS		6
#endif
#define SPOT_WHEEL_SLOTS	BIT(SPOT_WHEEL_BITS)
/* Enough levels for every 64-bit wheel tick: there is no horizon. */
#define SPOT_WHEEL_LEVELS	((64 + SPOT_WHEEL_BITS - 1) / SPOT_WHEEL_BITS)

/**
 * struct spot_tick_len - the length of a wheel tick
 * @ns: nanoseconds, 2 to 2^32 - 1
 * @mult: reciprocal of @ns, see spot_tick_len_init()
 * @shift: goes with @mult
 */
struct spot_tick_len {
	u64 ns;
	u64 mult;
	unsigned int shift;
};

/**
 * struct spot_wheel_entry - what waits in a wheel
 * @link: place in a bucket; free for its owner while not in the wheel
 * @deadline: nanoseconds; the entry never comes out before
 * @slack: wheel ticks by which it may come out later, to share wake-ups
 * @user: not the wheel's; its owner keeps flags here
 */
struct spot_wheel_entry {
	struct list_head link;
	s64 deadline;
	u32 slack;
	u32 user;
};

/*
 * list_add_tail() and list_del() without the calls that CONFIG_DEBUG_LIST, which
 * distributions set, makes of them: with these, to add and remove an entry takes
 * two and a half times the instructions. The lists of timer_list have none, too.
 * A kernel with KASAN is for finding mistakes, and has them.
 */

/**
 * spot_entry_link - put an entry at the end of a list
 * @e: the entry
 * @head: the list
 *
 * Return: true if the list was empty.
 */
static inline bool spot_entry_link(struct spot_wheel_entry *e,
				   struct list_head *head)
{
	struct list_head *last = head->prev;

#ifdef CONFIG_KASAN
	list_add_tail(&e->link, head);
#else
	e->link.next = head;
	e->link.prev = last;
	last->next = &e->link;
	head->prev = &e->link;
#endif
	return last == head;
}

/**
 * spot_entry_unlink - take an entry out of its list
 * @e: the entry
 *
 * Return: true if the list is empty now.
 */
static inline bool spot_entry_unlink(struct spot_wheel_entry *e)
{
	struct list_head *prev = e->link.prev;
	struct list_head *next = e->link.next;

#ifdef CONFIG_KASAN
	list_del(&e->link);
#else
	__list_del(prev, next);
#endif
	return prev == next;
}

/**
 * struct spot_wheel - a wheel
 * @bucket: the buckets, level by level
 * @tick: length of a wheel tick
 * @processed: the last wheel tick that was processed
 * @until: while an advance is under way the wheel tick that it goes to
 * @cascading: level of the bucket that is being cascaded, 0 for none
 * @levels: bit n is set where level n holds something
 * @slots: per level, bit n is set where slot n holds something
 * @opened: buckets opened so far, the steps of advancing
 * @cascaded: entries moved down by cascades so far
 * @due: entries whose wheel tick has been processed, still to be taken out
 * @later: entries added during an advance that it would pass by, for its end
 */
struct spot_wheel {
	struct list_head bucket[SPOT_WHEEL_LEVELS * SPOT_WHEEL_SLOTS];
	struct spot_tick_len tick;
	u64 processed;
	u64 until;
	unsigned int cascading;
	u32 levels;
	u64 slots[SPOT_WHEEL_LEVELS];
	u64 opened;
	u64 cascaded;
	struct list_head due;
	struct list_head later;
};

void spot_tick_len_init(struct spot_tick_len *tick, u32 ns);
u64 spot_tick_floor(const struct spot_tick_len *tick, s64 ns);
u64 spot_tick_ceil(const struct spot_tick_len *tick, s64 ns);

void spot_wheel_init(struct spot_wheel *w, const struct spot_tick_len *tick,
		     u64 now);
u64 spot_wheel_add(struct spot_wheel *w, struct spot_wheel_entry *e);
void spot_wheel_remove(struct spot_wheel *w, struct spot_wheel_entry *e);
bool spot_wheel_next(const struct spot_wheel *w, u64 *tick);
void spot_wheel_forward(struct spot_wheel *w, u64 now);
void spot_wheel_rewind(struct spot_wheel *w, u64 now);
struct spot_wheel_entry *spot_wheel_expire(struct spot_wheel *w, u64 now,
					   unsigned int *budget);
struct spot_wheel_entry *spot_wheel_first(const struct spot_wheel *w);

#endif /* SPOT_WHEEL_H */
