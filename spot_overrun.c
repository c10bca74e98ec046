// SPDX-License-Identifier: GPL-2.0
/*
 * Which nominal tick a record stands for: the overrun policies as arithmetic.
 *
 * Nominal tick n of a timer is due at first + (n - 1) * period. Only the next
 * one's number and due time are kept. However late a record is taken, one
 * division says how many more ticks have come due, and nothing is counted tick
 * by tick; if none has, which is the usual case, there is not even that.
 *
 * Times are nanoseconds from 0 to S64_MAX. A due time that would lie beyond
 * saturates there: ktime never gets that far.
 */
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>

#include "spot_overrun.h"

/* Make the nominal tick @n ticks after the next one, due by then, the next. */
static void spot_overrun_step(struct spot_overrun *o, s64 *due, u64 n)
{
	o->next += n;
	*due += n * o->period;
}

/**
 * spot_overrun_catch_up - begin or go on with a catch-up
 * @o: the timer's progress
 * @due: due time of the next nominal tick
 * @late: how long ago that was
 *
 * One opens when more than one tick is due. It covers the ticks due at that
 * moment, so that one that stays behind still ends (contract D3).
 */
void spot_overrun_catch_up(struct spot_overrun *o, s64 *due, u64 late)
{
	u64 more;

	if (o->left) {
		o->left--;
		return;
	}
	if (o->max == SPOT_DELAY_NEXT)
		return;

	more = div64_u64(late, o->period);
	if (more >= o->max) {
		spot_overrun_step(o, due, more - (o->max - 1));
		more = o->max - 1;
	}
	o->left = more;
}
EXPORT_SYMBOL_GPL(spot_overrun_catch_up);

/**
 * spot_overrun_complete - the handler of the last record has ended
 * @o: the timer's progress
 * @due: due time of the next nominal tick; SPOT_DELAY_NEXT counts it from here
 * @now: the time
 */
void spot_overrun_complete(struct spot_overrun *o, s64 *due, s64 now)
{
	if (o->max == SPOT_DELAY_NEXT)
		*due = spot_due_add(now, o->period);
}
EXPORT_SYMBOL_GPL(spot_overrun_complete);

/**
 * spot_overrun_skip - pass over the ticks that were due up to a time
 * @o: the timer's progress
 * @due: due time of the next nominal tick; after @until on return
 * @until: the time
 *
 * Where missed ticks have no number (SPOT_DELAY_NEXT), the next tick is just
 * put off to one period after @until.
 *
 * Return: false if no tick is left.
 */
bool spot_overrun_skip(struct spot_overrun *o, s64 *due, s64 until)
{
	if (*due > until)
		return true;
	if (!o->period)
		return false;

	o->left = 0;
	if (o->max == SPOT_DELAY_NEXT) {
		*due = spot_due_add(until, o->period);
		return true;
	}
	spot_overrun_step(o, due, div64_u64(until - *due, o->period));
	o->next++;
	*due = spot_due_add(*due, o->period);
	return true;
}
EXPORT_SYMBOL_GPL(spot_overrun_skip);
