/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events; Documentation/observing.rst tells what they are good for.
 *
 * A timer is named by the address of its core, which all layers know, so that
 * what one of them says can be joined with what another says. The device adds
 * key and generation, and timers that call a function add the function.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM spottimer

#if !defined(SPOT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SPOT_TRACE_H

#include <linux/tracepoint.h>

#include "spot_timer.h"
#include "uapi/linux/spottimer.h"

TRACE_DEFINE_ENUM(SPOT_MONOTONIC);
TRACE_DEFINE_ENUM(SPOT_BOOTTIME);
TRACE_DEFINE_ENUM(SPOT_REALTIME);
TRACE_DEFINE_ENUM(SPOT_IDLE);
TRACE_DEFINE_ENUM(SPOT_PENDING);
TRACE_DEFINE_ENUM(SPOT_READY);
TRACE_DEFINE_ENUM(SPOT_RUNNING);
TRACE_DEFINE_ENUM(SPOT_HELD);
TRACE_DEFINE_ENUM(SPOT_DONE);
TRACE_DEFINE_ENUM(SPOT_BUSY);
TRACE_DEFINE_ENUM(SPOT_FREED);
TRACE_DEFINE_ENUM(SPOTTIMER_LEASE_GRANT);
TRACE_DEFINE_ENUM(SPOTTIMER_LEASE_RENEW);
TRACE_DEFINE_ENUM(SPOTTIMER_LEASE_REVOKE);

#define show_spot_clock(clock)						\
	__print_symbolic(clock,						\
			 { SPOT_MONOTONIC,	"monotonic" },		\
			 { SPOT_BOOTTIME,	"boottime" },		\
			 { SPOT_REALTIME,	"realtime" })

#define show_spot_state(state)						\
	__print_symbolic(state,						\
			 { SPOT_IDLE,		"idle" },		\
			 { SPOT_PENDING,	"pending" },		\
			 { SPOT_READY,		"ready" },		\
			 { SPOT_RUNNING,	"running" },		\
			 { SPOT_HELD,		"held" })

#define show_spot_verdict(verdict)					\
	__print_symbolic(verdict,					\
			 { SPOT_DONE,		"done" },		\
			 { SPOT_BUSY,		"busy" },		\
			 { SPOT_FREED,		"freed" })

#define show_spot_lease_op(op)						\
	__print_symbolic(op,						\
			 { SPOTTIMER_LEASE_GRANT,	"grant" },	\
			 { SPOTTIMER_LEASE_RENEW,	"renew" },	\
			 { SPOTTIMER_LEASE_REVOKE,	"revoke" })

/*
 * The engine
 */

/**
 * spottimer_start - a timer begins to wait for its first tick
 * @core: the timer
 */
TRACE_EVENT(spottimer_start,
	    TP_PROTO(const struct spot_core *core),

	    TP_ARGS(core),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u32, cpu)
			     __field(u32, clock)
			     __field(bool, critical)
			     __field(s64, deadline)
			     __field(u64, period)),

	    TP_fast_assign(__entry->core = core;
			   __entry->cpu = core->entry.user & SPOT_CORE_CPU;
			   __entry->clock = spot_core_clock(core);
			   __entry->critical = core->entry.user & SPOT_CORE_CRITICAL;
			   __entry->deadline = core->entry.deadline;
			   __entry->period = core->overrun.period;),

	    TP_printk("core=%p on_cpu=%u clock=%s critical=%d deadline=%lld period=%llu",
		      __entry->core, __entry->cpu, show_spot_clock(__entry->clock),
		      __entry->critical, __entry->deadline, __entry->period));

/**
 * spottimer_stop - a timer is taken out of where it was
 * @core: the timer
 * @state: where it was
 */
TRACE_EVENT(spottimer_stop,
	    TP_PROTO(const struct spot_core *core, enum spot_state state),

	    TP_ARGS(core, state),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u32, cpu)
			     __field(u32, state)),

	    TP_fast_assign(__entry->core = core;
			   __entry->cpu = core->entry.user & SPOT_CORE_CPU;
			   __entry->state = state;),

	    TP_printk("core=%p on_cpu=%u state=%s", __entry->core, __entry->cpu,
		      show_spot_state(__entry->state)));

/**
 * spottimer_cascade - timers moved down in a wheel, which is nearer to them now
 * @cpu: whose wheel
 * @clock: on which clock
 * @critical: the wheel of critical timers
 * @moved: how many
 * @tick: the wheel tick last processed
 */
TRACE_EVENT(spottimer_cascade,
	    TP_PROTO(unsigned int cpu, enum spot_clock clock, bool critical,
		     u64 moved, u64 tick),

	    TP_ARGS(cpu, clock, critical, moved, tick),

	    TP_STRUCT__entry(__field(u32, cpu)
			     __field(u32, clock)
			     __field(bool, critical)
			     __field(u64, moved)
			     __field(u64, tick)),

	    TP_fast_assign(__entry->cpu = cpu;
			   __entry->clock = clock;
			   __entry->critical = critical;
			   __entry->moved = moved;
			   __entry->tick = tick;),

	    TP_printk("on_cpu=%u clock=%s critical=%d moved=%llu tick=%llu",
		      __entry->cpu, show_spot_clock(__entry->clock),
		      __entry->critical, __entry->moved, __entry->tick));

DECLARE_EVENT_CLASS(spottimer_due,
		    TP_PROTO(const struct spot_core *core, s64 now),

		    TP_ARGS(core, now),

		    TP_STRUCT__entry(__field(const void *, core)
				     __field(u32, cpu)
				     __field(u32, clock)
				     __field(s64, deadline)
				     __field(s64, now)
				     __field(s64, late)),

		    TP_fast_assign(__entry->core = core;
				   __entry->cpu = core->entry.user & SPOT_CORE_CPU;
				   __entry->clock = spot_core_clock(core);
				   __entry->deadline = core->entry.deadline;
				   __entry->now = now;
				   __entry->late = now - core->entry.deadline;),

		    TP_printk("core=%p on_cpu=%u clock=%s deadline=%lld now=%lld late=%lld",
			      __entry->core, __entry->cpu, show_spot_clock(__entry->clock),
			      __entry->deadline, __entry->now, __entry->late));

/**
 * spottimer_expire - a timer comes out of its wheel, and is looked at
 * @core: the timer
 * @now: the time, on its clock
 */
DEFINE_EVENT(spottimer_due, spottimer_expire,
	     TP_PROTO(const struct spot_core *core, s64 now),
	     TP_ARGS(core, now));

/**
 * spottimer_ready - a timer goes on its queue, to be taken from there
 * @core: the timer
 * @now: the time, on its clock
 */
DEFINE_EVENT(spottimer_due, spottimer_ready,
	     TP_PROTO(const struct spot_core *core, s64 now),
	     TP_ARGS(core, now));

/**
 * spottimer_hold - a timer is due, but may not start
 * @core: the timer
 * @now: the time, on its clock
 * @lease: because its lease has ended; or else an earlier handler still runs
 */
TRACE_EVENT(spottimer_hold,
	    TP_PROTO(const struct spot_core *core, s64 now, bool lease),

	    TP_ARGS(core, now, lease),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u32, cpu)
			     __field(u32, clock)
			     __field(s64, deadline)
			     __field(s64, now)
			     __field(bool, lease)),

	    TP_fast_assign(__entry->core = core;
			   __entry->cpu = core->entry.user & SPOT_CORE_CPU;
			   __entry->clock = spot_core_clock(core);
			   __entry->deadline = core->entry.deadline;
			   __entry->now = now;
			   __entry->lease = lease;),

	    TP_printk("core=%p on_cpu=%u clock=%s deadline=%lld now=%lld by=%s",
		      __entry->core, __entry->cpu, show_spot_clock(__entry->clock),
		      __entry->deadline, __entry->now,
		      __entry->lease ? "lease" : "handler"));

/**
 * spottimer_migrate - a timer leaves a CPU that has died
 * @core: the timer, which still names that CPU
 * @to: where it waits from now on
 */
TRACE_EVENT(spottimer_migrate,
	    TP_PROTO(const struct spot_core *core, unsigned int to),

	    TP_ARGS(core, to),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u32, from)
			     __field(u32, to)
			     __field(s64, deadline)),

	    TP_fast_assign(__entry->core = core;
			   __entry->from = core->entry.user & SPOT_CORE_CPU;
			   __entry->to = to;
			   __entry->deadline = core->entry.deadline;),

	    TP_printk("core=%p from=%u to=%u deadline=%lld", __entry->core,
		      __entry->from, __entry->to, __entry->deadline));

/*
 * Timers that call a function
 */

/**
 * spottimer_call - a function is about to be called
 * @core: the timer
 * @function: the function
 * @tick: which tick it is
 */
TRACE_EVENT(spottimer_call,
	    TP_PROTO(const struct spot_core *core, spot_timer_fn function,
		     const struct spot_tick *tick),

	    TP_ARGS(core, function, tick),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(void *, function)
			     __field(u64, generation)
			     __field(u64, delivery_index)
			     __field(u64, scheduled_index)
			     __field(u64, skipped_ticks)),

	    TP_fast_assign(__entry->core = core;
			   __entry->function = function;
			   __entry->generation = tick->generation;
			   __entry->delivery_index = tick->delivery_index;
			   __entry->scheduled_index = tick->scheduled_index;
			   __entry->skipped_ticks = tick->skipped_ticks;),

	    TP_printk("core=%p function=%ps generation=%llu delivery=%llu scheduled=%llu skipped=%llu",
		      __entry->core, __entry->function, __entry->generation,
		      __entry->delivery_index, __entry->scheduled_index,
		      __entry->skipped_ticks));

/**
 * spottimer_return - it has returned
 * @core: the timer, which may be gone
 * @tick: which tick it was
 * @verdict: what the function said
 * @ns: how long it took
 */
TRACE_EVENT(spottimer_return,
	    TP_PROTO(const struct spot_core *core, const struct spot_tick *tick,
		     enum spot_verdict verdict, u64 ns),

	    TP_ARGS(core, tick, verdict, ns),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u64, generation)
			     __field(u64, delivery_index)
			     __field(u32, verdict)
			     __field(u64, ns)),

	    TP_fast_assign(__entry->core = core;
			   __entry->generation = tick->generation;
			   __entry->delivery_index = tick->delivery_index;
			   __entry->verdict = verdict;
			   __entry->ns = ns;),

	    TP_printk("core=%p generation=%llu delivery=%llu verdict=%s ns=%llu",
		      __entry->core, __entry->generation, __entry->delivery_index,
		      show_spot_verdict(__entry->verdict), __entry->ns));

/*
 * The device
 */

/**
 * spottimer_register - a timer was registered
 * @file: the open file
 * @core: the timer
 * @key: its name
 * @generation: its generation
 * @owner: under whose lease it runs, or 0
 */
TRACE_EVENT(spottimer_register,
	    TP_PROTO(const void *file, const struct spot_core *core, u64 key,
		     u64 generation, u64 owner),

	    TP_ARGS(file, core, key, generation, owner),

	    TP_STRUCT__entry(__field(const void *, file)
			     __field(const void *, core)
			     __field(u64, key)
			     __field(u64, generation)
			     __field(u64, owner)
			     __field(u32, clock)
			     __field(s64, deadline)
			     __field(u64, period)),

	    TP_fast_assign(__entry->file = file;
			   __entry->core = core;
			   __entry->key = key;
			   __entry->generation = generation;
			   __entry->owner = owner;
			   __entry->clock = spot_core_clock(core);
			   __entry->deadline = core->entry.deadline;
			   __entry->period = core->overrun.period;),

	    TP_printk("file=%p core=%p key=%llu generation=%llu owner=%llu clock=%s deadline=%lld period=%llu",
		      __entry->file, __entry->core, __entry->key,
		      __entry->generation, __entry->owner,
		      show_spot_clock(__entry->clock), __entry->deadline,
		      __entry->period));

/**
 * spottimer_deliver - a record was read, which starts a handler
 * @core: the timer, with what comes after that tick
 * @key: its name
 * @tick: which tick it is
 * @batch: whose time it was taken at
 */
TRACE_EVENT(spottimer_deliver,
	    TP_PROTO(const struct spot_core *core, u64 key,
		     const struct spot_tick *tick, struct spot_batch *batch),

	    TP_ARGS(core, key, tick, batch),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u64, key)
			     __field(u64, generation)
			     __field(u64, delivery_index)
			     __field(u64, scheduled_index)
			     __field(u64, skipped_ticks)
			     __field(s64, late)),

	    TP_fast_assign(__entry->core = core;
			   __entry->key = key;
			   __entry->generation = tick->generation;
			   __entry->delivery_index = tick->delivery_index;
			   __entry->scheduled_index = tick->scheduled_index;
			   __entry->skipped_ticks = tick->skipped_ticks;
			   __entry->late = spot_batch_now(batch, spot_core_clock(core)) -
				   (core->entry.deadline -
				   (s64)core->overrun.period);),

	    TP_printk("core=%p key=%llu generation=%llu delivery=%llu scheduled=%llu skipped=%llu late=%lld",
		      __entry->core, __entry->key, __entry->generation,
		      __entry->delivery_index, __entry->scheduled_index,
		      __entry->skipped_ticks, __entry->late));

/**
 * spottimer_complete - a handler has ended, by ioctl
 * @core: the timer
 * @key: its name
 * @generation: its generation
 * @result: how it ended
 */
TRACE_EVENT(spottimer_complete,
	    TP_PROTO(const struct spot_core *core, u64 key, u64 generation,
		     int result),

	    TP_ARGS(core, key, generation, result),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u64, key)
			     __field(u64, generation)
			     __field(u64, delivery_index)
			     __field(u64, scheduled_index)
			     __field(int, result)),

	    TP_fast_assign(__entry->core = core;
			   __entry->key = key;
			   __entry->generation = generation;
			   __entry->delivery_index = core->overrun.delivered;
			   __entry->scheduled_index = core->overrun.last;
			   __entry->result = result;),

	    TP_printk("core=%p key=%llu generation=%llu delivery=%llu scheduled=%llu result=%d",
		      __entry->core, __entry->key, __entry->generation,
		      __entry->delivery_index, __entry->scheduled_index,
		      __entry->result));

/**
 * spottimer_cancel - a generation ends, or is to end when its handler completes
 * @core: the timer
 * @key: its name
 * @generation: its generation
 * @state: where it was; the handler of one that was running goes on
 */
TRACE_EVENT(spottimer_cancel,
	    TP_PROTO(const struct spot_core *core, u64 key, u64 generation,
		     enum spot_state state),

	    TP_ARGS(core, key, generation, state),

	    TP_STRUCT__entry(__field(const void *, core)
			     __field(u64, key)
			     __field(u64, generation)
			     __field(u64, started)
			     __field(u32, state)),

	    TP_fast_assign(__entry->core = core;
			   __entry->key = key;
			   __entry->generation = generation;
			   __entry->started = core->overrun.delivered;
			   __entry->state = state;),

	    TP_printk("core=%p key=%llu generation=%llu started=%llu state=%s",
		      __entry->core, __entry->key, __entry->generation,
		      __entry->started, show_spot_state(__entry->state)));

/**
 * spottimer_lease - what was asked about a lease, and answered
 * @file: the open file
 * @e: the entry
 * @error: the answer
 */
TRACE_EVENT(spottimer_lease,
	    TP_PROTO(const void *file, const struct spottimer_lease *e, int error),

	    TP_ARGS(file, e, error),

	    TP_STRUCT__entry(__field(const void *, file)
			     __field(u32, op)
			     __field(u32, flags)
			     __field(u64, owner)
			     __field(u64, epoch)
			     __field(s64, deadline)
			     __field(int, error)),

	    TP_fast_assign(__entry->file = file;
			   __entry->op = e->op;
			   __entry->flags = e->flags;
			   __entry->owner = e->owner;
			   __entry->epoch = e->epoch;
			   __entry->deadline = e->deadline;
			   __entry->error = error;),

	    TP_printk("file=%p op=%s flags=%#x owner=%llu epoch=%llu deadline=%lld error=%d",
		      __entry->file, show_spot_lease_op(__entry->op),
		      __entry->flags, __entry->owner, __entry->epoch,
		      __entry->deadline, __entry->error));

/**
 * spottimer_lapse - a lease has run out
 * @file: the open file
 * @owner: whose
 * @epoch: which one
 */
TRACE_EVENT(spottimer_lapse,
	    TP_PROTO(const void *file, u64 owner, u64 epoch),

	    TP_ARGS(file, owner, epoch),

	    TP_STRUCT__entry(__field(const void *, file)
			     __field(u64, owner)
			     __field(u64, epoch)),

	    TP_fast_assign(__entry->file = file;
			   __entry->owner = owner;
			   __entry->epoch = epoch;),

	    TP_printk("file=%p owner=%llu epoch=%llu", __entry->file,
		      __entry->owner, __entry->epoch));

#endif /* SPOT_TRACE_H */

/* Kbuild has this directory among those that are searched */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE spot_trace
#include <trace/define_trace.h>
