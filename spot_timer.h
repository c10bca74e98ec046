/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers for other kernel modules, and for spottimer's own character device.
 *
 * A timer either calls a function when it is due, in softirq, or is put on a
 * queue, from which its user takes it. Both follow the same overrun policies.
 * See spot_timer.c for locking and lifetimes.
 */
#ifndef SPOT_TIMER_H
#define SPOT_TIMER_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "spot_overrun.h"
#include "spot_wheel.h"

struct seq_file;
struct spot_base;
struct spot_cpu;
struct spot_lease;
struct spot_timer;

/* Critical timers taken from a queue in a row while others wait */
#define SPOT_CRITICAL_STREAK	32U

/* Range of the wheel tick, a load-time parameter (contract A2) */
#define SPOT_TICK_NS_MIN	100000U
#define SPOT_TICK_NS_MAX	1000000000U

/**
 * enum spot_clock - the clock of a timer
 * @SPOT_MONOTONIC: CLOCK_MONOTONIC
 * @SPOT_BOOTTIME: CLOCK_BOOTTIME, which counts suspend
 * @SPOT_REALTIME: CLOCK_REALTIME, which may be set (contract A13)
 * @SPOT_NR_CLOCKS: how many there are
 */
enum spot_clock {
	SPOT_MONOTONIC,
	SPOT_BOOTTIME,
	SPOT_REALTIME,
	SPOT_NR_CLOCKS
};

/**
 * enum spot_state - where a timer is
 * @SPOT_IDLE: not started, or ended
 * @SPOT_PENDING: in a wheel
 * @SPOT_READY: due, and on its queue
 * @SPOT_RUNNING: its handler runs; it is in no wheel and on no queue
 * @SPOT_HELD: due, but not admitted; it is in no wheel and on no queue until
 *	its user resumes, restarts or cancels it
 *
 * The values of all but the first are those of enum spottimer_state.
 */
enum spot_state {
	SPOT_IDLE,
	SPOT_PENDING,
	SPOT_READY,
	SPOT_RUNNING,
	SPOT_HELD,
};

/**
 * typedef spot_timer_fn - what a timer calls when it is due
 * @timer: the timer; it may be started again or cancelled, and, if it does not
 *	repeat, freed
 * @tick: which tick it is
 *
 * Called in softirq, with no lock of spottimer's held that the timer's
 * functions take, so all of them may be used but spot_timer_cancel_sync() on
 * @timer itself, which returns -EINPROGRESS. Does not run on two CPUs at once.
 */
typedef void (*spot_timer_fn)(struct spot_timer *timer,
			      const struct spot_tick *tick);

/**
 * struct spot_queue - where timers wait that are due
 * @lock: protects the lists; taken inside spottimer's per-CPU lock, with bottom
 *	halves disabled
 * @ready: timers in the order in which they came due
 * @critical: critical timers, likewise
 * @streak: critical timers taken since the last other one; its user's to
 *	serialise
 * @notify: called after timers were added: in softirq or with bottom halves
 *	disabled, maybe under a spinlock, in an RCU read-side section; it may
 *	wake somebody up, not more. The queue must be freed by way of RCU.
 *
 * The timers of one queue are its user's to serialise: no two calls on one
 * timer at once. Only its expiry runs beside them.
 */
struct spot_queue {
	spinlock_t lock;	/* protects the lists */
	struct list_head ready;
	struct list_head critical;
	unsigned int streak;
	void (*notify)(struct spot_queue *queue);
};

/**
 * struct spot_timer - a timer
 * @entry: its place in a wheel or on its queue, its due time and its flags; the
 *	link is its user's while it is running, held or idle
 * @overrun: which tick comes next
 * @fn: what to call, of a timer without a queue
 * @queue: where to go, of a timer with one
 * @lease: the lease it runs under, or NULL. To be set while idle.
 *
 * The members are private but for those named in the functions' comments.
 */
struct spot_timer {
	struct spot_wheel_entry entry;
	struct spot_overrun overrun;
	union {
		spot_timer_fn fn;
		struct spot_queue *queue;
	};
	struct spot_lease *lease;
};

/* spot_timer.entry.user: written under the per-CPU lock, read without */
#define SPOT_TIMER_CPU		GENMASK(12, 0)
#define SPOT_TIMER_MIGRATING	BIT(13)
#define SPOT_TIMER_CLOCK	GENMASK(15, 14)
#define SPOT_TIMER_STATE	GENMASK(18, 16)
#define SPOT_TIMER_CRITICAL	BIT(19)
#define SPOT_TIMER_QUEUED	BIT(20)

/**
 * struct spot_batch - several operations under as few locks as possible
 * @locked: the CPU whose lock is held, or NULL
 * @queue: a queue that must be told of additions, or NULL
 * @now: the time, per clock, as far as it was read
 * @read: bit n is set where clock n was read
 * @forwarded: bit n is set where clock n's wheels were brought up to date
 * @dirty: bit n is set where clock n's hrtimer must be moved or disarmed
 *
 * Between spot_batch_begin() and spot_batch_end() bottom halves are disabled
 * and a per-CPU lock may be held: nothing may sleep, no function of this
 * header may be called that does not take the batch, and a batch should end
 * after some tens of operations. All see the same time.
 */
struct spot_batch {
	struct spot_cpu *locked;
	struct spot_queue *queue;
	s64 now[SPOT_NR_CLOCKS];
	u8 read;
	u8 forwarded;
	u8 dirty;
};

extern unsigned int spot_tick_ns;

s64 spot_clock_now(enum spot_clock clock);

void spot_queue_init(struct spot_queue *queue,
		     void (*notify)(struct spot_queue *queue));
struct spot_timer *spot_queue_pop(struct spot_queue *queue,
				  unsigned int *streak);
void spot_queue_unpop(struct spot_queue *queue, struct spot_timer *timer);

void spot_timer_init(struct spot_timer *timer, enum spot_clock clock,
		     spot_timer_fn fn);
void spot_timer_init_queued(struct spot_timer *timer, enum spot_clock clock,
			    bool critical, struct spot_queue *queue);
enum spot_state spot_timer_state(const struct spot_timer *timer);
enum spot_clock spot_timer_clock(const struct spot_timer *timer);
void spot_timer_start(struct spot_timer *timer, s64 first, u64 period, u32 max);
int spot_timer_cancel_sync(struct spot_timer *timer);

void spot_batch_begin(struct spot_batch *batch);
void spot_batch_end(struct spot_batch *batch);
void spot_batch_unlock(struct spot_batch *batch);
s64 spot_batch_now(struct spot_batch *batch, enum spot_clock clock);
void spot_batch_start(struct spot_batch *batch, struct spot_timer *timer);
enum spot_state spot_batch_state(struct spot_batch *batch,
				 struct spot_timer *timer);
enum spot_state spot_batch_cancel(struct spot_batch *batch,
				  struct spot_timer *timer);
void spot_batch_take(struct spot_batch *batch, struct spot_timer *timer,
		     struct spot_tick *tick);
bool spot_batch_complete(struct spot_batch *batch, struct spot_timer *timer,
			 bool go_on);
void spot_batch_hold(struct spot_batch *batch, struct spot_timer *timer);
void spot_batch_resume(struct spot_batch *batch, struct spot_timer *timer);
void spot_batch_push(struct spot_batch *batch, struct spot_timer *timer);

/* for tests that bring a clock of their own, by way of static stubs */
struct spot_base *spot_base_here(enum spot_clock clock);
void spot_base_arm(struct spot_base *base, s64 time);
void spot_base_pass(struct spot_base *base);

int spot_engine_init(void);
void spot_engine_exit(void);
void spot_engine_show(struct seq_file *m);

#endif /* SPOT_TIMER_H */
