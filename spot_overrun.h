/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which nominal tick a record stands for: the overrun policies as arithmetic.
 *
 * Pure functions on numbers; the caller serialises. See spot_overrun.c.
 */
#ifndef SPOT_OVERRUN_H
#define SPOT_OVERRUN_H

#include <linux/limits.h>
#include <linux/types.h>

/* spot_overrun.max: the largest number of ticks per catch-up, or one of */
#define SPOT_DELAY_NEXT		0U
#define SPOT_SKIP_LATE		1U

/**
 * struct spot_overrun - the progress of one generation of a timer
 * @period: nanoseconds between nominal ticks, at most S64_MAX; 0: one tick
 * @next: nominal tick that is due next, the first being 1
 * @last: nominal tick of the last record, 0 before the first
 * @delivered: records taken so far
 * @max: most ticks per catch-up; SPOT_SKIP_LATE is a catch-up of one tick, and
 *	SPOT_DELAY_NEXT stands for a policy that has none
 * @left: ticks that the catch-up that is open still has to deliver
 *
 * The due time of @next is kept by the caller, who needs it to wait.
 */
struct spot_overrun {
	u64 period;
	u64 next;
	u64 last;
	u64 delivered;
	u32 max;
	u32 left;
};

/**
 * struct spot_tick - what a handler is told (contract C2-C4)
 * @delivery_index: which handler of this generation, from 1
 * @scheduled_index: which nominal tick, from 1
 * @skipped_ticks: nominal ticks since the last record's that have none
 * @generation: whose tick it is; not set here, but by the caller
 */
struct spot_tick {
	u64 delivery_index;
	u64 scheduled_index;
	u64 skipped_ticks;
	u64 generation;
};

/**
 * spot_overrun_init - begin a generation
 * @o: to be filled in
 * @period: see struct spot_overrun
 * @max: see struct spot_overrun
 */
static inline void spot_overrun_init(struct spot_overrun *o, u64 period,
				     u32 max)
{
	o->period = period;
	o->next = 1;
	o->last = 0;
	o->delivered = 0;
	o->max = max;
	o->left = 0;
}

void spot_overrun_catch_up(struct spot_overrun *o, s64 *due, u64 late);

/* @time + @period, not beyond the end of time */
static inline s64 spot_due_add(s64 time, u64 period)
{
	return period > (u64)(S64_MAX - time) ? S64_MAX : time + (s64)period;
}

/**
 * spot_overrun_take - take a record
 * @o: the timer's progress
 * @due: due time of the next nominal tick, at most @now; is set to that of the
 *	one after the record's
 * @now: the time
 * @tick: where to put the record
 */
static inline void spot_overrun_take(struct spot_overrun *o, s64 *due, s64 now,
				     struct spot_tick *tick)
{
	u64 late = now - *due;

	if (o->left || (o->period && late >= o->period))
		spot_overrun_catch_up(o, due, late);

	tick->delivery_index = ++o->delivered;
	tick->scheduled_index = o->next;
	tick->skipped_ticks = o->next - o->last - 1;
	o->last = o->next++;
	*due = spot_due_add(*due, o->period);
}

void spot_overrun_complete(struct spot_overrun *o, s64 *due, s64 now);
bool spot_overrun_skip(struct spot_overrun *o, s64 *due, s64 until);

#endif /* SPOT_OVERRUN_H */
