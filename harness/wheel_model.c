// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel walked beside a model: a list that is sorted by target and, within
 * one target, by the order of registration. Targets follow from the contract's
 * formula (A3) by plain division. Everything that the wheel lets out must be
 * the model's first entry, and whatever is asked of the wheel must agree with
 * the model at every moment: while the due list is being emptied, in the
 * middle of a cascade, and with the clock going backward.
 */
#include <string.h>

#include <linux/limits.h>

#include "spot_wheel.h"
#include "tap.h"

#define TIMERS		256
#define EPISODES	1000
#define STEPS		1000

struct timer {
	struct spot_wheel_entry e;
	s64 deadline;
	u32 slack;
	u64 target;
	bool waiting;
	bool again;		/* was due when the wheel was rewound */
};

static struct spot_wheel wheel;
static struct timer timers[TIMERS];
static struct timer *model[TIMERS];
static unsigned int pending;

/* of the running episode */
static u64 tick_ns, last_tick, now, latest;
static unsigned int reach;

/* what all episodes did, to see that the interesting cases were met */
static struct {
	u64 operations, out, cascaded, mid_cascade, from_due, starved, later;
	u64 rewound, too_early, gathered;
} seen;

/* the target of what was added during an advance that it would pass by */
#define AT_THE_END	U64_MAX

/* ---- the model ---- */

static u64 model_target_from(s64 deadline, u32 slack, u64 processed)
{
	__uint128_t ns = deadline > 0 ? deadline : 0;
	u64 low = (ns + tick_ns - 1) / tick_ns;
	u64 target = low;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		u64 rounder = (low + slack) >> bit << bit;

		if (rounder < low || !low)
			break;
		target = rounder;
	}
	return target > processed ? target : processed + 1;
}

static u64 model_target(s64 deadline, u32 slack)
{
	return model_target_from(deadline, slack, wheel.processed);
}

static void model_insert(struct timer *t)
{
	unsigned int at = pending;

	while (at && model[at - 1]->target > t->target)
		at--;
	memmove(&model[at + 1], &model[at], (pending - at) * sizeof(*model));
	model[at] = t;
	pending++;
}

static void model_remove(struct timer *t)
{
	unsigned int at = 0;

	while (model[at] != t)
		at++;
	pending--;
	memmove(&model[at], &model[at + 1], (pending - at) * sizeof(*model));
}

/* How many were put off until the end of the advance; they are the last. */
static unsigned int model_put_off(void)
{
	unsigned int count = 0;

	while (count < pending &&
	       model[pending - 1 - count]->target == AT_THE_END)
		count++;
	return count;
}

/* The advance has ended: what was put off until then gets its target. */
static void model_settle(void)
{
	unsigned int count;

	while ((count = model_put_off())) {
		struct timer *t = model[pending - count];

		model_remove(t);
		t->target = model_target(t->deadline, t->slack);
		model_insert(t);
		seen.later++;
	}
}

static u64 model_first_target(void)
{
	return pending ? model[0]->target : U64_MAX;
}

/* The start of the bucket in which the first entry is. */
static u64 model_next(void)
{
	u64 target = model[0]->target;
	u64 width = 1;

	/* up, as long as the tick last processed is in another bucket's turn */
	while (target / width / SPOT_WHEEL_SLOTS !=
	       wheel.processed / width / SPOT_WHEEL_SLOTS)
		width *= SPOT_WHEEL_SLOTS;
	return target / width * width;
}

/* ---- the wheel's state ---- */

static void check_entry(const struct timer *t)
{
	CHECK_EQ(t->e.deadline, t->deadline);
	CHECK_EQ(t->e.slack, t->slack);
	CHECK_EQ(t->e.user, (u32)(t - timers));
}

static unsigned int check_list(const struct list_head *head)
{
	const struct list_head *at;
	unsigned int count = 0;

	for (at = head->next; at != head; at = at->next) {
		const struct timer *t = list_entry(at, struct timer, e.link);

		CHECK(at->next->prev == at && at->prev->next == at);
		CHECK(t->waiting);
		check_entry(t);
		count++;
	}
	return count;
}

/* The maps say what is occupied, and all that waits is there. */
static void check_structure(void)
{
	unsigned int level, slot, count;

	count = check_list(&wheel.due) + check_list(&wheel.later);

	for (level = 0; level < SPOT_WHEEL_LEVELS; level++) {
		const struct list_head *head =
			&wheel.bucket[level * SPOT_WHEEL_SLOTS];

		for (slot = 0; slot < SPOT_WHEEL_SLOTS; slot++) {
			CHECK_EQ(wheel.slots[level] >> slot & 1,
				 !list_empty(&head[slot]));
			count += check_list(&head[slot]);
		}
		CHECK_EQ(wheel.levels >> level & 1, wheel.slots[level] != 0);
	}
	CHECK_EQ(count, pending);
}

static void check_state(void)
{
	u64 tick;

	CHECK(wheel.processed <= model_first_target());
	CHECK(wheel.processed <= latest);

	if (!spot_wheel_next(&wheel, &tick)) {
		CHECK_EQ(pending, 0);
		CHECK(!spot_wheel_first(&wheel));
		return;
	}
	CHECK(pending);
	CHECK(tick <= model[0]->target);
	if (!list_empty(&wheel.due) || !list_empty(&wheel.later) ||
	    wheel.cascading)
		CHECK_EQ(tick, wheel.processed);
	else
		CHECK_EQ(tick, model_next());
}

/* ---- operations ---- */

static void add(struct timer *t, s64 deadline, u32 slack)
{
	u64 look;

	t->deadline = deadline;
	t->slack = slack;
	t->target = model_target(deadline, slack);
	if (wheel.until != wheel.processed && t->target <= wheel.until)
		t->target = AT_THE_END;
	t->waiting = true;
	t->again = false;
	t->e.deadline = deadline;
	t->e.slack = slack;
	seen.mid_cascade += wheel.cascading != 0;

	look = spot_wheel_add(&wheel, &t->e);
	CHECK(look > wheel.processed);
	CHECK(look <= t->target);
	model_insert(t);
}

static void gone(struct timer *t)
{
	CHECK(t->waiting);
	check_entry(t);
	t->waiting = false;
	model_remove(t);
}

static void drop(struct timer *t)
{
	seen.from_due += t->target == wheel.processed;
	spot_wheel_remove(&wheel, &t->e);
	gone(t);
}

static struct timer *idle_timer(void)
{
	unsigned int i = rnd_below(TIMERS), tried;

	for (tried = 0; tried < TIMERS; tried++, i = (i + 1) % TIMERS)
		if (!timers[i].waiting)
			return &timers[i];
	return NULL;
}

/* A time's distance: next to it, at a turn's edge, or anywhere. */
static u64 some_tick_after(u64 from)
{
	unsigned int shift = rnd_below(reach / SPOT_WHEEL_BITS + 1) *
			     SPOT_WHEEL_BITS;
	u64 tick;

	switch (rnd_below(4)) {
	case 0:
		tick = from + rnd_below(4);
		break;
	case 1:
		tick = from + rnd_below(2 * SPOT_WHEEL_SLOTS);
		break;
	case 2:
		tick = (((from >> shift) + rnd_below(SPOT_WHEEL_SLOTS + 2))
			<< shift) + rnd_below(3) - 1;
		break;
	default:
		tick = from + rnd_bits(reach);
	}
	if (tick > S64_MAX)		/* it went below 0 */
		return from;
	return tick < last_tick ? tick : last_tick;
}

static s64 some_deadline(u64 tick)
{
	__int128_t ns = (__int128_t)tick * tick_ns;

	if (one_in(2))
		ns -= rnd_below(tick_ns);
	if (one_in(100))
		ns = one_in(2) ? S64_MAX : S64_MIN;
	return ns < S64_MAX ? (s64)ns : S64_MAX;
}

static u32 some_slack(void)
{
	return one_in(4) ? rnd_bits(32) & ((1ULL << reach) - 1) : 0;
}

/* Several timers close together, so that buckets have more than one. */
static void add_some(void)
{
	unsigned int count = one_in(4) ? 1 + rnd_below(20) : 1;
	u64 tick = some_tick_after(wheel.processed);

	if (one_in(10))
		tick = rnd_below(wheel.processed + 1);
	while (count--) {
		struct timer *t = idle_timer();
		u64 near = tick + (one_in(2) ? rnd_below(4) : 0);

		if (!t)
			return;
		add(t, some_deadline(near), some_slack());
	}
}

static void remove_some(void)
{
	if (pending)
		drop(model[one_in(2) ? 0 : rnd_below(pending)]);
}

static void let_time_pass(void)
{
	u64 edge = model_first_target();

	if (one_in(20))
		now -= rnd_below((now < 100 ? now : 100) + 1);
	else if (one_in(3) && edge > now && edge < last_tick)
		now = edge - 1 + rnd_below(3);
	else
		now = some_tick_after(now);
	if (now > latest)
		latest = now;
}

/* One pass, as a softirq would make it; @disturb: others meanwhile add, remove */
static void pass(unsigned int budget, bool disturb)
{
	u64 already = wheel.processed;
	/* a cascade that has begun ends, though the clock has gone back */
	u64 least = already + !!wheel.cascading;
	struct spot_wheel_entry *e;

	for (;;) {
		unsigned int before = budget;
		u64 moved = wheel.cascaded;
		u64 put_off = model_put_off();
		struct timer *t;

		e = spot_wheel_expire(&wheel, now, &budget);
		/* both what cascades and what comes out is paid for (A9) */
		moved = wheel.cascaded - moved;
		CHECK(budget <= before);
		if (e) {
			CHECK_EQ(before - budget, moved + 1);
		} else {
			/* each that is added at the end may move two on */
			CHECK(moved >= before - budget);
			CHECK(moved - (before - budget) <= 2 * put_off);
		}
		seen.cascaded += moved;
		if (!e) {
			model_settle();
			break;
		}

		t = list_entry(e, struct timer, e);
		CHECK(pending);
		CHECK(t == model[0]);
		CHECK(t->target <= now || t->target == already);
		CHECK_EQ(wheel.processed, t->target);
		gone(t);
		/* only what was due before a rewind, and is not any more */
		if (t->again && (__int128_t)t->deadline > (__int128_t)now * tick_ns) {
			add(t, t->deadline, t->slack);
			seen.too_early++;
			continue;
		}
		if (!t->again)
			CHECK((__int128_t)t->deadline <=
			      (__int128_t)t->target * tick_ns);
		check_state();
		seen.out++;

		if (disturb && one_in(3))
			add_some();
		if (disturb && one_in(3))
			remove_some();
	}
	check_state();
	CHECK(wheel.processed >= already);
	if (!budget) {
		seen.starved++;
		return;
	}
	CHECK(!pending || model[0]->target > now);
	CHECK_EQ(wheel.processed, now > least ? now : least);
}

static unsigned int some_budget(void)
{
	static const unsigned int budgets[] = { 0, 1, 1, 2, 3, 10, 100 };

	return one_in(4) ? ~0U : budgets[rnd_below(ARRAY_SIZE(budgets))];
}

static void forward(void)
{
	bool busy = !list_empty(&wheel.due) || wheel.cascading;
	bool due = pending && (busy || model_next() <= now);
	u64 before = wheel.processed;

	spot_wheel_forward(&wheel, now);
	CHECK_EQ(wheel.processed, !due && now > before ? now : before);
}

/*
 * The clock was set back. What was due, or in the bucket of the next tick, comes
 * out again; all the rest waits for the target that it always had.
 */
static void rewind_to(u64 to)
{
	u64 before = wheel.processed;
	const struct list_head *at;
	unsigned int i, count = 0;

	now = to;
	spot_wheel_rewind(&wheel, now);
	CHECK_EQ(wheel.processed, now < before ? now : before);
	if (now >= before)
		return;
	seen.rewound++;

	for (at = wheel.due.next; at != &wheel.due; at = at->next) {
		struct timer *t = list_entry(at, struct timer, e.link);

		model_remove(t);
		t->target = wheel.processed;
		t->again = true;
		model_insert(t);
		count++;
	}
	for (i = count; i < pending; i++) {
		CHECK(model[i]->target > before);
		CHECK_EQ(model[i]->target,
			 model_target_from(model[i]->deadline, model[i]->slack, 0));
		seen.gathered++;
	}
}

static void step(void)
{
	unsigned int what = rnd_below(16);

	if (one_in(100))
		rewind_to(one_in(2) ? rnd_below(now + 1) :
			  now - rnd_below((now < 5000 ? now : 5000) + 1));
	else if (what < 6)
		add_some();
	else if (what < 9)
		remove_some();
	else if (what < 11)
		let_time_pass();
	else if (what < 12)
		forward();
	else
		pass(some_budget(), one_in(2));
	seen.operations++;
	check_state();
}

/* Everything that is left, up to the end of time and what slack adds to it. */
static void drain(void)
{
	now = last_tick + 1 + U32_MAX;
	latest = now;
	while (pending)
		pass(one_in(2) ? ~0U : 1 + rnd_below(20), false);
}

/* Empty the wheel as its owner would to hand the entries to another one. */
static void hand_over(void)
{
	u64 targets = 0;

	while (pending) {
		struct spot_wheel_entry *e = spot_wheel_first(&wheel);
		struct timer *t;
		unsigned int i;

		CHECK(e);
		t = list_entry(e, struct timer, e);
		/* nothing with the same target was there before it */
		for (i = 0; model[i] != t; i++)
			CHECK(model[i]->target != t->target);
		targets += t->target;
		drop(t);
	}
	check_state();
}

static void episode(void)
{
	static const u32 lengths[] = {
		2, 3, 1000, 100000, 999999, 1000000, 1000000000, 0xffffffff
	};
	struct spot_tick_len tick;
	unsigned int i;

	tick_ns = lengths[rnd_below(ARRAY_SIZE(lengths))];
	last_tick = S64_MAX / tick_ns;
	reach = 2 + rnd_below(61);
	now = rnd_bits(62);
	if (now > last_tick)
		now = last_tick - rnd_below(1000);
	latest = now;

	spot_tick_len_init(&tick, tick_ns);
	spot_wheel_init(&wheel, &tick, now);
	for (i = 0; i < TIMERS; i++)
		timers[i] = (struct timer){ .e.user = i };
	pending = 0;

	for (i = 0; i < STEPS; i++) {
		step();
		if (one_in(64))
			check_structure();
	}
	if (one_in(2))
		drain();
	else
		hand_over();
	check_structure();
}

static void run_seed(u64 seed)
{
	unsigned int i;

	for (i = 0; i < EPISODES; i++) {
		tap_where("seed %llu, episode %llu", seed, i);
		rnd_state = seed * EPISODES + i;
		episode();
	}
}

static void seed_1(void)
{
	run_seed(1);
}

static void seed_2(void)
{
	run_seed(2);
}

static void seed_3(void)
{
	run_seed(3);
}

static void seed_4(void)
{
	run_seed(4);
}

/* The random tests did come upon what they are there for. */
static void coverage(void)
{
	printf("# %llu operations, %llu out, %llu cascaded, %llu passes starved\n",
	       seen.operations, seen.out, seen.cascaded, seen.starved);
	printf("# %llu added in the middle of a cascade, %llu removed while due\n",
	       seen.mid_cascade, seen.from_due);
	CHECK(seen.operations == 4 * EPISODES * STEPS);
	CHECK(seen.out > seen.operations / 10);
	CHECK(seen.cascaded > seen.operations / 10);
	CHECK(seen.starved > seen.operations / 100);
	CHECK(seen.later > seen.operations / 1000);
	CHECK(seen.mid_cascade > seen.operations / 100);
	CHECK(seen.from_due > seen.operations / 1000);
	printf("# %llu rewound, %llu were due and no more, %llu were not touched\n",
	       seen.rewound, seen.too_early, seen.gathered);
	CHECK(seen.rewound > seen.operations / 1000);
	CHECK(seen.too_early > seen.operations / 10000);
	CHECK(seen.gathered > seen.operations / 100);
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "a3_a5_a7_a9_a13_a14_wheel_against_model_1", seed_1 },
		{ "a3_a5_a7_a9_a13_a14_wheel_against_model_2", seed_2 },
		{ "a3_a5_a7_a9_a13_a14_wheel_against_model_3", seed_3 },
		{ "a3_a5_a7_a9_a13_a14_wheel_against_model_4", seed_4 },
		{ "the_random_tests_met_every_case", coverage },
	};

	return tap_run(tests, ARRAY_SIZE(tests));
}
