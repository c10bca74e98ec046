// SPDX-License-Identifier: GPL-2.0
/*
 * A hierarchical timing wheel with exact deadlines.
 *
 * Time is counted in wheel ticks. An entry's *target* is the first wheel tick
 * at or after its deadline, but never one that was already processed. Read a
 * target as a number with one digit of SPOT_WHEEL_BITS bits per level: the
 * entry waits at the level of the highest digit in which its target differs
 * from the tick last processed, in the slot of that digit.
 *
 *   level  one slot holds     range                 (64 slots, 1 ms ticks)
 *     0    1 tick             64 ms
 *     1    64 ticks           4 s
 *     2    4096 ticks         4 min
 *     3    2^18 ticks         4 h
 *     4    2^24 ticks         12 days
 *     5    2^30 ticks         2 years
 *     6    2^36 ticks         139 years
 *     7    2^42 ticks         to the end of ktime and beyond
 *   8..10  what is left of 64 bits
 *
 * So nothing wraps: a slot never holds entries of two turns, every occupied
 * slot lies ahead of the current digit of its level, and all that is at a
 * level comes before all that is at the next. The next event is therefore the
 * first slot of the lowest occupied level, found by two bit searches, however
 * far away it is: empty time costs nothing.
 *
 * When the start of a bucket above level 0 comes, its entries move down to
 * where their targets put them now (a *cascade*). At one tick only one bucket
 * can need that: the digits below the one that advances are zero, and slot 0
 * of a level is empty by construction. A cascade stops when the budget is
 * used up and goes on in the next call. Until it ends the tick before the
 * bucket's start stays the one last processed, so that an entry that arrives
 * meanwhile queues up behind those that were there before; and to make sure
 * that the bucket drains however fast entries arrive, each one that lands in
 * it moves two of them on.
 *
 * Entries of one target come out in the order in which they were added.
 */
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/prefetch.h>
#include <linux/types.h>

#include "spot_wheel.h"

/* levels that a 32-bit map can show, and slots that a 64-bit one can */
static_assert(SPOT_WHEEL_LEVELS <= 32);
static_assert(SPOT_WHEEL_SLOTS <= 64);

/**
 * spot_tick_len_init - prepare conversions from nanoseconds to wheel ticks
 * @tick: to be filled in
 * @ns: length of a wheel tick, at least 2
 *
 * Division by a constant d as a multiplication: with 2^(l-1) < d <= 2^l and
 * mult = floor(2^(63+l) / d) + 1, (n * mult) >> (63 + l) is n / d exactly for
 * every n below 2^63, because mult * d exceeds 2^(63+l) by no more than 2^l.
 */
void spot_tick_len_init(struct spot_tick_len *tick, u32 ns)
{
	unsigned int l = fls(ns - 1);
	u64 quot = 0, rem = 1;
	unsigned int i;

	/* long division of 2^(63+l), which does not fit any type, by ns */
	for (i = 0; i < 63 + l; i++) {
		rem <<= 1;
		quot <<= 1;
		if (rem >= ns) {
			rem -= ns;
			quot |= 1;
		}
	}

	tick->ns = ns;
	tick->mult = quot + 1;
	tick->shift = l - 1;
}

/* How many whole wheel ticks there are in @ns, which is below 2^63. */
static inline u64 spot_tick_count(const struct spot_tick_len *tick, u64 ns)
{
	return mul_u64_u64_shr(ns, tick->mult, 64) >> tick->shift;
}

/**
 * spot_tick_floor - the last wheel tick at or before a time
 * @tick: length of a wheel tick
 * @ns: the time; one before 0 counts as 0
 *
 * Return: the wheel tick.
 */
u64 spot_tick_floor(const struct spot_tick_len *tick, s64 ns)
{
	return likely(ns > 0) ? spot_tick_count(tick, ns) : 0;
}

/**
 * spot_tick_ceil - the first wheel tick at or after a time
 * @tick: length of a wheel tick
 * @ns: the time; one before 0 counts as 0
 *
 * Return: the wheel tick.
 */
u64 spot_tick_ceil(const struct spot_tick_len *tick, s64 ns)
{
	return likely(ns > 0) ? spot_tick_count(tick, (u64)ns - 1) + 1 : 0;
}

/**
 * spot_wheel_init - make an empty wheel
 * @w: the wheel
 * @tick: length of a wheel tick
 * @now: the wheel tick to start after
 */
void spot_wheel_init(struct spot_wheel *w, const struct spot_tick_len *tick,
		     u64 now)
{
	unsigned int i;

	w->tick = *tick;
	w->processed = now;
	w->until = now;
	w->cascading = 0;
	w->levels = 0;
	w->opened = 0;
	w->cascaded = 0;
	for (i = 0; i < SPOT_WHEEL_LEVELS; i++)
		w->slots[i] = 0;
	INIT_LIST_HEAD(&w->due);
	INIT_LIST_HEAD(&w->later);
	for (i = 0; i < SPOT_WHEEL_LEVELS * SPOT_WHEEL_SLOTS; i++)
		INIT_LIST_HEAD(&w->bucket[i]);
}

/* Of @low to @high, the wheel tick that ends in the most zero bits. */
static u64 spot_wheel_roundest(u64 low, u64 high)
{
	return high & ~((1ULL << (fls64((low - 1) ^ high) - 1)) - 1);
}

/* When @e may come out: the roundest wheel tick that its slack allows. */
static inline u64 spot_wheel_target(const struct spot_wheel *w,
				    const struct spot_wheel_entry *e)
{
	u64 low = spot_tick_ceil(&w->tick, e->deadline);

	if (likely(!e->slack) || !low)
		return low;
	return spot_wheel_roundest(low, low + e->slack);
}

/*
 * File @e where @target belongs once @processed is the last tick processed.
 * Returns the wheel tick at which its bucket starts.
 */
static __always_inline u64 spot_wheel_place(struct spot_wheel *w,
					    struct spot_wheel_entry *e,
					    u64 target, u64 processed)
{
	/* the last bit has no part in the level, and spares the case of 0 */
	unsigned int top = __fls((target ^ processed) | 1);
	unsigned int level = top / SPOT_WHEEL_BITS;
	unsigned int shift = level * SPOT_WHEEL_BITS;
	u64 start = target >> shift;
	unsigned int slot = start % SPOT_WHEEL_SLOTS;
	unsigned int index = level * SPOT_WHEEL_SLOTS + slot;

	if (spot_entry_link(e, &w->bucket[index])) {
		w->slots[level] |= 1ULL << slot;
		w->levels |= 1U << level;
	}
	return start << shift;
}

/* The list @head has run empty; if it is a bucket, its bit must go. */
static void spot_wheel_emptied(struct spot_wheel *w, struct list_head *head)
{
	unsigned int index, level;

	if (head == &w->due || head == &w->later)
		return;
	index = head - w->bucket;
	level = index / SPOT_WHEEL_SLOTS;
	w->slots[level] &= ~(1ULL << (index % SPOT_WHEEL_SLOTS));
	if (!w->slots[level])
		w->levels &= ~(1U << level);
}

/* Move all of the bucket @from to the end of @to. */
static void spot_wheel_empty(struct spot_wheel *w, struct list_head *from,
			     struct list_head *to)
{
	if (list_empty(from))
		return;
	list_splice_tail_init(from, to);
	spot_wheel_emptied(w, from);
}

/* The bucket at @level that starts with the tick after the one processed. */
static struct list_head *spot_wheel_starting(struct spot_wheel *w,
					     unsigned int level)
{
	unsigned int slot = ((w->processed + 1) >> (level * SPOT_WHEEL_BITS)) &
			    (SPOT_WHEEL_SLOTS - 1);

	return &w->bucket[level * SPOT_WHEEL_SLOTS + slot];
}

/*
 * Move up to *@budget entries down from the bucket that is being cascaded.
 * True if it is empty now.
 */
static bool spot_wheel_cascade(struct spot_wheel *w, unsigned int *budget)
{
	struct list_head *from = spot_wheel_starting(w, w->cascading);
	struct list_head *at = from->next;
	u64 tick = w->processed + 1;
	unsigned int left = *budget;

	if (at == from)
		return true;

	while (at != from && left) {
		struct spot_wheel_entry *e;
		u64 target;

		e = list_entry(at, struct spot_wheel_entry, link);
		at = at->next;
		target = spot_wheel_target(w, e);
		if (target < tick)
			target = tick;
		spot_wheel_place(w, e, target, tick);
		left--;
	}
	w->cascaded += *budget - left;
	*budget = left;

	/* those before @at have gone to other buckets */
	if (at != from) {
		from->next = at;
		at->prev = from;
		return false;
	}
	INIT_LIST_HEAD(from);
	spot_wheel_emptied(w, from);
	return true;
}

/* The uncommon ways of adding an entry: late, or in an advance or a cascade. */
static noinline u64 spot_wheel_add_slow(struct spot_wheel *w,
					struct spot_wheel_entry *e, u64 target)
{
	unsigned int budget = 2;
	u64 start;

	if (target <= w->until) {
		/* or else one that adds itself again and again would stop time */
		if (w->until != w->processed) {
			spot_entry_link(e, &w->later);
			return w->processed + 1;
		}
		target = w->processed + 1;
	}
	start = spot_wheel_place(w, e, target, w->processed);
	if (!w->cascading)
		return start;

	spot_wheel_cascade(w, &budget);
	return w->processed + 1;
}

/**
 * spot_wheel_add - let an entry wait for its deadline
 * @w: the wheel
 * @e: the entry, not in a wheel, its deadline and slack set
 *
 * Return: the wheel tick at which the wheel must be looked at for this entry:
 * its target, or an earlier one at which it cascades. It is after the one last
 * processed.
 */
u64 spot_wheel_add(struct spot_wheel *w, struct spot_wheel_entry *e)
{
	u64 target = spot_wheel_target(w, e);

	if (unlikely(target <= w->until || w->cascading))
		return spot_wheel_add_slow(w, e, target);
	return spot_wheel_place(w, e, target, w->processed);
}

/**
 * spot_wheel_remove - take an entry out of the wheel
 * @w: the wheel that it is in
 * @e: the entry
 */
void spot_wheel_remove(struct spot_wheel *w, struct spot_wheel_entry *e)
{
	struct list_head *prev = e->link.prev;

	if (spot_entry_unlink(e))
		spot_wheel_emptied(w, prev);
}

/* When the first bucket that holds something begins; no cascade is open. */
static u64 spot_wheel_first_tick(const struct spot_wheel *w)
{
	unsigned int level = __ffs(w->levels);
	unsigned int shift = level * SPOT_WHEEL_BITS;
	u64 turn = w->processed >> shift >> SPOT_WHEEL_BITS << SPOT_WHEEL_BITS;

	return (turn | __ffs(w->slots[level])) << shift;
}

/**
 * spot_wheel_next - when there will be something to do
 * @w: the wheel
 * @tick: where to put the wheel tick; it is not after any entry's target, and
 *	may have gone by
 *
 * Return: false if the wheel is empty.
 */
bool spot_wheel_next(const struct spot_wheel *w, u64 *tick)
{
	if (!list_empty(&w->due) || !list_empty(&w->later) ||
	    (w->cascading && w->levels)) {
		*tick = w->processed;
		return true;
	}
	if (!w->levels)
		return false;
	*tick = spot_wheel_first_tick(w);
	return true;
}

/**
 * spot_wheel_forward - skip empty time
 * @w: the wheel
 * @now: the current wheel tick
 *
 * Without this a wheel that slept would give a deadline that is past a target
 * that is past as well. Does nothing while something is due.
 */
void spot_wheel_forward(struct spot_wheel *w, u64 now)
{
	u64 next;

	if (now <= w->processed)
		return;
	if (spot_wheel_next(w, &next) && next <= now)
		return;
	/* a cascade may have been left without entries */
	w->cascading = 0;
	w->processed = now;
	w->until = now;
}

/**
 * spot_wheel_rewind - follow a clock that was set back
 * @w: the wheel
 * @now: the current wheel tick
 *
 * What waits above the highest digit in which @now differs from the tick last
 * processed is where it belongs still. What waits below has that digit in
 * common with the latter, and so goes into one bucket, unseen. Only what was
 * due, or would have been at the next tick, may have been late already and has
 * to be placed one by one: it is due again, for its owner to look at and add.
 *
 * Does nothing during an advance, and where @now is not before the tick last
 * processed.
 */
void spot_wheel_rewind(struct spot_wheel *w, u64 now)
{
	u64 last = w->processed;
	unsigned int level, slot;
	struct list_head *into;

	if (now >= last || w->until != last)
		return;

	level = __fls(last ^ (last + 1)) / SPOT_WHEEL_BITS;
	if (w->cascading) {
		level = w->cascading;
		last++;
	}
	/* if there are any, a cascade has moved them, as the first of its bucket */
	spot_wheel_empty(w, &w->bucket[last & (SPOT_WHEEL_SLOTS - 1)], &w->due);
	spot_wheel_empty(w, spot_wheel_starting(w, level), &w->due);
	w->cascading = 0;

	level = __fls(last ^ now) / SPOT_WHEEL_BITS;
	slot = (last >> (level * SPOT_WHEEL_BITS)) & (SPOT_WHEEL_SLOTS - 1);
	into = &w->bucket[level * SPOT_WHEEL_SLOTS + slot];
	while (w->levels & (BIT(level) - 1)) {
		unsigned int from = __ffs(w->levels);

		spot_wheel_empty(w, &w->bucket[from * SPOT_WHEEL_SLOTS +
					       __ffs(w->slots[from])], into);
	}
	if (!list_empty(into)) {
		w->slots[level] |= 1ULL << slot;
		w->levels |= 1U << level;
	}
	w->processed = now;
	w->until = now;
}

/* Advance to the next wheel tick that has something due; false if none has. */
static bool spot_wheel_advance(struct spot_wheel *w, u64 now,
			       unsigned int *budget)
{
	unsigned int level;
	u64 next;

	while (list_empty(&w->due)) {
		if (w->cascading) {
			if (!spot_wheel_cascade(w, budget))
				return false;
			w->cascading = 0;
			w->processed++;
		}

		next = w->levels ? spot_wheel_first_tick(w) : 0;
		if (!w->levels || next > now) {
			if (now > w->processed)
				w->processed = now;
			return false;
		}

		w->opened++;
		level = __ffs(w->levels);
		if (level) {
			w->processed = next - 1;
			w->cascading = level;
		} else {
			struct list_head *bucket =
				&w->bucket[next & (SPOT_WHEEL_SLOTS - 1)];

			w->processed = next;
			spot_wheel_empty(w, bucket, &w->due);
		}
	}
	return true;
}

/* The advance has ended: what was put off until then gets its place. */
static noinline void spot_wheel_settle(struct spot_wheel *w)
{
	struct spot_wheel_entry *e;
	struct list_head later;

	w->until = w->processed;
	INIT_LIST_HEAD(&later);
	list_splice_init(&w->later, &later);
	while (!list_empty(&later)) {
		e = list_first_entry(&later, struct spot_wheel_entry, link);
		spot_entry_unlink(e);
		spot_wheel_add(w, e);
	}
}

/**
 * spot_wheel_expire - advance the wheel, up to one entry that is due
 * @w: the wheel
 * @now: the current wheel tick
 * @budget: entries that may be moved or taken out; counted down
 *
 * To be called until it returns NULL, which ends the advance. Entries come in
 * the order of their targets. One that is added meanwhile is not among them:
 * if it is due by @now it gets its target when the advance ends.
 *
 * Return: an entry whose target is not after @now, taken out of the wheel, or
 * NULL if there is none or the budget is used up. If the clock was set back,
 * what was due before may come as well; its owner looks at the deadline.
 */
struct spot_wheel_entry *spot_wheel_expire(struct spot_wheel *w, u64 now,
					   unsigned int *budget)
{
	struct spot_wheel_entry *e;

	if ((list_empty(&w->due) && !spot_wheel_advance(w, now, budget)) ||
	    !*budget) {
		spot_wheel_settle(w);
		return NULL;
	}
	if (w->until < now)
		w->until = now;
	(*budget)--;
	e = list_first_entry(&w->due, struct spot_wheel_entry, link);
	/* the next one is written to now; let the one after it come meanwhile */
	prefetchw(e->link.next->next);
	spot_entry_unlink(e);
	return e;
}

/**
 * spot_wheel_first - any entry of the wheel, those that are due first
 * @w: the wheel
 *
 * For emptying a wheel: within a bucket, entries come in order.
 *
 * Return: the entry, still in the wheel, or NULL if it is empty.
 */
struct spot_wheel_entry *spot_wheel_first(const struct spot_wheel *w)
{
	const struct list_head *head = &w->due;

	if (list_empty(head)) {
		unsigned int level, slot;

		if (!w->levels)
			return NULL;
		level = __ffs(w->levels);
		slot = __ffs(w->slots[level]);
		head = &w->bucket[level * SPOT_WHEEL_SLOTS + slot];
	}
	return list_first_entry(head, struct spot_wheel_entry, link);
}
