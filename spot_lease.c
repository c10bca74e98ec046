// SPDX-License-Identifier: GPL-2.0
/*
 * Leases: may this timer run now?
 *
 * A lease is a deadline on a clock that counts suspend, and everything else
 * follows from comparing it with the time: no list of timers is kept, none is
 * touched when a lease is granted, renewed or ends, and it does not matter
 * whether the owner or this code was running when the deadline came.
 *
 * The deadline is one atomic. Whoever first sees that it has come replaces it
 * by SPOT_LEASE_ENDED, and from then on the lease has ended for everybody: a
 * renewal that is just under way either gets there first, and the one that
 * would refuse a tick looks again, or finds that it is too late. So no tick is
 * ever refused under a lease that goes on.
 *
 * The lease's timer tells its user that it has lapsed. It is not moved when the
 * lease is renewed: it fires at the old deadline, finds that there is another,
 * and waits for that.
 */
#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "spot_lease.h"

/* What the deadline is after the end: it was seen to have come, or revoked. */
#define SPOT_LEASE_ENDED	S64_MIN
#define SPOT_LEASE_REVOKED	(S64_MIN + 1)

/**
 * spot_lease_admit - may a timer of this lease run?
 * @lease: the lease
 * @now: the time, CLOCK_BOOTTIME
 *
 * Any context.
 *
 * Return: whether it may. Once the answer is no, it is no until the next grant.
 */
bool spot_lease_admit(struct spot_lease *lease, s64 now)
{
	s64 deadline = atomic64_read_acquire(&lease->deadline);

	while (now >= deadline && deadline > SPOT_LEASE_REVOKED)
		if (atomic64_try_cmpxchg(&lease->deadline, &deadline,
					 SPOT_LEASE_ENDED))
			return false;
	return now < deadline;
}
EXPORT_SYMBOL_GPL(spot_lease_admit);

/* The lease has ended, and its timer does not run, or this is it. */
static void spot_lease_tell(struct spot_lease *lease)
{
	if (!lease->told && lease->lapsed)
		lease->lapsed(lease);
	lease->told = true;
}

static void spot_lease_arm(struct spot_lease *lease, s64 deadline)
{
	const struct spot_schedule when = {
		.first = max(deadline, 0),
		.max = SPOT_SKIP_LATE,
	};

	spot_timer_start(&lease->timer, &when);
}

static enum spot_verdict spot_lease_expire(struct spot_timer *timer,
					   const struct spot_tick *tick)
{
	struct spot_lease *lease = container_of(timer, struct spot_lease, timer);
	s64 deadline;

	spot_lease_admit(lease, spot_clock_now(SPOT_BOOTTIME));
	deadline = atomic64_read(&lease->deadline);
	/* renewed; one to an earlier deadline, or the end, may come in between */
	while (deadline > SPOT_LEASE_REVOKED) {
		s64 armed = deadline;

		spot_lease_arm(lease, armed);
		deadline = atomic64_read(&lease->deadline);
		if (deadline == armed)
			return SPOT_DONE;
	}
	/* who ends it may have cancelled before we started it again */
	spot_timer_cancel(timer, 0, NULL);
	/* one that is being revoked has not run out, as far as we know */
	if (deadline == SPOT_LEASE_ENDED)
		spot_lease_tell(lease);
	return SPOT_DONE;
}

/**
 * spot_lease_init - make a lease that has ended
 * @lease: the lease
 * @lapsed: see struct spot_lease
 */
void spot_lease_init(struct spot_lease *lease,
		     void (*lapsed)(struct spot_lease *lease))
{
	unsigned int clock;

	atomic64_set(&lease->deadline, SPOT_LEASE_ENDED);
	lease->epoch = 0;
	lease->void_epoch = 0;
	lease->told = true;
	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
		lease->void_until[clock] = S64_MIN;
	lease->lapsed = lapsed;
	spot_timer_setup(&lease->timer, spot_lease_expire, SPOT_BOOTTIME, 0);
}
EXPORT_SYMBOL_GPL(spot_lease_init);

/**
 * spot_lease_grant - begin an epoch
 * @lease: the lease, new or revoked
 * @epoch: larger than the last one; the caller has checked
 * @deadline: CLOCK_BOOTTIME nanoseconds
 * @live: what spot_lease_revoke() said
 *
 * Timers that are under the lease go on under it, the held ones once they are
 * resumed. If it was not live, what they missed since is void.
 *
 * Context: bottom halves may be disabled, no batch.
 */
void spot_lease_grant(struct spot_lease *lease, u64 epoch, s64 deadline,
		      bool live)
{
	unsigned int clock;

	if (!live && lease->epoch) {
		lease->void_epoch = lease->epoch;
		for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
			lease->void_until[clock] = spot_clock_now(clock);
	}
	lease->told = false;
	lease->epoch = epoch;
	atomic64_set_release(&lease->deadline, deadline);
	spot_lease_arm(lease, deadline);
}
EXPORT_SYMBOL_GPL(spot_lease_grant);

/**
 * spot_lease_renew - move the deadline
 * @lease: the lease
 * @deadline: CLOCK_BOOTTIME nanoseconds
 *
 * Costs the same whatever the number of timers (contract G5). Context: bottom
 * halves may be disabled, no batch.
 *
 * Return: 0, or -EKEYEXPIRED if the old deadline has come.
 */
int spot_lease_renew(struct spot_lease *lease, s64 deadline)
{
	s64 old = atomic64_read(&lease->deadline);

	do {
		if (!spot_lease_admit(lease, spot_clock_now(SPOT_BOOTTIME)))
			return -EKEYEXPIRED;
	} while (!atomic64_try_cmpxchg(&lease->deadline, &old, deadline));

	if (deadline < old)
		spot_lease_arm(lease, deadline);
	return 0;
}
EXPORT_SYMBOL_GPL(spot_lease_renew);

/**
 * spot_lease_revoke - end a lease now
 * @lease: the lease; its @lapsed function does not run any more on return. If
 *	the lease has run out, and that was not told yet, it is now.
 *
 * Context: process, with no lock held that @lapsed takes; may spin until a pass
 * has ended; no batch.
 *
 * Return: whether the deadline had not come yet.
 */
bool spot_lease_revoke(struct spot_lease *lease)
{
	s64 now = spot_clock_now(SPOT_BOOTTIME);
	bool live = now < atomic64_xchg(&lease->deadline, SPOT_LEASE_REVOKED);

	spot_timer_cancel_sync(&lease->timer, 0, NULL);
	if (!live) {
		local_bh_disable();
		spot_lease_tell(lease);
		local_bh_enable();
	}
	lease->told = true;
	return live;
}
EXPORT_SYMBOL_GPL(spot_lease_revoke);
