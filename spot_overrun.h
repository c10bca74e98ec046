/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which nominal tick a record stands for: the overrun policies as arithmetic.
 *
 * Pure functions on numbers; the caller serialises. See spot_overrun.c.
 */
#ifndef SPOT_OVERRUN_H
#define SPOT_OVERRUN_H

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

void spot_overrun_init(struct spot_overrun *o, u64 period, u32 max);
void spot_overrun_take(struct spot_overrun *o, s64 *due, s64 now,
		       struct spot_tick *tick);
void spot_overrun_complete(struct spot_overrun *o, s64 *due, s64 now);
bool spot_overrun_skip(struct spot_overrun *o, s64 *due, s64 until);

#endif /* SPOT_OVERRUN_H */
