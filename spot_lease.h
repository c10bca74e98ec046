/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Leases: may this timer run now?
 */
#ifndef SPOT_LEASE_H
#define SPOT_LEASE_H

#include <linux/atomic.h>
#include <linux/types.h>

#include "spot_timer.h"

/**
 * struct spot_lease - the right of an owner's timers to run
 * @deadline: CLOCK_BOOTTIME nanoseconds from which on nothing runs; before all
 *	time once it was seen to have come, or the lease was revoked
 * @epoch: the fencing token
 * @void_epoch: of timers that were started in this epoch or an earlier one
 * @void_until: (per clock) those ticks do not count that were due by then: they
 *	were missed before the lease was adopted
 * @timer: notices when the deadline comes
 * @told: @lapsed was called for the last grant, or need not be
 * @lapsed: called when the deadline has come, once per grant and before the
 *	next one, with bottom halves disabled; may be NULL
 *
 * Changes are the owner's to serialise; spot_lease_admit() needs no lock. Must
 * be freed by way of RCU, after spot_lease_revoke().
 */
struct spot_lease {
	atomic64_t deadline;
	u64 epoch;
	u64 void_epoch;
	s64 void_until[SPOT_NR_CLOCKS];
	struct spot_timer timer;
	bool told;
	void (*lapsed)(struct spot_lease *lease);
};

void spot_lease_init(struct spot_lease *lease,
		     void (*lapsed)(struct spot_lease *lease));
void spot_lease_grant(struct spot_lease *lease, u64 epoch, s64 deadline,
		      bool live);
int spot_lease_renew(struct spot_lease *lease, s64 deadline);
bool spot_lease_revoke(struct spot_lease *lease);
bool spot_lease_admit(struct spot_lease *lease, s64 now);

#endif /* SPOT_LEASE_H */
