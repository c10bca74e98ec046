/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * spottimer - timers by the hundred thousand behind one file descriptor.
 *
 * open("/dev/spottimer") gives a *context*: a private set of timers, each
 * named by a 64-bit key. Timers are registered, cancelled, completed, leased
 * and queried by ioctl, many in one call; their ticks are taken with read()
 * and waited for with poll(). All state belongs to the open file: it may be
 * inherited or passed on, and ends with its last reference.
 *
 * Errors, of a call or of one entry of a batch. A refusal changes nothing.
 *
 *   EAGAIN       read: nothing to read and the file is non-blocking
 *   E2BIG        a structure is larger than this kernel knows and its unknown
 *                part is not zero
 *   EEXIST       SPOTTIMER_REG_EXCL, and the key has a timer
 *   EFAULT       memory could not be read or written; in an entry: it was worked
 *                on, but what became of it could not be written
 *   EINPROGRESS  cancel: accepted, takes effect when the handler completes
 *   EINTR        cancel: accepted, but a signal ended the wait; read: a
 *                signal came before the first record
 *   EINVAL       a value, flag, size or reserved field is not valid
 *   EKEYEXPIRED  the owner has no lease, or its lease has run out
 *   ENOENT       no such key or generation; complete: no handler runs
 *   ENOMEM       out of memory
 *   ENOSPC       a limit on timers or owners is reached
 *   ENOTTY       unknown ioctl
 *   EOPNOTSUPP   a clock that exists, but on which no timer can run here
 *   EPERM        SPOTTIMER_REG_CRITICAL without CAP_SYS_NICE
 *   ESTALE       a generation or an epoch that has been replaced; of a key that
 *                has a timer, any generation that is older
 */
#ifndef _UAPI_LINUX_SPOTTIMER_H
#define _UAPI_LINUX_SPOTTIMER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct spottimer_info - what this kernel offers (SPOTTIMER_IOC_INFO)
 * @features: 0; for what later kernels add
 * @tick_ns: length of a wheel tick in nanoseconds; a timer fires at the first
 *	wheel tick at or after its deadline
 * @max_timers: timers, and owners, that one context may hold; a key that has a
 *	timer may be registered again beyond it, and what was replaced while its
 *	handler runs counts until it ends
 * @max_user_timers: timers and owners that all contexts opened by one user may
 *	hold
 * @clocks: bit n is set where clock id n can be used
 * @record_size: size of struct spottimer_record
 * @ended: keys of a context of which the last generation that has ended is
 *	remembered, with its result; older ones are forgotten
 * @reserved: zero
 *
 * A caller that knows a longer structure finds the rest of it zeroed; a shorter
 * one than this is EINVAL.
 */
struct spottimer_info {
	__aligned_u64 features;
	__aligned_u64 tick_ns;
	__aligned_u64 max_timers;
	__aligned_u64 max_user_timers;
	__u32 clocks;
	__u32 record_size;
	__u32 ended;
	__u32 reserved;
};

/**
 * struct spottimer_batch - the argument of every ioctl that takes entries
 * @entries: address of the first entry
 * @count: number of entries, 1 to INT_MAX
 * @stride: bytes from one entry to the next, a multiple of 8 up to 4096: the
 *	size of the entry as the caller knows it
 * @flags: zero
 * @reserved: zero
 *
 * The entries are worked through in order, each with a result of its own in
 * its @error field (0 or a negative error number); one that fails does not
 * stop the others. The ioctl returns how many were worked through: fewer than
 * @count only if a signal or a fault came in between. It fails as a whole
 * (EINVAL, E2BIG, EFAULT, ENOMEM), having changed nothing, only if it could not
 * work on the first entry.
 * (Contract F6.)
 */
struct spottimer_batch {
	__aligned_u64 entries;
	__u32 count;
	__u32 stride;
	__u32 flags;
	__u32 reserved;
};

/**
 * enum spottimer_policy - what becomes of ticks that fall while a handler is
 *	late (contract D2-D4)
 * @SPOTTIMER_SKIP_LATE: one record, for the newest tick that is due
 * @SPOTTIMER_CATCH_UP: the missed ticks in order, at most @max_catch_up of
 *	them per catch-up, the older ones skipped
 * @SPOTTIMER_DELAY_NEXT: the next tick is due one period after completion
 */
enum spottimer_policy {
	SPOTTIMER_SKIP_LATE	= 0,
	SPOTTIMER_CATCH_UP	= 1,
	SPOTTIMER_DELAY_NEXT	= 2,
};

/* @first is an absolute time of @clock, not counted from now */
#define SPOTTIMER_REG_ABSTIME	0x1
/* fail with EEXIST where the key has a timer; neither REARM nor a generation */
#define SPOTTIMER_REG_EXCL	0x2
/* fail with ENOENT where the key has no timer */
#define SPOTTIMER_REG_REARM	0x4
/* the handler runs until SPOTTIMER_IOC_COMPLETE, not just until read() */
#define SPOTTIMER_REG_MANUAL	0x8
/* expired ahead of the budget, delivered ahead of others: CAP_SYS_NICE */
#define SPOTTIMER_REG_CRITICAL	0x10

/**
 * struct spottimer_register - register, replace or re-arm a timer
 * @key: the timer's name in this context
 * @generation: in: 0, or the generation that is to be replaced (ESTALE if the
 *	key is at a later one, ENOENT if it has no timer or is not that far);
 *	out: the new one, larger than any before it
 * @first: first due time in nanoseconds, from now or, with
 *	SPOTTIMER_REG_ABSTIME, on @clock; not negative. A time that is past is
 *	due at the next wheel tick.
 * @period: nanoseconds between nominal ticks; 0: one tick only
 * @slack: nanoseconds by which it may fire later, to share wake-ups
 * @cookie: given back in every record
 * @owner: 0, or the owner under whose lease the timer runs
 * @epoch: the current epoch of the owner's lease; 0 without an owner
 * @clock: CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME
 * @policy: enum spottimer_policy
 * @max_catch_up: for SPOTTIMER_CATCH_UP 1 to INT_MAX, 0 means 1; otherwise
 *	ignored
 * @flags: SPOTTIMER_REG_*
 * @error: out: 0, EINVAL, E2BIG, EOPNOTSUPP (clock), EPERM, EEXIST, ENOENT,
 *	ESTALE, EKEYEXPIRED, ENOSPC or ENOMEM
 * @reserved: zero
 *
 * A key that has a timer gets the new one in its place (contract B2): no
 * handler of the old generation starts after the call; one that is running
 * finishes first, and the new generation's first handler waits for it.
 */
struct spottimer_register {
	__aligned_u64 key;
	__aligned_u64 generation;
	__s64 first;
	__s64 period;
	__s64 slack;
	__aligned_u64 cookie;
	__aligned_u64 owner;
	__aligned_u64 epoch;
	__u32 clock;
	__u32 policy;
	__u32 max_catch_up;
	__u32 flags;
	__s32 error;
	__u32 reserved;
};

/* do not wait for a running handler: EINPROGRESS, and an END record later */
#define SPOTTIMER_CANCEL_NOWAIT	0x1
/* @key is an owner, not 0: all its timers */
#define SPOTTIMER_CANCEL_OWNER	0x2
/* all timers of the context; @key is 0. Neither goes with a generation. */
#define SPOTTIMER_CANCEL_ALL	0x4

/**
 * struct spottimer_cancel - end one generation, or many
 * @key: the timer; with SPOTTIMER_CANCEL_OWNER the owner
 * @generation: in: the generation, or 0 for the current one (and for all, by
 *	owner or context); out: the one that was acted on
 * @started: out: handlers that the generation started (contract E6); 0 for many
 * @cancelled: out: timers that this entry ended or will end
 * @flags: SPOTTIMER_CANCEL_*
 * @error: out: 0 (ended: no handler starts any more and all have completed),
 *	EINPROGRESS (a handler runs and the caller would not or, being that
 *	handler, could not wait), EINTR (a signal ended the wait; cancel the
 *	same generation again to wait on), EINVAL, E2BIG, ENOENT, ESTALE or
 *	ENOMEM
 * @result: out, with @error 0: the generation's terminal result, the same for
 *	every caller: 0, or the error with which its last handler completed;
 *	for many, the first such error
 * @reserved: zero
 *
 * Cancelling by owner or all walks the context and takes the timers that
 * existed when it began. Cancelling a generation that has ended returns its
 * result again, for as long as it is remembered (see struct spottimer_info).
 */
struct spottimer_cancel {
	__aligned_u64 key;
	__aligned_u64 generation;
	__aligned_u64 started;
	__aligned_u64 cancelled;
	__u32 flags;
	__s32 error;
	__s32 result;
	__u32 reserved;
};

/**
 * struct spottimer_complete - end a running handler (SPOTTIMER_REG_MANUAL)
 * @key: the timer
 * @generation: the generation of the record, or 0 for the one that runs
 * @result: 0, or a negative error number down to -4095: how the handler ended
 * @error: out: 0, EINVAL, E2BIG, ENOENT (no handler of that name runs) or
 *	ESTALE (the generation was replaced)
 * @flags: zero
 * @reserved: zero
 */
struct spottimer_complete {
	__aligned_u64 key;
	__aligned_u64 generation;
	__s32 result;
	__s32 error;
	__u32 flags;
	__u32 reserved;
};

/**
 * enum spottimer_lease_op - what to do with an owner's lease
 * @SPOTTIMER_LEASE_GRANT: a new lease; its epoch must be larger than every
 *	earlier one of this owner (ESTALE). Timers of earlier epochs end, or
 *	move into this one with SPOTTIMER_LEASE_ADOPT.
 * @SPOTTIMER_LEASE_RENEW: move the deadline of the current epoch, before it
 *	has come (EKEYEXPIRED)
 * @SPOTTIMER_LEASE_REVOKE: end the lease of the current epoch now
 */
enum spottimer_lease_op {
	SPOTTIMER_LEASE_GRANT	= 0,
	SPOTTIMER_LEASE_RENEW	= 1,
	SPOTTIMER_LEASE_REVOKE	= 2,
};

/* @deadline is an absolute CLOCK_BOOTTIME, not counted from now */
#define SPOTTIMER_LEASE_ABSTIME	0x1
/* grant: keep the timers of the last epoch; ticks missed since are skipped */
#define SPOTTIMER_LEASE_ADOPT	0x2
/* revoke: end the owner's timers and forget the owner, its epoch too */
#define SPOTTIMER_LEASE_FORGET	0x4

/**
 * struct spottimer_lease - grant, renew or revoke an owner's lease
 * @owner: the owner, not 0
 * @epoch: the fencing token, not 0
 * @deadline: nanoseconds from now, more than 0, or an absolute time still to
 *	come; 0 for revoke. Saturates at the end of time.
 * @op: enum spottimer_lease_op
 * @flags: SPOTTIMER_LEASE_*
 * @error: out: 0, EINVAL, E2BIG, ESTALE, EKEYEXPIRED, ENOSPC or ENOMEM
 * @reserved: zero
 *
 * From the deadline on no tick of the owner's timers is queued and no handler
 * starts (contract G3), and one SPOTTIMER_REC_LEASE record says so.
 */
struct spottimer_lease {
	__aligned_u64 owner;
	__aligned_u64 epoch;
	__s64 deadline;
	__u32 op;
	__u32 flags;
	__s32 error;
	__u32 reserved;
};

/**
 * enum spottimer_state - where a timer is
 * @SPOTTIMER_PENDING: it waits for its time
 * @SPOTTIMER_READY: its record waits to be read
 * @SPOTTIMER_RUNNING: its handler runs
 * @SPOTTIMER_HELD: its tick is due, but may not start: the lease has ended, or
 *	a handler of the key's last generation runs
 * @SPOTTIMER_ENDED: it has ended, and its result is still remembered
 */
enum spottimer_state {
	SPOTTIMER_PENDING	= 1,
	SPOTTIMER_READY		= 2,
	SPOTTIMER_RUNNING	= 3,
	SPOTTIMER_HELD		= 4,
	SPOTTIMER_ENDED		= 5,
};

/**
 * struct spottimer_query - look at a timer
 * @key: the timer
 * @generation: in: the generation, or 0 for the current one; out: its number
 * @cookie: out: as registered
 * @owner: out: as registered, and 0 after the end
 * @started: out: handlers started
 * @scheduled: out: nominal tick of the last handler, 0 before the first
 * @remaining: out: nanoseconds to the next due time; 0 if it is past or none
 * @period: out: nanoseconds
 * @state: out: enum spottimer_state
 * @policy: out: enum spottimer_policy
 * @flags: zero
 * @error: out: 0, EINVAL, E2BIG, ENOENT or ESTALE
 * @result: out: how the last handler completed
 * @reserved: zero
 */
struct spottimer_query {
	__aligned_u64 key;
	__aligned_u64 generation;
	__aligned_u64 cookie;
	__aligned_u64 owner;
	__aligned_u64 started;
	__aligned_u64 scheduled;
	__s64 remaining;
	__s64 period;
	__u32 state;
	__u32 policy;
	__u32 flags;
	__s32 error;
	__s32 result;
	__u32 reserved;
};

/* what a record says, in the low bits of its flags: exactly one of these */
#define SPOTTIMER_REC_TICK	0x1
#define SPOTTIMER_REC_END	0x2
#define SPOTTIMER_REC_LEASE	0x4
/* with SPOTTIMER_REC_TICK: to be completed by SPOTTIMER_IOC_COMPLETE */
#define SPOTTIMER_REC_MANUAL	0x100
/* with SPOTTIMER_REC_TICK: the timer is critical */
#define SPOTTIMER_REC_CRITICAL	0x200
/* with SPOTTIMER_REC_TICK: the last one, the timer does not repeat */
#define SPOTTIMER_REC_LAST	0x400

/**
 * struct spottimer_record - what read() returns
 * @key: the timer; of a LEASE record 0
 * @generation: its generation; of a LEASE record the epoch that ran out
 * @delivery_index: which handler of this generation: 1, 2, 3, ... without a
 *	gap; of an END record the number of handlers started
 * @scheduled_index: which nominal tick, the first due time being 1
 * @skipped_ticks: nominal ticks between the last record's and this one
 * @cookie: as registered
 * @owner: as registered; of a LEASE record the owner
 * @flags: SPOTTIMER_REC_*
 * @result: of an END record the terminal result
 *
 * TICK records start a handler: it completes with the read itself or, for
 * SPOTTIMER_REC_MANUAL, by SPOTTIMER_IOC_COMPLETE. END records end a
 * generation that was cancelled with SPOTTIMER_CANCEL_NOWAIT while its handler
 * ran. LEASE records tell that an owner's lease has run out. (Contract C, E3,
 * G3.)
 *
 * read() returns as many whole records as there are and fit. It fails with
 * EINVAL if not even one fits, and never returns 0. A fault after n records
 * returns those n; the others stay.
 */
struct spottimer_record {
	__aligned_u64 key;
	__aligned_u64 generation;
	__aligned_u64 delivery_index;
	__aligned_u64 scheduled_index;
	__aligned_u64 skipped_ticks;
	__aligned_u64 cookie;
	__aligned_u64 owner;
	__u32 flags;
	__s32 result;
};

#define SPOTTIMER_IOC_MAGIC	0xBB

#define SPOTTIMER_IOC_INFO \
	_IOR(SPOTTIMER_IOC_MAGIC, 0x00, struct spottimer_info)
/* entries: struct spottimer_register */
#define SPOTTIMER_IOC_REGISTER \
	_IOW(SPOTTIMER_IOC_MAGIC, 0x01, struct spottimer_batch)
/* entries: struct spottimer_cancel */
#define SPOTTIMER_IOC_CANCEL \
	_IOW(SPOTTIMER_IOC_MAGIC, 0x02, struct spottimer_batch)
/* entries: struct spottimer_complete */
#define SPOTTIMER_IOC_COMPLETE \
	_IOW(SPOTTIMER_IOC_MAGIC, 0x03, struct spottimer_batch)
/* entries: struct spottimer_lease */
#define SPOTTIMER_IOC_LEASE \
	_IOW(SPOTTIMER_IOC_MAGIC, 0x04, struct spottimer_batch)
/* entries: struct spottimer_query */
#define SPOTTIMER_IOC_QUERY \
	_IOW(SPOTTIMER_IOC_MAGIC, 0x05, struct spottimer_batch)

#endif /* _UAPI_LINUX_SPOTTIMER_H */
