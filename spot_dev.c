// SPDX-License-Identifier: GPL-2.0
/*
 * The character device: contexts, keys, batches, reading and completing.
 *
 * Overview
 * --------
 * An open file is a struct spot_ctx: a hash table of timers by key, a queue on
 * which the engine puts those that are due, and the owners with their leases.
 * A key has at most one timer that lives, and beside it there may be one whose
 * handler still runs although it was cancelled or replaced (SPOT_DEV_DYING),
 * and some that have ended.
 *
 * What has ended stays in the table for a while, so that its result can be
 * asked for again. Those timers are on ctx->ended, oldest first: the last of
 * each key, and at most SPOT_ENDED_MAX of them; each further one pushes the
 * oldest out. So nothing is ever allocated for an end, and one timer serves from
 * its registration to the moment when its result is forgotten.
 *
 * A read looks, copies, then commits. Under ctx->lock it pops timers off the
 * queue and computes their records without changing the timers, copies the
 * records out with page faults disabled, starts the handlers of those that
 * were copied, and puts the others back where they were. A page that is not
 * there is faulted in without the lock before the next attempt. So no fault can
 * lose a record, and nobody sees one that is half taken.
 *
 * Locks
 * -----
 * spot_ctx.owner_mutex: serialises changes of leases, which may have to wait for
 *   a lease's timer, and therefore cannot be made under ctx->lock.
 * spot_ctx.resize_mutex: held while the table is resized or walked. A walk drops
 *   ctx->lock every now and then, and counts on buckets staying where they are.
 * spot_ctx.lock: protects everything in a context but its queue, and serialises
 *   all that is done to its timers, as the engine wants it. It is never taken in
 *   softirq. It is a spinlock, with bottom halves disabled so that those who
 *   wait for it do not wait for softirqs too.
 * The locks of the engine come after it: a CPU's, then queue->lock, which also
 *   protects ctx->lapsed, for leases lapse in softirq.
 *
 * They nest in this order. Expiry runs the other way, from a CPU's lock to the
 * queue's, and needs none of ours.
 *
 * Lifetimes
 * ---------
 * A timer is freed under ctx->lock when it is IDLE and no longer remembered. An
 * owner is counted by its timers and by the table of owners, under ctx->lock. A
 * context and its owners are freed by RCU, since a pass may be about to notify
 * the queue of a context that has no more timers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/percpu_counter.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "spot_engine.h"
#include "spot_lease.h"
#include "spot_timer.h"
#include "spot_trace.h"
#include "uapi/linux/spottimer.h"

/* Entries of a batch that are worked on under one lock */
#define SPOT_CHUNK		64U
/* Records that are read under one lock; they are on the stack */
#define SPOT_READ_CHUNK		16U
/* Generations that are remembered after their end */
#define SPOT_ENDED_MAX		1024U
/* Smallest table, as a power of two, and buckets moved at once by a resize */
#define SPOT_TABLE_BITS		6U
#define SPOT_TABLE_STEP		512U

static unsigned int spot_max_timers = 1U << 22;
module_param_named(max_timers, spot_max_timers, uint, 0644);
MODULE_PARM_DESC(max_timers, "timers, and owners, of one open file (default 4194304)");

static unsigned int spot_max_user_timers = 1U << 23;
module_param_named(max_user_timers, spot_max_user_timers, uint, 0644);
MODULE_PARM_DESC(max_user_timers, "timers, and owners, of all files opened by one user (default 8388608)");

/*
 * Timers come from blocks of memory, of which a context has a list, because what
 * a slab object costs to charge and to free is more than all else that is done
 * to register and to cancel. Where KASAN is to watch, a block is for one timer.
 */
#define SPOT_BLOCK_SIZE		(IS_ENABLED(CONFIG_KASAN) ? SZ_256 : SZ_4K)

/* spot_dev_timer.flags */
#define SPOT_DEV_POLICY		0x0003	/* enum spottimer_policy */
#define SPOT_DEV_MANUAL		0x0004	/* completed by ioctl */
#define SPOT_DEV_DYING		0x0008	/* runs, and ends when it completes */
#define SPOT_DEV_AFTER		0x0010	/* an earlier generation may still run */
#define SPOT_DEV_TELL_END	0x0020	/* an END record is wanted */
#define SPOT_DEV_BY_PROCESS	0x0040	/* the taker is known by its process */
#define SPOT_DEV_BURIED		0x0080	/* has ended, and is on ctx->ended */
#define SPOT_DEV_NOT_ALONE	0x0100	/* its key had others when it came */

/**
 * struct spot_dev_timer - a timer of a context, two cache lines
 * @core: the engine's part. While the timer is RUNNING the link is the list of
 *	those who wait for its end; when it has ended, a place in ctx->ended.
 * @generation: number of the generation
 * @key: the user's name for it
 * @cookie: the user's
 * @next: next in the hash bucket, or of what is free in a block
 * @taker: thread that took the record of the handler that runs
 * @result: how the last handler completed
 * @flags: SPOT_DEV_*
 */
struct spot_dev_timer {
	struct spot_core core;
	u64 generation;
	u64 key;
	u64 cookie;
	struct spot_dev_timer *next;
	pid_t taker;
	s16 result;
	u16 flags;
};

static_assert(sizeof(struct spot_dev_timer) == 128);
static_assert(SPOT_PENDING == (int)SPOTTIMER_PENDING);
static_assert(SPOT_READY == (int)SPOTTIMER_READY);
static_assert(SPOT_RUNNING == (int)SPOTTIMER_RUNNING);
static_assert(SPOT_HELD == (int)SPOTTIMER_HELD);

/* the uapi has no holes, and the same layout for 32-bit programs */
static_assert(sizeof(struct spottimer_info) == 48);
static_assert(sizeof(struct spottimer_batch) == 24);
static_assert(sizeof(struct spottimer_register) == 88);
static_assert(sizeof(struct spottimer_cancel) == 48);
static_assert(sizeof(struct spottimer_complete) == 32);
static_assert(sizeof(struct spottimer_lease) == 40);
static_assert(sizeof(struct spottimer_query) == 88);
static_assert(sizeof(struct spottimer_record) == 64);

/**
 * struct spot_block - memory for timers, SPOT_BLOCK_SIZE and so aligned
 * @link: place in ctx->blocks, while something is free
 * @free: the first that is free, or NULL
 * @used: how many are not
 * @timer: the timers
 */
struct spot_block {
	struct list_head link;
	struct spot_dev_timer *free;
	unsigned int used;
	struct spot_dev_timer timer[] ____cacheline_aligned;
};

#define SPOT_BLOCK_TIMERS						\
	((SPOT_BLOCK_SIZE - sizeof(struct spot_block)) /		\
	 sizeof(struct spot_dev_timer))
static_assert(SPOT_BLOCK_TIMERS > 0);

/**
 * struct spot_owner - one epoch, or several adopted ones, of an owner
 * @lease: the lease
 * @id: the owner
 * @ctx: the context
 * @refs: timers under it, and one for the table of owners
 * @replaced: a new grant has taken its place, or it was forgotten: its timers
 *	have to end
 * @void_generation: up to this one, timers were there when ticks were missed
 *	that the lease's @void_until makes void
 * @lapsed: place in ctx->lapsed
 * @lapsed_epoch: the epoch that has run out
 * @rcu: for freeing
 */
struct spot_owner {
	struct spot_lease lease;
	u64 id;
	struct spot_ctx *ctx;
	unsigned int refs;
	bool replaced;
	u64 void_generation;
	struct list_head lapsed;
	u64 lapsed_epoch;
	struct rcu_head rcu;
};

/**
 * struct spot_user - timers of one user, over all contexts
 * @uid: the user who opened them
 * @refs: contexts
 * @timers: timers, and owners, of all of them
 */
struct spot_user {
	kuid_t uid;
	unsigned int refs;
	struct percpu_counter timers;
};

/**
 * struct spot_table - a hash table of timers by key
 * @bucket: heads of the chains, NULL for no table
 * @bits: there are 2^bits buckets
 */
struct spot_table {
	struct spot_dev_timer **bucket;
	unsigned int bits;
};

/**
 * struct spot_ctx - an open file
 * @lock: see above
 * @table: the timers, by key
 * @old: the table before it, while timers are moved from there
 * @moved: buckets of @old, from the first, that have been moved
 * @mult: secret multiplier of the hash
 * @objects: timers in the table, ended ones too
 * @blocks: memory for timers in which something is free
 * @nr_blocks: all memory for timers
 * @timers: timers that have not ended, or whose END record was not read yet
 * @nr_ended: length of @ended
 * @ended: timers that have ended, the oldest first
 * @generation: the last generation number that was used
 * @owners: owners by their id, the entry being the current epoch's
 * @nr_owners: how many there are
 * @queue: timers that are due
 * @lapsed: owners whose leases have run out, not read yet; under @queue's lock
 * @read_wait: readers and pollers
 * @cancel_wait: who waits for the end of a handler
 * @owner_mutex: see above
 * @resize_mutex: see above
 * @user: who opened the file
 * @rcu: for freeing
 */
struct spot_ctx {
	spinlock_t lock;	/* protects all but the queue and @lapsed */
	struct spot_table table;
	struct spot_table old;
	unsigned int moved;
	u64 mult;
	unsigned int objects;
	struct list_head blocks;
	unsigned int nr_blocks;
	unsigned int timers;
	unsigned int nr_ended;
	struct list_head ended;
	u64 generation;
	struct xarray owners;
	unsigned int nr_owners;
	struct spot_queue queue;
	struct list_head lapsed;
	wait_queue_head_t read_wait;
	wait_queue_head_t cancel_wait;
	struct mutex owner_mutex;	/* serialises changes of leases */
	struct mutex resize_mutex;	/* keeps the table as it is */
	struct spot_user *user;
	struct rcu_head rcu;
};

struct spot_call;

/**
 * struct spot_wait - who waits for a handler to complete
 * @link: place in the timer's list, until @done
 * @more: place in the caller's list
 * @call: the caller
 * @entry: the entry that it is for, in user memory
 * @done: the generation has ended, and the rest is filled in
 * @result: its terminal result
 */
struct spot_wait {
	struct list_head link;
	struct list_head more;
	struct spot_call *call;
	struct spottimer_cancel __user *entry;
	bool done;
	s32 result;
};

/**
 * struct spot_call - a call of the user that works on timers
 * @ctx: the context
 * @batch: the engine's locks, while ctx->lock is held
 * @stale: an old hash table, to be freed without locks
 * @waits: what to wait for at the end
 * @entry: in user memory, the first entry that is being worked on
 * @stride: from there to the next one
 * @settle: timers have to be looked at because leases have changed
 * @near_limit: the user has nearly as many timers as are allowed
 * @charge: what the user has to be charged with at the end; below zero for timers
 *	that have ended, and for those that he was charged with ahead
 */
struct spot_call {
	struct spot_ctx *ctx;
	struct spot_batch batch;
	struct spot_dev_timer **stale;
	struct list_head waits;
	void __user *entry;
	unsigned int stride;
	bool settle;
	bool near_limit;
	int charge;
};

static DEFINE_XARRAY(spot_users);
static DEFINE_MUTEX(spot_users_mutex);

/*
 * Calls, and their locks
 */

static void spot_call_init(struct spot_call *call, struct spot_ctx *ctx)
{
	call->ctx = ctx;
	call->stale = NULL;
	INIT_LIST_HEAD(&call->waits);
	call->settle = false;
	call->near_limit = false;
	call->charge = 0;
}

static void spot_enter(struct spot_call *call)
	__acquires(&call->ctx->lock)
{
	spin_lock_bh(&call->ctx->lock);
	spot_batch_begin(&call->batch);
}

static void spot_leave(struct spot_call *call)
	__releases(&call->ctx->lock)
{
	spot_batch_end(&call->batch);
	if (call->charge) {
		percpu_counter_add(&call->ctx->user->timers, call->charge);
		call->charge = 0;
	}
	spin_unlock_bh(&call->ctx->lock);
	if (call->stale) {
		kvfree(call->stale);
		call->stale = NULL;
	}
}

/*
 * Blocks
 */

/* Memory for timers, which is not in any context yet. May sleep. */
static struct spot_block *spot_block_new(void)
{
	struct spot_block *block = kmalloc(SPOT_BLOCK_SIZE, GFP_KERNEL_ACCOUNT);
	unsigned int i;

	if (!block)
		return NULL;
	block->used = 0;
	block->free = NULL;
	for (i = SPOT_BLOCK_TIMERS; i--;) {
		block->timer[i].next = block->free;
		block->free = &block->timer[i];
	}
	return block;
}

static void spot_block_add(struct spot_ctx *ctx, struct spot_block *block)
{
	list_add(&block->link, &ctx->blocks);
	ctx->nr_blocks++;
}

static void spot_block_free(struct spot_ctx *ctx, struct spot_block *block)
{
	list_del(&block->link);
	ctx->nr_blocks--;
	kfree(block);
}

/* There is something free. */
static struct spot_dev_timer *spot_timer_get(struct spot_ctx *ctx)
{
	struct spot_block *block = list_first_entry(&ctx->blocks,
						    struct spot_block, link);
	struct spot_dev_timer *t = block->free;

	block->used++;
	block->free = t->next;
	if (!block->free)
		list_del(&block->link);
	return t;
}

static void spot_timer_put(struct spot_ctx *ctx, struct spot_dev_timer *t)
{
	struct spot_block *block = PTR_ALIGN_DOWN((void *)t, SPOT_BLOCK_SIZE);

	if (!block->free)
		list_add(&block->link, &ctx->blocks);
	t->next = block->free;
	block->free = t;
	/* keep the last one: there may be more to come */
	if (!--block->used && (IS_ENABLED(CONFIG_KASAN) ||
			       !list_is_singular(&ctx->blocks)))
		spot_block_free(ctx, block);
}

/*
 * The table. A resize moves a few buckets with every chunk of entries, so that
 * none takes long, and is over before the next one is due.
 */

static struct spot_dev_timer **spot_table_bucket(const struct spot_table *table,
						 u64 hash)
{
	return &table->bucket[hash >> (64 - table->bits)];
}

/* Multiply-shift with a secret multiplier: no fixed set of keys is a bad one. */
static struct spot_dev_timer **spot_bucket(struct spot_ctx *ctx, u64 key)
{
	u64 hash = key * ctx->mult;

	if (unlikely(ctx->old.bucket)) {
		unsigned int i = hash >> (64 - ctx->old.bits);

		if (i >= ctx->moved)
			return &ctx->old.bucket[i];
	}
	return spot_table_bucket(&ctx->table, hash);
}

/* @head is the bucket of its key. */
static void spot_table_insert(struct spot_ctx *ctx,
			      struct spot_dev_timer **head,
			      struct spot_dev_timer *t)
{
	t->next = *head;
	*head = t;
	WRITE_ONCE(ctx->objects, ctx->objects + 1);
}

static void spot_table_remove(struct spot_ctx *ctx, struct spot_dev_timer *t)
{
	struct spot_dev_timer **link = spot_bucket(ctx, t->key);

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	WRITE_ONCE(ctx->objects, ctx->objects - 1);
}

/* Move up to @n buckets of a resize that is under way. */
static void spot_table_move(struct spot_call *call, unsigned int n)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_dev_timer **from, **end;

	if (!ctx->old.bucket)
		return;
	from = ctx->old.bucket + ctx->moved;
	n = min(n, (1U << ctx->old.bits) - ctx->moved);
	for (end = from + n; from < end; from++) {
		struct spot_dev_timer *t;

		while ((t = *from)) {
			struct spot_dev_timer **head =
				spot_table_bucket(&ctx->table,
						  t->key * ctx->mult);

			*from = t->next;
			t->next = *head;
			*head = t;
		}
	}
	ctx->moved += n;
	if (ctx->moved == 1U << ctx->old.bits) {
		call->stale = ctx->old.bucket;
		WRITE_ONCE(ctx->old.bucket, NULL);
	}
}

/* Move all that a resize has left. The caller has resize_mutex. */
static void spot_table_settle(struct spot_call *call)
{
	while (READ_ONCE(call->ctx->old.bucket)) {
		spot_enter(call);
		spot_table_move(call, SPOT_TABLE_STEP);
		spot_leave(call);
		cond_resched();
	}
}

/*
 * Give the table a size for @objects, if it is too small or far too large: four
 * times what it had, since to move a timer costs more than two buckets of memory
 * to spare. Out of memory is no error: chains are longer then.
 */
static void spot_table_resize(struct spot_call *call, unsigned int objects)
{
	unsigned int bits = max(SPOT_TABLE_BITS, ilog2(objects | 1) + 1U);
	struct spot_ctx *ctx = call->ctx;
	unsigned int now = READ_ONCE(ctx->table.bits);
	bool grow = objects / 5 > (1U << now) / 4;
	struct spot_table table = { .bits = grow ? max(now + 2, bits) : bits };

	if (!grow && bits + 2 >= now)
		return;
	if (!mutex_trylock(&ctx->resize_mutex))
		return;
	spot_table_settle(call);
	table.bucket = kvcalloc(1UL << table.bits, sizeof(*table.bucket),
				GFP_KERNEL_ACCOUNT | __GFP_NOWARN |
				__GFP_RETRY_MAYFAIL);
	if (table.bucket) {
		spot_enter(call);
		ctx->old = ctx->table;
		ctx->moved = 0;
		WRITE_ONCE(ctx->table.bits, table.bits);
		ctx->table.bucket = table.bucket;
		spot_leave(call);
		/* when timers become fewer nobody will come to move the rest */
		if (!grow)
			spot_table_settle(call);
	}
	mutex_unlock(&ctx->resize_mutex);
}

/**
 * typedef spot_visit_fn - what to do with a timer on a walk
 * @call: the call; ctx->lock is held
 * @t: the timer
 * @arg: see spot_walk()
 *
 * Return: whether anything was done. The timer will be shown again then.
 */
typedef bool (*spot_visit_fn)(struct spot_call *call, struct spot_dev_timer *t,
			      void *arg);

/* Show all timers of the context to @visit. Takes time, and may sleep. */
static void spot_walk(struct spot_call *call, spot_visit_fn visit, void *arg)
{
	struct spot_ctx *ctx = call->ctx;
	unsigned int i, done = 0;

	mutex_lock(&ctx->resize_mutex);
	spot_table_settle(call);
	spot_enter(call);
	for (i = 0; i < 1U << ctx->table.bits; i++) {
		struct spot_dev_timer *t = ctx->table.bucket[i];

		while (t) {
			/* what was done may have freed any that has ended */
			if (visit(call, t, arg))
				t = ctx->table.bucket[i];
			else
				t = t->next;
			done++;
		}
		if (++done >= SPOT_TABLE_STEP) {
			spot_leave(call);
			cond_resched();
			spot_enter(call);
			done = 0;
		}
	}
	spot_leave(call);
	mutex_unlock(&ctx->resize_mutex);
}

/*
 * Timers
 */

static struct spot_dev_timer *spot_dev_timer(struct spot_core *core)
{
	return container_of(core, struct spot_dev_timer, core);
}

static struct spot_owner *spot_dev_owner(const struct spot_dev_timer *t)
{
	struct spot_lease *lease = t->core.lease;

	return lease ? container_of(lease, struct spot_owner, lease) : NULL;
}

static bool spot_has_ended(const struct spot_dev_timer *t)
{
	return spot_core_state(&t->core) == SPOT_IDLE;
}

static bool spot_is_live(const struct spot_dev_timer *t)
{
	return !spot_has_ended(t) && !(t->flags & SPOT_DEV_DYING);
}

/* The same as spot_find(), of the timers from @t on. */
static inline struct spot_dev_timer *
spot_find_from(struct spot_dev_timer *t, u64 key, u64 generation)
{
	struct spot_dev_timer *found = NULL;

	for (; t; t = t->next) {
		if (t->key != key)
			continue;
		if (t->generation == generation)
			return t;
		if (!generation &&
		    (!found || found->generation < t->generation))
			found = t;
	}
	return found;
}

/* The timer of a generation of a key, or of its newest for generation 0. */
static struct spot_dev_timer *spot_find(struct spot_ctx *ctx, u64 key,
					u64 generation)
{
	return spot_find_from(*spot_bucket(ctx, key), key, generation);
}

/* The one timer of a key whose handler runs, or NULL. */
static struct spot_dev_timer *spot_find_running(struct spot_ctx *ctx, u64 key)
{
	struct spot_dev_timer *t;

	for (t = *spot_bucket(ctx, key); t; t = t->next)
		if (t->key == key && spot_core_state(&t->core) == SPOT_RUNNING)
			return t;
	return NULL;
}

/* The one timer of a key that has ended and is remembered, or NULL. */
static struct spot_dev_timer *spot_find_buried(struct spot_ctx *ctx, u64 key)
{
	struct spot_dev_timer *t;

	for (t = *spot_bucket(ctx, key); t; t = t->next)
		if (t->key == key && t->flags & SPOT_DEV_BURIED)
			return t;
	return NULL;
}

/* Why a generation was not found. */
static int spot_not_found(struct spot_ctx *ctx, u64 key, u64 generation)
{
	struct spot_dev_timer *t = spot_find(ctx, key, 0);

	return t && generation && t->generation > generation ? -ESTALE : -ENOENT;
}

/* Whether the caller is the handler of @t, as far as one can tell. */
static bool spot_is_handler(const struct spot_dev_timer *t)
{
	return t->taker == (t->flags & SPOT_DEV_BY_PROCESS ? current->tgid :
							     current->pid);
}

static void spot_uncharge(struct spot_ctx *ctx)
{
	percpu_counter_dec(&ctx->user->timers);
}

/* One more for the user, who may have it if asked. Exact near the limit. */
static bool spot_charge(struct spot_ctx *ctx, bool ask)
{
	percpu_counter_inc(&ctx->user->timers);
	if (!ask || percpu_counter_compare(&ctx->user->timers,
					   READ_ONCE(spot_max_user_timers)) <= 0)
		return true;
	spot_uncharge(ctx);
	return false;
}

/*
 * The next @n timers are the user's, so that there is no atomic, and no look at
 * other CPUs, for each. What is not used is given back at the end, with the lock:
 * meanwhile others may be refused for it, and so it is not done near the limit.
 */
static void spot_charge_ahead(struct spot_call *call, unsigned int n)
{
	struct percpu_counter *timers = &call->ctx->user->timers;
	s64 max = READ_ONCE(spot_max_user_timers);

	lockdep_assert_held(&call->ctx->lock);

	call->near_limit =
		percpu_counter_compare(timers, max - SPOT_CHUNK *
				       num_possible_cpus()) > 0;
	if (call->near_limit)
		return;
	percpu_counter_add(timers, n);
	if (percpu_counter_compare(timers, max) <= 0) {
		call->charge -= n;
		return;
	}
	/* others have come first */
	percpu_counter_sub(timers, n);
	call->near_limit = true;
}

/* The same for a timer: it is one of those charged ahead, but near the limit. */
static bool spot_charge_timer(struct spot_call *call, bool ask)
{
	if (call->near_limit)
		return spot_charge(call->ctx, ask);
	call->charge++;
	return true;
}

static void spot_owner_put(struct spot_owner *owner)
{
	if (!--owner->refs)
		kfree_rcu(owner, rcu);
}

/* Forget a timer that has ended. */
static inline void spot_forget(struct spot_call *call, struct spot_dev_timer *t)
{
	spot_entry_unlink(&t->core.entry);
	call->ctx->nr_ended--;
	spot_table_remove(call->ctx, t);
	spot_timer_put(call->ctx, t);
}

/*
 * @t has ended and has nothing to say any more, but if somebody asks. Of a key
 * one such timer is kept, so that chains do not grow with what has been.
 */
static void spot_bury(struct spot_call *call, struct spot_dev_timer *t)
{
	struct spot_owner *owner = spot_dev_owner(t);
	struct spot_ctx *ctx = call->ctx;
	struct spot_dev_timer *other = NULL;

	if (owner) {
		t->core.lease = NULL;
		spot_owner_put(owner);
	}
	ctx->timers--;
	call->charge--;

	/* of one that comes later it may be the earlier one */
	if (t->flags & (SPOT_DEV_NOT_ALONE | SPOT_DEV_DYING))
		other = spot_find_buried(ctx, t->key);
	/* it was replaced while it ran, and the next one has ended before it */
	if (other && other->generation > t->generation) {
		spot_table_remove(ctx, t);
		spot_timer_put(call->ctx, t);
		return;
	}
	if (other)
		spot_forget(call, other);
	t->flags |= SPOT_DEV_BURIED;
	spot_entry_link(&t->core.entry, &ctx->ended);
	if (++ctx->nr_ended > SPOT_ENDED_MAX)
		spot_forget(call, list_first_entry(&ctx->ended,
						   struct spot_dev_timer,
						   core.entry.link));
}

/* @t is idle now: its generation has ended. It may be gone after this. */
static void spot_end(struct spot_call *call, struct spot_dev_timer *t)
{
	if (t->flags & SPOT_DEV_TELL_END)
		spot_batch_push(&call->batch, &t->core);
	else
		spot_bury(call, t);
}

/* Whether @t, which is due, must not start now. */
static bool spot_is_held(struct spot_call *call, struct spot_dev_timer *t)
{
	struct spot_lease *lease = t->core.lease;

	if (lease && !spot_lease_admit(lease, spot_batch_now(&call->batch,
							     SPOT_BOOTTIME)))
		return true;
	return t->flags & SPOT_DEV_AFTER && spot_find_running(call->ctx, t->key);
}

/*
 * What may start, and what becomes of that which may not. @t was popped from
 * the queue; if the answer is no, it is somewhere else now.
 */
static bool spot_look_if_may_start(struct spot_call *call, struct spot_dev_timer *t)
{
	struct spot_owner *owner = spot_dev_owner(t);
	struct spot_batch *batch = &call->batch;

	if (spot_is_held(call, t)) {
		spot_batch_hold(batch, &t->core);
		return false;
	}
	t->flags &= ~SPOT_DEV_AFTER;
	if (owner && t->generation <= owner->void_generation) {
		s64 until =
			owner->lease.void_until[spot_core_clock(&t->core)];

		if (t->core.entry.deadline <= until) {
			if (spot_overrun_skip(&t->core.overrun,
					      &t->core.entry.deadline, until)) {
				spot_batch_resume(batch, &t->core);
			} else {
				spot_batch_cancel(batch, &t->core);
				spot_end(call, t);
			}
			return false;
		}
	}
	return true;
}

/* Most timers, and all that just tell their end, have no reason not to. */
static inline bool spot_may_surely_start(const struct spot_dev_timer *t)
{
	return (!t->core.lease && !(t->flags & SPOT_DEV_AFTER)) ||
	       spot_has_ended(t);
}

static inline bool spot_may_start(struct spot_call *call,
				  struct spot_dev_timer *t)
{
	return spot_may_surely_start(t) || spot_look_if_may_start(call, t);
}

/* What the user is told about where @t is. */
static u32 spot_state_shown(struct spot_call *call, struct spot_dev_timer *t)
{
	u32 state = spot_core_state(&t->core);

	if (!state)
		return SPOTTIMER_ENDED;
	/* the queue finds out when somebody takes from it */
	if (state == SPOTTIMER_READY && spot_is_held(call, t))
		return SPOTTIMER_HELD;
	return state;
}

/* Let a timer that was held go on, if nothing else holds it. */
static void spot_unhold(struct spot_call *call, struct spot_dev_timer *t)
{
	if (spot_may_start(call, t))
		spot_batch_resume(&call->batch, &t->core);
}

/* The handler of @t, which is dying, has completed. */
static void spot_end_dying(struct spot_call *call, struct spot_dev_timer *t)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_wait *wait, *next;
	struct spot_dev_timer *heir;
	u64 key = t->key;

	list_for_each_entry_safe(wait, next, &t->core.entry.link, link) {
		wait->result = t->result;
		/* what it stands for comes before it, see spot_wait_done() */
		smp_store_release(&wait->done, true);
	}
	wake_up_all(&ctx->cancel_wait);

	spot_batch_complete(&call->batch, &t->core, false);
	spot_end(call, t);

	heir = spot_find(ctx, key, 0);
	if (heir && spot_core_state(&heir->core) == SPOT_HELD)
		spot_unhold(call, heir);
}

/*
 * Time, as the user means it
 */

/* SPOT_NR_CLOCKS if no timer can run on it. */
static enum spot_clock spot_clock_from_user(u32 id)
{
	switch (id) {
	case CLOCK_MONOTONIC:
		return SPOT_MONOTONIC;
	case CLOCK_BOOTTIME:
		return SPOT_BOOTTIME;
	case CLOCK_REALTIME:
		return SPOT_REALTIME;
	default:
		return SPOT_NR_CLOCKS;
	}
}

/* From a time in the caller's time namespace to one of the machine. */
static s64 spot_time_from_user(s64 time, enum spot_clock clock)
{
#ifdef CONFIG_TIME_NS
	const struct timens_offsets *offsets =
		&current->nsproxy->time_ns->offsets;
	s64 offset = timespec64_to_ns(clock == SPOT_BOOTTIME ?
				      &offsets->boottime : &offsets->monotonic);

	/* the time of day is the same in all of them */
	if (clock == SPOT_REALTIME)
		return time;
	if (check_sub_overflow(time, offset, &time))
		return KTIME_MAX;
	return max_t(s64, time, 0);
#else
	return time;
#endif
}

static s64 spot_time_after(s64 now, s64 delay)
{
	return delay > KTIME_MAX - now ? KTIME_MAX : now + delay;
}

/*
 * SPOTTIMER_IOC_REGISTER
 */

static int spot_register_check(const struct spottimer_register *e)
{
	const u32 known = SPOTTIMER_REG_ABSTIME | SPOTTIMER_REG_EXCL |
			  SPOTTIMER_REG_REARM | SPOTTIMER_REG_MANUAL |
			  SPOTTIMER_REG_CRITICAL;

	if (e->flags & ~known || e->reserved)
		return -EINVAL;
	/* one says that there must be a timer, the other that there must not */
	if (e->flags & SPOTTIMER_REG_EXCL &&
	    (e->flags & SPOTTIMER_REG_REARM || e->generation))
		return -EINVAL;
	if ((e->first | e->period | e->slack) < 0)
		return -EINVAL;
	if (e->policy > SPOTTIMER_DELAY_NEXT)
		return -EINVAL;
	if (e->policy == SPOTTIMER_CATCH_UP && e->max_catch_up > INT_MAX)
		return -EINVAL;
	/* an owner always has an epoch, and no owner has none */
	if (!e->owner != !e->epoch)
		return -EINVAL;
	if (spot_clock_from_user(e->clock) == SPOT_NR_CLOCKS)
		return e->clock <= CLOCK_TAI ? -EOPNOTSUPP : -EINVAL;
	if (e->flags & SPOTTIMER_REG_CRITICAL && !capable(CAP_SYS_NICE))
		return -EPERM;
	return 0;
}

/* Fill in @t, which is new or was claimed, and start it; with these @flags, too. */
static void spot_register_start(struct spot_call *call,
				struct spot_dev_timer *t,
				const struct spottimer_register *e,
				struct spot_owner *owner, u16 flags)
{
	enum spot_clock clock = spot_clock_from_user(e->clock);
	struct spot_core *core = &t->core;
	u32 max = SPOT_SKIP_LATE;

	if (e->policy == SPOTTIMER_DELAY_NEXT)
		max = SPOT_DELAY_NEXT;
	else if (e->policy == SPOTTIMER_CATCH_UP && e->max_catch_up)
		max = e->max_catch_up;

	spot_core_init_queued(core, clock, e->flags & SPOTTIMER_REG_CRITICAL,
			      &call->ctx->queue);
	if (e->flags & SPOTTIMER_REG_ABSTIME)
		core->entry.deadline = spot_time_from_user(e->first, clock);
	else
		core->entry.deadline =
			spot_time_after(spot_batch_now(&call->batch, clock),
					e->first);
	core->entry.slack = spot_core_slack(e->slack);
	spot_overrun_init(&core->overrun, e->period, max);
	if (owner) {
		core->lease = &owner->lease;
		owner->refs++;
	}

	t->generation = ++call->ctx->generation;
	t->key = e->key;
	t->cookie = e->cookie;
	t->taker = 0;
	t->result = 0;
	t->flags = flags | e->policy |
		   (e->flags & SPOTTIMER_REG_MANUAL ? SPOT_DEV_MANUAL : 0);
	spot_batch_here(&call->batch);
	spot_batch_add_started(&call->batch, core);
	trace_spottimer_register(call->ctx, core, t->key, t->generation,
				 e->owner);
}

/*
 * Register one timer. Return: 0, an error, or -EAGAIN if memory is needed and
 * there is none.
 */
static int spot_register_one(struct spot_call *call,
			     struct spottimer_register *e)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_dev_timer **head = spot_bucket(ctx, e->key);
	struct spot_dev_timer *newest = spot_find_from(*head, e->key, 0);
	struct spot_dev_timer *t = newest;
	struct spot_owner *owner = NULL;
	u16 flags = 0;

	if (t && spot_is_live(t)) {
		if (e->flags & SPOTTIMER_REG_EXCL)
			return -EEXIST;
		if (e->generation && e->generation != t->generation)
			return e->generation < t->generation ? -ESTALE : -ENOENT;
	} else {
		if (e->flags & SPOTTIMER_REG_REARM || e->generation)
			return -ENOENT;
		t = NULL;
	}

	if (e->owner) {
		owner = xa_load(&ctx->owners, e->owner);
		if (!owner)
			return -EKEYEXPIRED;
		if (owner->lease.epoch != e->epoch)
			return -ESTALE;
		if (!spot_lease_admit(&owner->lease,
				      spot_batch_now(&call->batch,
						     SPOT_BOOTTIME)))
			return -EKEYEXPIRED;
	}

	if (t && spot_core_state(&t->core) != SPOT_RUNNING) {
		struct spot_owner *last = spot_dev_owner(t);

		/* the same object serves, and the old generation just goes */
		flags = t->flags & (SPOT_DEV_AFTER | SPOT_DEV_NOT_ALONE);
		spot_batch_claim(&call->batch, &t->core);
		if (last)
			spot_owner_put(last);
	} else {
		/* a key that has a timer keeps it, whatever the limit is now */
		if (!t && ctx->timers >= READ_ONCE(spot_max_timers))
			return -ENOSPC;
		if (list_empty(&ctx->blocks))
			return -EAGAIN;
		if (!spot_charge_timer(call, !t))
			return -ENOSPC;
		if (t)
			t->flags |= SPOT_DEV_DYING;
		if (newest)
			flags = SPOT_DEV_NOT_ALONE;
		if (newest && spot_find_running(ctx, e->key))
			flags |= SPOT_DEV_AFTER;
		t = spot_timer_get(ctx);
		spot_table_insert(ctx, head, t);
		ctx->timers++;
	}
	spot_register_start(call, t, e, owner, flags);
	e->generation = t->generation;
	return 0;
}

static void spot_register(struct spot_call *call, void *entries, unsigned int n)
{
	struct spottimer_register *e = entries;
	struct spot_ctx *ctx = call->ctx;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!e[i].error)
			e[i].error = spot_register_check(&e[i]);

	spot_table_resize(call, READ_ONCE(ctx->objects) + n);
	spot_enter(call);
	spot_charge_ahead(call, n);
	spot_table_move(call, SPOT_TABLE_STEP);
	for (i = 0; i < n; i++) {
		if (e[i].error)
			continue;
		for (;;) {
			struct spot_block *block;

			e[i].error = spot_register_one(call, &e[i]);
			if (e[i].error != -EAGAIN)
				break;
			/* others may use up what is added, before it is our turn */
			spot_leave(call);
			block = spot_block_new();
			spot_enter(call);
			spot_charge_ahead(call, n - i);
			if (!block) {
				e[i].error = -ENOMEM;
				break;
			}
			spot_block_add(ctx, block);
		}
	}
	spot_leave(call);
}

/*
 * SPOTTIMER_IOC_CANCEL
 */

/* Take @t out of where it is. Return: where it was; it is still RUNNING. */
static __always_inline enum spot_state
spot_cancel_core(struct spot_call *call, struct spot_dev_timer *t)
{
	struct spot_batch *batch = &call->batch;
	struct spot_cpu *cpu = spot_batch_lock_core(batch, &t->core);
	enum spot_state state = spot_cpu_remove(cpu, &t->core, &batch->dirty);

	trace_spottimer_cancel(&t->core, t->key, t->generation, state);
	return state;
}

#define SPOT_CANCEL_MANY	(SPOTTIMER_CANCEL_OWNER | SPOTTIMER_CANCEL_ALL)

/*
 * End a generation, or have it end when its handler completes.
 *
 * Return: 0 if it has ended; -EINPROGRESS if it will, and the caller cannot or
 * does not want to wait; -EINTR if the caller has to wait, which is prepared;
 * -ENOMEM if it cannot be, and nothing was done.
 */
static int spot_cancel_timer(struct spot_call *call, struct spot_dev_timer *t,
			     u32 flags, struct spottimer_cancel __user *entry)
{
	bool nowait = flags & SPOTTIMER_CANCEL_NOWAIT;
	struct spot_wait *wait;

	if (spot_has_ended(t))
		return 0;
	if (spot_cancel_core(call, t) != SPOT_RUNNING) {
		spot_end(call, t);
		return 0;
	}
	if (nowait || spot_is_handler(t)) {
		t->flags |= SPOT_DEV_DYING | (nowait ? SPOT_DEV_TELL_END : 0);
		return -EINPROGRESS;
	}

	wait = kmalloc(sizeof(*wait), GFP_NOWAIT | __GFP_NOWARN |
				      __GFP_ACCOUNT);
	if (!wait)
		return -ENOMEM;
	wait->call = call;
	wait->entry = entry;
	wait->done = false;
	list_add_tail(&wait->link, &t->core.entry.link);
	list_add_tail(&wait->more, &call->waits);
	t->flags |= SPOT_DEV_DYING;
	return -EINTR;
}

/* Whether @entry of this call waits for the end of @t. */
static bool spot_has_wait(struct spot_call *call, struct spot_dev_timer *t,
			  struct spottimer_cancel __user *entry)
{
	struct spot_wait *wait;

	list_for_each_entry(wait, &t->core.entry.link, link)
		if (wait->call == call && wait->entry == entry)
			return true;
	return false;
}

/* An entry that cancels many timers: those up to generation @last. */
struct spot_cancel_many {
	struct spottimer_cancel *e;
	struct spottimer_cancel __user *entry;
	u64 last;
};

static bool spot_cancel_visit(struct spot_call *call, struct spot_dev_timer *t,
			      void *arg)
{
	struct spot_owner *owner = spot_dev_owner(t);
	struct spot_cancel_many *many = arg;
	struct spottimer_cancel *e = many->e;
	bool was_live = spot_is_live(t);
	s32 result = t->result;
	int error;

	if (spot_has_ended(t) || t->generation > many->last)
		return false;
	if (e->flags & SPOTTIMER_CANCEL_OWNER &&
	    (!owner || owner->id != e->key))
		return false;
	if (e->error == -ENOMEM)
		return false;

	/* one that is dying may be shown twice, and is waited for once */
	if (!was_live && spot_has_wait(call, t, many->entry))
		return false;

	error = spot_cancel_timer(call, t, e->flags, many->entry);
	/* what cannot be waited for stands above what will be */
	if (error && (!e->error || e->error == -EINTR))
		e->error = error;
	if (error == -ENOMEM) {
		e->error = error;
		return false;
	}
	if (!error && !e->result)
		e->result = result;
	e->cancelled += was_live;
	return !error;
}

/*
 * One of the handlers that @entry would wait for is the caller. So it is not to
 * wait at all: another handler may be doing the same, and they would wait for
 * each other.
 */
static void spot_cancel_no_wait(struct spot_call *call,
				struct spottimer_cancel __user *entry)
{
	struct spot_wait *wait, *next;

	lockdep_assert_held(&call->ctx->lock);

	list_for_each_entry_safe(wait, next, &call->waits, more) {
		if (wait->entry != entry)
			continue;
		if (!wait->done)
			list_del(&wait->link);
		list_del(&wait->more);
		kfree(wait);
	}
}

static int spot_cancel_check(const struct spottimer_cancel *e)
{
	if (e->flags & ~(SPOTTIMER_CANCEL_NOWAIT | SPOT_CANCEL_MANY) ||
	    e->reserved)
		return -EINVAL;
	if (!(e->flags & SPOT_CANCEL_MANY))
		return 0;
	if ((e->flags & SPOT_CANCEL_MANY) == SPOT_CANCEL_MANY || e->generation)
		return -EINVAL;
	/* owner 0 is none; all has no name */
	if (!e->key != !!(e->flags & SPOTTIMER_CANCEL_ALL))
		return -EINVAL;
	return 0;
}

static void spot_cancel_one(struct spot_call *call, struct spottimer_cancel *e,
			    struct spottimer_cancel __user *entry)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_dev_timer *t = *spot_bucket(ctx, e->key);
	bool ended;

	t = spot_find_from(t, e->key, e->generation);
	if (!t) {
		e->error = spot_not_found(ctx, e->key, e->generation);
		return;
	}
	ended = spot_has_ended(t);
	e->generation = t->generation;
	e->started = t->core.overrun.delivered;
	e->result = t->result;
	e->error = spot_cancel_timer(call, t, e->flags, entry);
	if (e->error)
		e->result = 0;
	e->cancelled = !ended && e->error != -ENOMEM;
}

static void spot_cancel(struct spot_call *call, void *entries, unsigned int n)
{
	struct spottimer_cancel *e = entries;
	struct spot_ctx *ctx = call->ctx;
	unsigned int i;

	spot_enter(call);
	for (i = 0; i < n; i++) {
		void __user *entry = call->entry + (size_t)i * call->stride;

		if (!e[i].error)
			e[i].error = spot_cancel_check(&e[i]);
		if (e[i].error)
			continue;
		e[i].started = 0;
		e[i].cancelled = 0;
		e[i].result = 0;
		if (e[i].flags & SPOT_CANCEL_MANY) {
			struct spot_cancel_many many = {
				.e = &e[i],
				.entry = entry,
				.last = ctx->generation,
			};

			spot_leave(call);
			spot_walk(call, spot_cancel_visit, &many);
			spot_enter(call);
			if (e[i].error && e[i].error != -EINTR)
				spot_cancel_no_wait(call, entry);
		} else {
			spot_cancel_one(call, &e[i], entry);
		}
	}
	spot_leave(call);
}

static bool spot_wait_done(struct spot_wait *wait)
{
	/* what it stands for comes after it, see spot_end_dying() */
	return smp_load_acquire(&wait->done);
}

/*
 * Wait for the handlers for which the call has to, and write the results. The
 * entries say EINTR until then, or EFAULT if even that could not be written.
 */
static void spot_cancel_finish(struct spot_call *call)
{
	struct spot_ctx *ctx = call->ctx;
	struct spottimer_cancel __user *last = NULL;
	struct spot_wait *wait, *next;
	bool interrupted = false;
	bool tell = false;
	s32 result = 0;
	s32 error = 0;

	list_for_each_entry_safe(wait, next, &call->waits, more) {
		if (!interrupted)
			interrupted = wait_event_interruptible(ctx->cancel_wait,
							       spot_wait_done(wait));
		if (interrupted) {
			spin_lock_bh(&ctx->lock);
			if (!wait->done)
				list_del(&wait->link);
			spin_unlock_bh(&ctx->lock);
		}

		/* the results of many go into one entry, with what is there */
		if (wait->entry != last) {
			last = wait->entry;
			tell = !get_user(error, &last->error) &&
			       error == -EINTR &&
			       !get_user(result, &last->result);
			error = 0;
		}
		if (!wait->done)
			error = -EINTR;
		else if (!result)
			result = wait->result;
		if (tell && !put_user(error ? 0 : result, &last->result))
			put_user(error, &last->error);
		kfree(wait);
	}
}

/*
 * SPOTTIMER_IOC_COMPLETE
 */

static int spot_complete_one(struct spot_call *call,
			     const struct spottimer_complete *e)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_dev_timer *t;

	if (e->flags || e->reserved || e->result > 0 || e->result < -4095)
		return -EINVAL;
	t = spot_find_running(ctx, e->key);
	if (!t || (e->generation && t->generation != e->generation))
		return spot_not_found(ctx, e->key, e->generation);

	t->result = e->result;
	t->taker = 0;
	trace_spottimer_complete(&t->core, t->key, t->generation, t->result);
	if (t->flags & SPOT_DEV_DYING)
		spot_end_dying(call, t);
	else if (!spot_batch_complete(&call->batch, &t->core, true))
		spot_end(call, t);
	return 0;
}

static void spot_complete(struct spot_call *call, void *entries, unsigned int n)
{
	struct spottimer_complete *e = entries;
	unsigned int i;

	spot_enter(call);
	for (i = 0; i < n; i++)
		if (!e[i].error)
			e[i].error = spot_complete_one(call, &e[i]);
	spot_leave(call);
}

/*
 * SPOTTIMER_IOC_QUERY
 */

static int spot_query_one(struct spot_call *call, struct spottimer_query *e)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_dev_timer *t;
	struct spot_owner *owner;
	s64 now;

	if (e->flags || e->reserved)
		return -EINVAL;
	t = spot_find(ctx, e->key, e->generation);
	if (!t)
		return spot_not_found(ctx, e->key, e->generation);

	owner = spot_dev_owner(t);
	now = spot_batch_now(&call->batch, spot_core_clock(&t->core));
	e->generation = t->generation;
	e->cookie = t->cookie;
	e->owner = owner ? owner->id : 0;
	e->started = t->core.overrun.delivered;
	e->scheduled = t->core.overrun.last;
	e->period = t->core.overrun.period;
	e->policy = t->flags & SPOT_DEV_POLICY;
	e->result = t->result;
	e->state = spot_state_shown(call, t);
	e->remaining = 0;
	if (e->state != SPOTTIMER_ENDED && t->core.entry.deadline > now)
		e->remaining = t->core.entry.deadline - now;
	return 0;
}

static void spot_query(struct spot_call *call, void *entries, unsigned int n)
{
	struct spottimer_query *e = entries;
	unsigned int i;

	spot_enter(call);
	for (i = 0; i < n; i++)
		if (!e[i].error)
			e[i].error = spot_query_one(call, &e[i]);
	spot_leave(call);
}

/*
 * SPOTTIMER_IOC_LEASE
 */

static void spot_owner_lapsed(struct spot_lease *lease)
{
	struct spot_owner *owner = container_of(lease, struct spot_owner, lease);
	struct spot_ctx *ctx = owner->ctx;

	spin_lock(&ctx->queue.lock);
	owner->lapsed_epoch = lease->epoch;
	if (list_empty(&owner->lapsed))
		list_add_tail(&owner->lapsed, &ctx->lapsed);
	trace_spottimer_lapse(ctx, owner->id, lease->epoch);
	spin_unlock(&ctx->queue.lock);
	ctx->queue.notify(&ctx->queue);
}

/* Make room for a new owner, in memory and in what may be counted. */
static int spot_owner_reserve(struct spot_ctx *ctx, u64 id)
{
	bool room;

	spin_lock_bh(&ctx->lock);
	room = ctx->nr_owners < READ_ONCE(spot_max_timers) &&
	       spot_charge(ctx, 1);
	ctx->nr_owners += room;
	spin_unlock_bh(&ctx->lock);
	if (!room)
		return -ENOSPC;

	if (!xa_reserve(&ctx->owners, id, GFP_KERNEL_ACCOUNT))
		return 0;
	spin_lock_bh(&ctx->lock);
	ctx->nr_owners--;
	spot_uncharge(ctx);
	spin_unlock_bh(&ctx->lock);
	return -ENOMEM;
}

/*
 * @owner, whose lease is revoked, has no place in the table any more, and its
 * timers have to end. A record that it has run out becomes the @heir's.
 */
static void spot_owner_replace(struct spot_call *call, struct spot_owner *owner,
			       struct spot_owner *heir)
{
	struct spot_ctx *ctx = call->ctx;

	spin_lock(&ctx->queue.lock);
	if (heir && !list_empty(&owner->lapsed)) {
		heir->lapsed_epoch = owner->lapsed_epoch;
		list_add(&heir->lapsed, &owner->lapsed);
	}
	list_del_init(&owner->lapsed);
	spin_unlock(&ctx->queue.lock);
	owner->replaced = true;
	spot_owner_put(owner);
	call->settle = true;
}

static int spot_owner_grant(struct spot_call *call,
			    const struct spottimer_lease *e, s64 deadline)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_owner *old = xa_load(&ctx->owners, e->owner);
	struct spot_owner *owner;
	bool live;

	if (old && e->epoch <= old->lease.epoch)
		return -ESTALE;
	if (old && e->flags & SPOTTIMER_LEASE_ADOPT) {
		live = spot_lease_revoke(&old->lease);
		spin_lock_bh(&ctx->lock);
		if (!live)
			old->void_generation = ctx->generation;
		spot_lease_grant(&old->lease, e->epoch, deadline, live);
		spin_unlock_bh(&ctx->lock);
		call->settle = true;
		return 0;
	}

	owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);
	if (!owner)
		return -ENOMEM;
	/* where there is an old one, the entry exists, and no memory is needed */
	if (!old) {
		int ret = spot_owner_reserve(ctx, e->owner);

		if (ret) {
			kfree(owner);
			return ret;
		}
	}
	spot_lease_init(&owner->lease, spot_owner_lapsed);
	owner->id = e->owner;
	owner->ctx = ctx;
	owner->refs = 1;
	INIT_LIST_HEAD(&owner->lapsed);

	if (old)
		spot_lease_revoke(&old->lease);
	spin_lock_bh(&ctx->lock);
	if (old)
		spot_owner_replace(call, old, owner);
	spot_lease_grant(&owner->lease, e->epoch, deadline, false);
	xa_store(&ctx->owners, e->owner, owner, GFP_NOWAIT);
	spin_unlock_bh(&ctx->lock);
	return 0;
}

static int spot_owner_revoke(struct spot_call *call,
			     const struct spottimer_lease *e,
			     struct spot_owner *owner)
{
	struct spot_ctx *ctx = call->ctx;
	bool live = spot_lease_revoke(&owner->lease);

	if (!(e->flags & SPOTTIMER_LEASE_FORGET))
		return live ? 0 : -EKEYEXPIRED;

	spin_lock_bh(&ctx->lock);
	ctx->nr_owners--;
	spot_uncharge(ctx);
	xa_erase(&ctx->owners, e->owner);
	spot_owner_replace(call, owner, NULL);
	spin_unlock_bh(&ctx->lock);
	return 0;
}

static int spot_lease_check(const struct spottimer_lease *e)
{
	u32 known = SPOTTIMER_LEASE_ABSTIME;

	switch (e->op) {
	case SPOTTIMER_LEASE_GRANT:
		known |= SPOTTIMER_LEASE_ADOPT;
		break;
	case SPOTTIMER_LEASE_RENEW:
		break;
	case SPOTTIMER_LEASE_REVOKE:
		known = SPOTTIMER_LEASE_FORGET;
		if (e->deadline)
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	if (e->flags & ~known || e->reserved || !e->owner || !e->epoch)
		return -EINVAL;
	return 0;
}

static int spot_lease_one(struct spot_call *call,
			  const struct spottimer_lease *e)
{
	s64 now = spot_clock_now(SPOT_BOOTTIME);
	s64 deadline = e->deadline;
	struct spot_owner *owner;
	int ret = spot_lease_check(e);

	if (ret)
		return ret;
	if (e->op != SPOTTIMER_LEASE_REVOKE) {
		if (e->flags & SPOTTIMER_LEASE_ABSTIME)
			deadline = spot_time_from_user(deadline, SPOT_BOOTTIME);
		else if (deadline > 0)
			deadline = spot_time_after(now, deadline);
		if (e->deadline <= 0 || deadline <= now)
			return -EINVAL;
	}
	if (e->op == SPOTTIMER_LEASE_GRANT)
		return spot_owner_grant(call, e, deadline);

	owner = xa_load(&call->ctx->owners, e->owner);
	if (!owner)
		return -EKEYEXPIRED;
	if (owner->lease.epoch != e->epoch)
		return -ESTALE;
	if (e->op == SPOTTIMER_LEASE_RENEW)
		return spot_lease_renew(&owner->lease, deadline);
	return spot_owner_revoke(call, e, owner);
}

static void spot_lease(struct spot_call *call, void *entries, unsigned int n)
{
	struct spottimer_lease *e = entries;
	unsigned int i;

	mutex_lock(&call->ctx->owner_mutex);
	for (i = 0; i < n; i++) {
		if (e[i].error)
			continue;
		e[i].error = spot_lease_one(call, &e[i]);
		trace_spottimer_lease(call->ctx, &e[i], e[i].error);
	}
	mutex_unlock(&call->ctx->owner_mutex);
}

/* Leases have changed: end what was left behind, resume what was adopted. */
static bool spot_settle_visit(struct spot_call *call, struct spot_dev_timer *t,
			      void *arg)
{
	struct spot_owner *owner = spot_dev_owner(t);
	u64 generation = t->generation;
	u64 key = t->key;

	if (!owner || !spot_is_live(t))
		return false;
	if (owner->replaced) {
		if (spot_cancel_core(call, t) == SPOT_RUNNING)
			t->flags |= SPOT_DEV_DYING;
		else
			spot_end(call, t);
		return true;
	}
	/* if a pass is just refusing it, this waits until it is held */
	if (spot_batch_state(&call->batch, &t->core) != SPOT_HELD)
		return false;
	spot_unhold(call, t);
	/* its only tick may have been void */
	t = spot_find(call->ctx, key, generation);
	return !t || !spot_is_live(t);
}

/*
 * Reading
 */

/* What a record was made of; the timer, or else the owner */
struct spot_pick {
	struct spot_dev_timer *timer;
	struct spot_owner *owner;
	u64 epoch;
};

static void spot_record_timer(struct spot_call *call, struct spot_dev_timer *t,
			      struct spottimer_record *rec)
{
	struct spot_owner *owner = spot_dev_owner(t);
	struct spot_overrun overrun = t->core.overrun;
	s64 due = t->core.entry.deadline;
	struct spot_tick tick = { .delivery_index = overrun.delivered };

	rec->key = t->key;
	rec->generation = t->generation;
	rec->cookie = t->cookie;
	rec->owner = owner ? owner->id : 0;
	rec->result = 0;
	if (spot_has_ended(t)) {
		rec->flags = SPOTTIMER_REC_END;
		rec->result = t->result;
	} else {
		s64 now = spot_batch_now(&call->batch,
					 spot_core_clock(&t->core));

		spot_overrun_take(&overrun, &due, max(now, due), &tick);
		rec->flags = SPOTTIMER_REC_TICK;
		if (t->flags & SPOT_DEV_MANUAL)
			rec->flags |= SPOTTIMER_REC_MANUAL;
		if (t->core.entry.user & SPOT_CORE_CRITICAL)
			rec->flags |= SPOTTIMER_REC_CRITICAL;
		if (!overrun.period)
			rec->flags |= SPOTTIMER_REC_LAST;
	}
	rec->delivery_index = tick.delivery_index;
	rec->scheduled_index = tick.scheduled_index;
	rec->skipped_ticks = tick.skipped_ticks;
}

static void spot_record_owner(const struct spot_pick *pick,
			      struct spottimer_record *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->generation = pick->epoch;
	rec->owner = pick->owner->id;
	rec->flags = SPOTTIMER_REC_LEASE;
}

static inline bool spot_queue_holds_any(struct spot_ctx *ctx)
{
	struct spot_queue *queue = &ctx->queue;

	lockdep_assert_held(&queue->lock);

	return !list_empty(&queue->ready) || !list_empty(&queue->critical) ||
	       !list_empty(&ctx->lapsed);
}

/* Take the next things off the queue: critical timers, leases, other timers. */
static unsigned int spot_pick_next(struct spot_ctx *ctx, struct spot_pick *pick,
				   unsigned int n, unsigned int *streak)
{
	struct spot_queue *queue = &ctx->queue;
	struct spot_core *cores[SPOT_READ_CHUNK] __uninitialized;
	unsigned int i;

	lockdep_assert_held(&queue->lock);

	if (!list_empty(&ctx->lapsed) &&
	    (list_empty(&queue->critical) || *streak >= SPOT_CRITICAL_STREAK)) {
		pick->timer = NULL;
		pick->owner = list_first_entry(&ctx->lapsed, struct spot_owner,
					       lapsed);
		pick->epoch = pick->owner->lapsed_epoch;
		list_del_init(&pick->owner->lapsed);
		*streak = 0;
		return 1;
	}
	n = spot_queue_pop(queue, cores, n, streak);
	for (i = 0; i < n; i++)
		pick[i].timer = spot_dev_timer(cores[i]);
	return n;
}

/*
 * Take up to @n things off the queue that can be read now. What is on it but
 * cannot start goes where it belongs; if that was a lot, *@again says that there
 * may be more, and that others should get the locks first. @n is SPOT_READ_CHUNK
 * at the most.
 *
 * Return: how many were taken.
 */
static unsigned int spot_collect(struct spot_call *call, struct spot_pick *pick,
				 unsigned int n, bool *again)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_queue *queue = &ctx->queue;
	unsigned int streak = queue->streak;
	unsigned int got = 0, refused = 0;

	*again = false;
	while (got < n && !*again) {
		unsigned int i, popped = got;

		spin_lock(&queue->lock);
		while (popped < n && spot_queue_holds_any(ctx))
			popped += spot_pick_next(ctx, &pick[popped], n - popped,
						 &streak);
		spin_unlock(&queue->lock);

		for (i = got; i < popped; i++) {
			if (!pick[i].timer || spot_may_start(call, pick[i].timer))
				pick[got++] = pick[i];
			else
				refused++;
		}
		if (got == popped)
			break;
		*again = refused >= SPOT_TABLE_STEP;
	}
	return got;
}

/* Put back what was collected but not read. */
static void spot_uncollect(struct spot_call *call, struct spot_pick *pick,
			   unsigned int n)
{
	struct spot_ctx *ctx = call->ctx;
	struct spot_queue *queue = &ctx->queue;

	spin_lock(&queue->lock);
	while (n--) {
		if (pick[n].timer)
			spot_queue_unpop(queue, &pick[n].timer->core);
		else if (list_empty(&pick[n].owner->lapsed))
			list_add(&pick[n].owner->lapsed, &ctx->lapsed);
	}
	spin_unlock(&queue->lock);
}

/* A record has been read: begin the handler, or forget what it told. */
static void spot_commit(struct spot_call *call, struct spot_pick *pick)
{
	struct spot_dev_timer *t = pick->timer;
	struct spot_tick tick;

	if (!t) {
		call->ctx->queue.streak = 0;
		return;
	}
	if (spot_has_ended(t)) {
		spot_bury(call, t);
		return;
	}

	spot_core_take(&call->batch, &t->core, &tick);
	tick.generation = t->generation;
	trace_spottimer_deliver(&t->core, t->key, &tick, &call->batch);
	if (t->flags & SPOT_DEV_MANUAL) {
		INIT_LIST_HEAD(&t->core.entry.link);
		t->flags &= ~SPOT_DEV_BY_PROCESS;
		t->taker = current->pid;
		/* a worker reads for some thread of its process */
		if (current->flags & PF_IO_WORKER) {
			t->flags |= SPOT_DEV_BY_PROCESS;
			t->taker = current->tgid;
		}
	} else if (!t->core.overrun.period) {
		spot_core_set_state(&t->core, SPOT_IDLE);
		spot_end(call, t);
	} else {
		spot_batch_complete(&call->batch, &t->core, true);
	}
}

/*
 * What the queue has that a read would return. *@maybe says that it may still be
 * nothing.
 */
static bool spot_queue_peek(struct spot_ctx *ctx, bool *maybe)
{
	struct spot_queue *queue = &ctx->queue;
	struct spot_core *core;
	bool any;

	/* under it nobody has anything in his hands that is to go back */
	lockdep_assert_held(&ctx->lock);

	spin_lock(&queue->lock);
	any = spot_queue_holds_any(ctx);
	*maybe = false;
	if (any && list_empty(&ctx->lapsed)) {
		core = list_first_entry(list_empty(&queue->critical) ?
					&queue->ready : &queue->critical,
					struct spot_core, entry.link);
		*maybe = !spot_may_surely_start(spot_dev_timer(core));
	}
	spin_unlock(&queue->lock);
	return any;
}

/* Whether a read would return something. */
static bool spot_readable(struct spot_ctx *ctx)
{
	bool readable, again, maybe;
	struct spot_call call;
	struct spot_pick pick;

	spin_lock_bh(&ctx->lock);
	readable = spot_queue_peek(ctx, &maybe);
	spin_unlock_bh(&ctx->lock);
	if (!maybe)
		return readable;

	spot_call_init(&call, ctx);
	do {
		spot_enter(&call);
		readable = spot_collect(&call, &pick, 1, &again);
		if (readable)
			spot_uncollect(&call, &pick, 1);
		spot_leave(&call);
		if (again)
			cond_resched();
	} while (again && !readable);
	return readable;
}

/* Read what there is. Return: bytes, 0 if there is nothing, or -EFAULT. */
static ssize_t spot_read_records(struct spot_call *call, struct iov_iter *to)
{
	const size_t size = sizeof(struct spottimer_record);
	/* what is used of them is filled in; to clear a kilobyte takes longer */
	struct spottimer_record rec[SPOT_READ_CHUNK] __uninitialized;
	struct spot_pick pick[SPOT_READ_CHUNK] __uninitialized;
	unsigned int tries = 0;
	ssize_t total = 0;

	while (iov_iter_count(to) >= size) {
		unsigned int n = min_t(size_t, iov_iter_count(to) / size,
				       SPOT_READ_CHUNK);
		bool again, more, maybe;
		unsigned int i, whole;
		size_t copied;

		spot_enter(call);
		n = spot_collect(call, pick, n, &again);
		for (i = 0; i < n; i++) {
			if (pick[i].timer)
				spot_record_timer(call, pick[i].timer, &rec[i]);
			else
				spot_record_owner(&pick[i], &rec[i]);
		}
		spot_batch_unlock(&call->batch);

		pagefault_disable();
		copied = copy_to_iter(rec, n * size, to);
		pagefault_enable();
		whole = copied / size;
		iov_iter_revert(to, copied % size);

		spot_uncollect(call, pick + whole, n - whole);
		for (i = 0; i < whole; i++)
			spot_commit(call, &pick[i]);
		more = spot_queue_peek(call->ctx, &maybe);
		spot_leave(call);

		total += whole * size;
		if (!more || (!n && !again))
			break;
		if (whole || !n) {
			tries = 0;
		} else if (++tries > SPOT_READ_CHUNK ||
			   fault_in_iov_iter_writeable(to, size)) {
			return total ?: -EFAULT;
		}
		if (total && signal_pending(current))
			break;
		cond_resched();
	}
	return total;
}

static ssize_t spot_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct spot_ctx *ctx = iocb->ki_filp->private_data;
	bool nonblock = iocb->ki_filp->f_flags & O_NONBLOCK ||
			iocb->ki_flags & IOCB_NOWAIT;
	struct spot_call call;
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct spottimer_record))
		return -EINVAL;

	spot_call_init(&call, ctx);
	for (;;) {
		ret = spot_read_records(&call, to);
		if (ret)
			break;
		if (nonblock) {
			ret = -EAGAIN;
			break;
		}
		ret = wait_event_interruptible_exclusive(ctx->read_wait,
							 spot_readable(ctx));
		if (ret)
			break;
	}

	/* one reader is woken at a time, and wakes the next if there is more */
	if (wq_has_sleeper(&ctx->read_wait) && spot_readable(ctx))
		wake_up_interruptible_poll(&ctx->read_wait,
					   EPOLLIN | EPOLLRDNORM);
	return ret;
}

static __poll_t spot_poll(struct file *file, struct poll_table_struct *wait)
{
	struct spot_ctx *ctx = file->private_data;

	poll_wait(file, &ctx->read_wait, wait);
	return spot_readable(ctx) ? EPOLLIN | EPOLLRDNORM : 0;
}

static void spot_ctx_notify(struct spot_queue *queue)
{
	struct spot_ctx *ctx = container_of(queue, struct spot_ctx, queue);

	if (wq_has_sleeper(&ctx->read_wait))
		wake_up_interruptible_poll(&ctx->read_wait,
					   EPOLLIN | EPOLLRDNORM);
}

/*
 * ioctl: one place that copies
 */

/**
 * struct spot_op - an ioctl that takes a batch of entries
 * @size: size of an entry
 * @error: offset of its error field
 * @work: works on entries in kernel memory, those with an error excepted
 */
struct spot_op {
	unsigned int size;
	unsigned int error;
	void (*work)(struct spot_call *call, void *entries, unsigned int n);
};

#define SPOT_OP(nr, name)						\
	[_IOC_NR(nr)] = {						\
		.size = sizeof(struct spottimer_##name),		\
		.error = offsetof(struct spottimer_##name, error),	\
		.work = spot_##name,					\
	}

static const struct spot_op spot_ops[] = {
	SPOT_OP(SPOTTIMER_IOC_REGISTER, register),
	SPOT_OP(SPOTTIMER_IOC_CANCEL, cancel),
	SPOT_OP(SPOTTIMER_IOC_COMPLETE, complete),
	SPOT_OP(SPOTTIMER_IOC_LEASE, lease),
	SPOT_OP(SPOTTIMER_IOC_QUERY, query),
};

/*
 * Copy in up to @n entries, and see that their errors can be written: an entry
 * whose result cannot be told is not worked on. They say EFAULT until then.
 *
 * Return: how many could be.
 */
static unsigned int spot_copy_in(struct spot_call *call,
				 const struct spot_op *op, void *entries,
				 unsigned int n)
{
	bool copied = call->stride == op->size &&
		      !copy_from_user(entries, call->entry, n * op->size);
	unsigned int i = 0;

	/* all at once, unless something is wrong somewhere */
	if (copied && user_access_begin(call->entry, n * op->size)) {
		for (; i < n; i++) {
			s32 __user *error = call->entry + i * op->size +
					    op->error;

			*(s32 *)(entries + i * op->size + op->error) = 0;
			unsafe_put_user(-EFAULT, error, fault);
		}
fault:
		user_access_end();
	}

	for (; i < n; i++) {
		void __user *from = call->entry + (size_t)i * call->stride;
		void *entry = entries + i * op->size;
		int ret = 0;

		if (!copied)
			ret = copy_struct_from_user(entry, op->size, from,
						    call->stride);
		if (ret && ret != -E2BIG)
			break;
		*(s32 *)(entry + op->error) = ret;
		if (put_user(ret ?: -EFAULT, (s32 __user *)(from + op->error)))
			break;
	}
	return i;
}

/*
 * Copy out @n entries, but those that were too large and so not copied in. One
 * that cannot be says EFAULT.
 *
 * Return: whether all could be.
 */
static bool spot_copy_out(struct spot_call *call, const struct spot_op *op,
			  void *entries, unsigned int n)
{
	bool copied = true;
	unsigned int i;

	if (call->stride == op->size &&
	    !copy_to_user(call->entry, entries, n * op->size))
		return true;

	for (i = 0; i < n; i++) {
		void __user *to = call->entry + (size_t)i * call->stride;
		void *entry = entries + i * op->size;

		s32 error = *(s32 *)(entry + op->error);

		if (error == -E2BIG || !copy_to_user(to, entry, op->size))
			continue;
		/* the error may have been copied, and the rest not */
		put_user(-EFAULT, (s32 __user *)(to + op->error));
		copied = false;
	}
	return copied;
}

static long spot_ioctl_entries(struct spot_call *call, const struct spot_op *op,
			       const struct spottimer_batch *b)
{
	unsigned int size = min(b->count, SPOT_CHUNK) * op->size;
	void *entries = kvmalloc(size, GFP_KERNEL);
	unsigned int done = 0;
	int ret = 0;

	if (!entries)
		return -ENOMEM;

	call->stride = b->stride;
	while (done < b->count && !ret) {
		unsigned int want = min(b->count - done, SPOT_CHUNK), n;

		call->entry = u64_to_user_ptr(b->entries +
					      (u64)done * b->stride);
		n = spot_copy_in(call, op, entries, want);
		if (n) {
			op->work(call, entries, n);
			done += n;
			if (!spot_copy_out(call, op, entries, n))
				ret = -EFAULT;
		}
		if (n < want)
			ret = -EFAULT;
		else if (signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	kvfree(entries);
	return done ? (long)done : ret;
}

static long spot_ioctl_batch(struct spot_ctx *ctx, const struct spot_op *op,
			     void __user *arg, unsigned int size)
{
	struct spottimer_batch b;
	struct spot_call call;
	long ret;

	if (size < sizeof(b))
		return -EINVAL;
	ret = copy_struct_from_user(&b, sizeof(b), arg, size);
	if (ret)
		return ret;
	if (!b.count || b.count > INT_MAX || b.flags || b.reserved)
		return -EINVAL;
	if (b.stride < op->size || b.stride % 8 || b.stride > SZ_4K)
		return -EINVAL;

	spot_call_init(&call, ctx);
	ret = spot_ioctl_entries(&call, op, &b);
	if (call.settle)
		spot_walk(&call, spot_settle_visit, NULL);
	spot_cancel_finish(&call);
	spot_table_resize(&call, READ_ONCE(ctx->objects));
	return ret;
}

static long spot_ioctl_info(void __user *arg, unsigned int size)
{
	struct spottimer_info info = {
		.tick_ns = spot_tick_ns,
		.max_timers = READ_ONCE(spot_max_timers),
		.max_user_timers = READ_ONCE(spot_max_user_timers),
		.clocks = BIT(CLOCK_MONOTONIC) | BIT(CLOCK_BOOTTIME) |
			  BIT(CLOCK_REALTIME),
		.record_size = sizeof(struct spottimer_record),
		.ended = SPOT_ENDED_MAX,
	};

	if (size < sizeof(info))
		return -EINVAL;
	if (copy_to_user(arg, &info, sizeof(info)) ||
	    clear_user(arg + sizeof(info), size - sizeof(info)))
		return -EFAULT;
	return 0;
}

static long spot_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *argp = (void __user *)arg;
	unsigned int nr = _IOC_NR(cmd);

	if (_IOC_TYPE(cmd) != SPOTTIMER_IOC_MAGIC)
		return -ENOTTY;
	if (nr == _IOC_NR(SPOTTIMER_IOC_INFO))
		return spot_ioctl_info(argp, _IOC_SIZE(cmd));
	if (nr >= ARRAY_SIZE(spot_ops))
		return -ENOTTY;
	return spot_ioctl_batch(file->private_data, &spot_ops[nr], argp,
				_IOC_SIZE(cmd));
}

/*
 * Open, close, and what can be seen
 */

static struct spot_user *spot_user_new(kuid_t uid)
{
	struct spot_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	user->uid = uid;
	if (percpu_counter_init(&user->timers, 0, GFP_KERNEL_ACCOUNT))
		goto err_user;
	if (xa_err(xa_store(&spot_users, __kuid_val(uid), user,
			    GFP_KERNEL_ACCOUNT)))
		goto err_counter;
	return user;

err_counter:
	percpu_counter_destroy(&user->timers);
err_user:
	kfree(user);
	return NULL;
}

static struct spot_user *spot_user_get(kuid_t uid)
{
	struct spot_user *user;

	mutex_lock(&spot_users_mutex);
	user = xa_load(&spot_users, __kuid_val(uid)) ?: spot_user_new(uid);
	if (user)
		user->refs++;
	mutex_unlock(&spot_users_mutex);
	return user;
}

static void spot_user_put(struct spot_user *user)
{
	mutex_lock(&spot_users_mutex);
	if (!--user->refs) {
		xa_erase(&spot_users, __kuid_val(user->uid));
		percpu_counter_destroy(&user->timers);
		kfree(user);
	}
	mutex_unlock(&spot_users_mutex);
}

static struct spot_ctx *spot_ctx_new(kuid_t uid)
{
	struct spot_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return NULL;
	ctx->table.bits = SPOT_TABLE_BITS;
	ctx->table.bucket = kvcalloc(1UL << SPOT_TABLE_BITS,
				     sizeof(*ctx->table.bucket),
				     GFP_KERNEL_ACCOUNT);
	ctx->user = spot_user_get(uid);
	if (!ctx->table.bucket || !ctx->user) {
		if (ctx->user)
			spot_user_put(ctx->user);
		kvfree(ctx->table.bucket);
		kfree(ctx);
		return NULL;
	}
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->blocks);
	ctx->mult = get_random_u64() | 1;
	INIT_LIST_HEAD(&ctx->ended);
	xa_init(&ctx->owners);
	spot_queue_init(&ctx->queue, spot_ctx_notify);
	INIT_LIST_HEAD(&ctx->lapsed);
	init_waitqueue_head(&ctx->read_wait);
	init_waitqueue_head(&ctx->cancel_wait);
	mutex_init(&ctx->owner_mutex);
	mutex_init(&ctx->resize_mutex);
	return ctx;
}

/* Free all timers of a table. Nobody else uses the context any more. */
static void spot_table_free(struct spot_call *call, struct spot_table *table)
{
	struct spot_queue *queue = &call->ctx->queue;
	unsigned int i, done = 0;

	for (i = 0; table->bucket && i < 1U << table->bits; i++) {
		while (table->bucket[i]) {
			struct spot_dev_timer *t = table->bucket[i];

			table->bucket[i] = t->next;
			/* even what has ended is on the queue, if not read */
			if (spot_has_ended(t)) {
				spin_lock(&queue->lock);
				spot_entry_unlink(&t->core.entry);
				spin_unlock(&queue->lock);
			} else {
				spot_cancel_core(call, t);
			}
			if (t->core.lease)
				spot_owner_put(spot_dev_owner(t));
			spot_timer_put(call->ctx, t);
			done++;
		}
		if (++done >= SPOT_TABLE_STEP) {
			spot_leave(call);
			cond_resched();
			spot_enter(call);
			done = 0;
		}
	}
}

static void spot_ctx_free(struct spot_ctx *ctx)
{
	struct spot_block *block, *next;
	struct spot_owner *owner;
	struct spot_call call;
	unsigned long id;

	spot_call_init(&call, ctx);

	/* no lease lapses any more, and an owner is freed with its last timer */
	xa_for_each(&ctx->owners, id, owner) {
		spot_lease_revoke(&owner->lease);
		spot_owner_put(owner);
		cond_resched();
	}
	xa_destroy(&ctx->owners);

	spot_enter(&call);
	spot_table_free(&call, &ctx->old);
	spot_table_free(&call, &ctx->table);
	spot_leave(&call);
	list_for_each_entry_safe(block, next, &ctx->blocks, link)
		spot_block_free(ctx, block);
	kvfree(ctx->old.bucket);
	kvfree(ctx->table.bucket);

	percpu_counter_sub(&ctx->user->timers, ctx->timers + ctx->nr_owners);
	spot_user_put(ctx->user);
	kfree_rcu(ctx, rcu);
}

static int spot_open(struct inode *inode, struct file *file)
{
	struct spot_ctx *ctx = spot_ctx_new(current_euid());

	if (!ctx)
		return -ENOMEM;
	file->private_data = ctx;
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int spot_release(struct inode *inode, struct file *file)
{
	spot_ctx_free(file->private_data);
	return 0;
}

/* For fdinfo: how many timers are in which state, and when the next is due. */
struct spot_census {
	unsigned int n[SPOTTIMER_ENDED + 1];
	s64 next;
};

static bool spot_census_visit(struct spot_call *call, struct spot_dev_timer *t,
			      void *arg)
{
	struct spot_census *census = arg;
	u32 state = spot_state_shown(call, t);

	census->n[state]++;
	if (state == SPOTTIMER_PENDING)
		census->next = min(census->next, t->core.entry.deadline -
				   spot_batch_now(&call->batch,
						  spot_core_clock(&t->core)));
	return false;
}

static void spot_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct spot_ctx *ctx = file->private_data;
	struct spot_census census = { .next = S64_MAX };
	struct spot_call call;
	size_t memory;

	spot_call_init(&call, ctx);
	spot_walk(&call, spot_census_visit, &census);

	spin_lock_bh(&ctx->lock);
	memory = sizeof(*ctx) + (size_t)ctx->nr_blocks * SPOT_BLOCK_SIZE +
		 ctx->nr_owners * sizeof(struct spot_owner) +
		 (sizeof(void *) << ctx->table.bits);
	if (ctx->old.bucket)
		memory += sizeof(void *) << ctx->old.bits;
	seq_printf(m, "registered:\t%u\n", ctx->timers);
	seq_printf(m, "owners:\t%u\n", ctx->nr_owners);
	spin_unlock_bh(&ctx->lock);

	seq_printf(m, "pending:\t%u\n", census.n[SPOTTIMER_PENDING]);
	seq_printf(m, "ready:\t%u\n", census.n[SPOTTIMER_READY]);
	seq_printf(m, "running:\t%u\n", census.n[SPOTTIMER_RUNNING]);
	seq_printf(m, "held:\t%u\n", census.n[SPOTTIMER_HELD]);
	seq_printf(m, "ended:\t%u\n", census.n[SPOTTIMER_ENDED]);
	if (census.next < S64_MAX)
		seq_printf(m, "next:\t%lld\n", max_t(s64, census.next, 0));
	seq_printf(m, "memory:\t%zu\n", memory);
}

static const struct file_operations spot_fops = {
	.owner		= THIS_MODULE,
	.open		= spot_open,
	.release	= spot_release,
	.read_iter	= spot_read_iter,
	.poll		= spot_poll,
	.unlocked_ioctl	= spot_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= spot_show_fdinfo,
};

/* For everybody, like timerfd_create(): what it takes is charged and limited. */
static struct miscdevice spot_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "spottimer",
	.fops	= &spot_fops,
	.mode	= 0666,
};

static struct dentry *spot_debugfs;

static int __init spot_init(void)
{
	int ret = spot_engine_init();

	if (ret)
		return ret;
	ret = misc_register(&spot_misc);
	if (ret)
		goto err_engine;

	spot_debugfs = debugfs_create_dir("spottimer", NULL);
	spot_engine_debugfs(spot_debugfs);
	return 0;

err_engine:
	spot_engine_exit();
	return ret;
}

static void __exit spot_exit(void)
{
	debugfs_remove(spot_debugfs);
	misc_deregister(&spot_misc);
	spot_engine_exit();
}

module_init(spot_init);
module_exit(spot_exit);

MODULE_DESCRIPTION("Timers by the hundred thousand on a per-CPU timing wheel");
MODULE_AUTHOR("The spottimer maintainers");
MODULE_LICENSE("GPL");

#if IS_ENABLED(CONFIG_SPOTTIMER_KUNIT_TEST)
#include "kunit/spot_dev_test.c"
#endif
