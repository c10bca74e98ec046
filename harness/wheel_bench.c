// SPDX-License-Identifier: GPL-2.0
/*
 * How fast the wheel is by itself, beside what else could be used: a binary
 * heap, and a red-black tree whose leftmost node is remembered, as the kernel's
 * hrtimers have it.
 *
 * All of them work on the same nodes, in the same order, which is a random one:
 * no two neighbours in time are neighbours in memory, nor does the order in which
 * timers are cancelled follow the one in which they were armed. What is random was
 * drawn before the clock is read. The wheel is called as the engine does it,
 * from another compilation unit; its rivals may be inlined.
 *
 * The nodes lie in huge pages, as the kernel's direct map does, and have been
 * written to before: this measures the structures, not page faults or misses of
 * the TLB that a timer in the kernel would not have.
 *
 * wheel_bench [quick]: prints a JSON object for each measurement, then a table,
 * in lines that begin with #.
 */
#include <bsd/sys/tree.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/limits.h>

#include "spot_wheel.h"
#include "tap.h"

#define HUGE_PAGE	(2UL << 20)
#define MAX_TIMERS	BIT(23)
/* the tree and the heap take minutes with more */
#define MAX_RIVAL	BIT(20)
#define HOT		8	/* timers that are armed and cancelled all the time */
#define HOT_PAIRS	1000000
#define JUMPS		1000
#define JUMP_TICKS	100000000ULL
#define MAX_ROUNDS	5
#define BIG_ROUNDS	3	/* with more than the rivals can take */

#define TICK_NS		1000000ULL
/* the wheel tick at which all begins: a machine that is up for some days */
#define START		1000000007ULL
/* deadlines lie within this many wheel ticks, or four and a half hours */
#define RANGE		BIT(24)
/* and out of the way of the jumps after this many */
#define FAR		BIT(42)

/* What waits: 128 bytes, as the device's timers are. */
struct node {
	alignas(128) struct spot_wheel_entry e;
	union {
		RB_ENTRY(node) link;
		size_t index;
	};
};

struct contender {
	void (*reset)(void);
	void (*add)(struct node *n);
	void (*remove)(struct node *n);
	void (*move)(struct node *n, s64 deadline);
	struct node *(*expire)(s64 now);
};

static struct node *nodes;
static struct node hot[HOT];
/* for each step of a loop the node it turns to, and the deadline */
static u32 *arm_order, *move_order, *cancel_order;
static s64 *deadlines, *later;

static void die(const char *what)
{
	fprintf(stderr, "wheel_bench: %s\n", what);
	exit(1);
}

/* ---- the wheel ---- */

static struct spot_wheel wheel;

static void wheel_reset(void)
{
	struct spot_tick_len tick;

	spot_tick_len_init(&tick, TICK_NS);
	spot_wheel_init(&wheel, &tick, START);
}

static inline void wheel_add(struct node *n)
{
	spot_wheel_add(&wheel, &n->e);
}

static inline void wheel_remove(struct node *n)
{
	spot_wheel_remove(&wheel, &n->e);
}

static inline void wheel_move(struct node *n, s64 deadline)
{
	spot_wheel_remove(&wheel, &n->e);
	n->e.deadline = deadline;
	spot_wheel_add(&wheel, &n->e);
}

static inline struct node *wheel_expire(s64 now)
{
	unsigned int budget = ~0U;
	struct spot_wheel_entry *e;

	e = spot_wheel_expire(&wheel, spot_tick_floor(&wheel.tick, now), &budget);
	return e ? container_of(e, struct node, e) : NULL;
}

/*
 * ---- a binary heap, with the keys in the array ----
 *
 * Unlike the others it has no order among equals, and so nothing to move when
 * all are due at the same time.
 */

static struct slot {
	s64 key;
	struct node *n;
} *heap;
static size_t heap_size;

static void heap_reset(void)
{
	heap_size = 0;
}

static inline void heap_put(size_t at, struct slot slot)
{
	heap[at] = slot;
	slot.n->index = at;
}

static inline void heap_up(size_t at, struct slot slot)
{
	while (at) {
		size_t parent = (at - 1) / 2;

		if (heap[parent].key <= slot.key)
			break;
		heap_put(at, heap[parent]);
		at = parent;
	}
	heap_put(at, slot);
}

static inline void heap_down(size_t at, struct slot slot)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= heap_size)
			break;
		if (child + 1 < heap_size &&
		    heap[child + 1].key < heap[child].key)
			child++;
		if (slot.key <= heap[child].key)
			break;
		heap_put(at, heap[child]);
		at = child;
	}
	heap_put(at, slot);
}

static inline void heap_settle(size_t at, struct slot slot)
{
	if (at && slot.key < heap[(at - 1) / 2].key)
		heap_up(at, slot);
	else
		heap_down(at, slot);
}

static inline void heap_add(struct node *n)
{
	heap_up(heap_size++, (struct slot){ n->e.deadline, n });
}

static inline void heap_remove(struct node *n)
{
	struct slot last = heap[--heap_size];

	if (last.n != n)
		heap_settle(n->index, last);
}

static inline void heap_move(struct node *n, s64 deadline)
{
	n->e.deadline = deadline;
	heap_settle(n->index, (struct slot){ deadline, n });
}

static inline struct node *heap_expire(s64 now)
{
	struct node *n;

	if (!heap_size || heap[0].key > now)
		return NULL;
	n = heap[0].n;
	heap_remove(n);
	return n;
}

/* ---- a red-black tree ---- */

/* equal ones in the order in which they came */
static inline int later_than(const struct node *a, const struct node *b)
{
	return a->e.deadline < b->e.deadline ? -1 : 1;
}

static RB_HEAD(tree, node) tree;
static struct node *leftmost;

RB_PROTOTYPE(tree, node, link, later_than)
RB_GENERATE(tree, node, link, later_than)

static void rbtree_reset(void)
{
	RB_INIT(&tree);
	leftmost = NULL;
}

static inline void rbtree_add(struct node *n)
{
	tree_RB_INSERT(&tree, n);
	if (!leftmost || n->e.deadline < leftmost->e.deadline)
		leftmost = n;
}

static inline void rbtree_remove(struct node *n)
{
	if (n == leftmost)
		leftmost = tree_RB_NEXT(n);
	tree_RB_REMOVE(&tree, n);
}

static inline void rbtree_move(struct node *n, s64 deadline)
{
	rbtree_remove(n);
	n->e.deadline = deadline;
	rbtree_add(n);
}

static inline struct node *rbtree_expire(s64 now)
{
	struct node *n = leftmost;

	if (!n || n->e.deadline > now)
		return NULL;
	rbtree_remove(n);
	return n;
}

/* ---- results ---- */

static const char * const whats[] = {
	"arm", "rearm", "cancel", "hot-pair", "drain", "drain-in-order",
	"expire", "jump"
};

enum what {
	ARM, REARM, CANCEL, HOT_PAIR, DRAIN, DRAIN_IN_ORDER,
	EXPIRE, JUMP, WHATS
};

/* of one contender in one round */
static double spent[WHATS];
static u64 done[WHATS];
/* what the table shows */
static struct row {
	const char *who;
	unsigned int n, rounds;
	double value[WHATS][MAX_ROUNDS];
} rows[16];
static unsigned int row_count;

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static inline void measured(enum what what, double since, u64 count)
{
	spent[what] += now_ns() - since;
	done[what] += count;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_row(const struct row *row, unsigned int what)
{
	double sorted[MAX_ROUNDS];

	memcpy(sorted, row->value[what], sizeof(sorted));
	qsort(sorted, row->rounds, sizeof(*sorted), by_value);
	printf("#   %9u  %-8s %9.1f  (%.1f to %.1f)\n", row->n, row->who,
	       sorted[row->rounds / 2], sorted[0], sorted[row->rounds - 1]);
}

static void print_table(void)
{
	unsigned int what, i;

	printf("# ns per operation by number of timers: median (least to most)\n");
	for (what = 0; what < WHATS; what++) {
		printf("#\n# %s\n", whats[what]);
		for (i = 0; i < row_count; i++)
			print_row(&rows[i], what);
	}
}

/* ---- what is measured ---- */

static __always_inline void arm_all(const struct contender *c, unsigned int n,
				    const s64 *when)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct node *node = &nodes[arm_order[i]];

		node->e.deadline = when[i];
		c->add(node);
	}
}

static __always_inline void cancel_all(const struct contender *c, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		c->remove(&nodes[cancel_order[i]]);
}

static __always_inline void expire_all(const struct contender *c, unsigned int n,
				       s64 now)
{
	unsigned int count = 0;

	while (c->expire(now))
		count++;
	if (count != n)
		die("timers were lost");
}

static __always_inline void arm_and_cancel(const struct contender *c,
					   unsigned int n)
{
	double start;

	c->reset();
	start = now_ns();
	arm_all(c, n, deadlines);
	measured(ARM, start, n);
	start = now_ns();
	cancel_all(c, n);
	measured(CANCEL, start, n);
}

/* All due at one tick. @order: in which they were armed, or NULL for memory's */
static __always_inline void drain(const struct contender *c, unsigned int n,
				  const u32 *order)
{
	s64 due = (START + 1) * TICK_NS;
	unsigned int i;
	double start;

	c->reset();
	for (i = 0; i < n; i++) {
		struct node *node = &nodes[order ? order[i] : i];

		node->e.deadline = due;
		c->add(node);
	}
	start = now_ns();
	expire_all(c, n, due);
	measured(order ? DRAIN : DRAIN_IN_ORDER, start, n);
}

static __always_inline void expire(const struct contender *c, unsigned int n)
{
	double start;

	c->reset();
	arm_all(c, n, deadlines);
	start = now_ns();
	expire_all(c, n, (START + RANGE) * TICK_NS);
	measured(EXPIRE, start, n);
}

static __always_inline void rearm(const struct contender *c, unsigned int n)
{
	double start;
	unsigned int i;

	c->reset();
	arm_all(c, n, deadlines);
	start = now_ns();
	for (i = 0; i < n; i++)
		c->move(&nodes[move_order[i]], later[i]);
	measured(REARM, start, n);
}

/* A few timers, again and again, among those that rearm() has left. */
static __always_inline void hot_pairs(const struct contender *c)
{
	unsigned int i;
	double start;

	start = now_ns();
	for (i = 0; i < HOT_PAIRS; i++) {
		struct node *node = &hot[i % HOT];

		node->e.deadline = later[i % 1024];
		c->add(node);
		c->remove(node);
	}
	measured(HOT_PAIR, start, HOT_PAIRS);
}

/* Arm a timer for the end of a long time without one, and let the time pass. */
static __always_inline void jump(const struct contender *c, unsigned int n)
{
	s64 now = START * TICK_NS;
	unsigned int i;
	double start;

	c->reset();
	for (i = 0; i < n; i++) {
		struct node *node = &nodes[arm_order[i]];

		node->e.deadline = deadlines[i] + FAR * TICK_NS;
		c->add(node);
	}
	start = now_ns();
	for (i = 0; i < JUMPS; i++) {
		now += JUMP_TICKS * TICK_NS;
		hot[0].e.deadline = now;
		c->add(&hot[0]);
		expire_all(c, 1, now);
	}
	measured(JUMP, start, JUMPS);
}

static __always_inline void run(const struct contender *c, unsigned int n,
				unsigned int repeat)
{
	unsigned int i;

	for (i = 0; i < repeat; i++) {
		arm_and_cancel(c, n);
		drain(c, n, arm_order);
		drain(c, n, NULL);
		expire(c, n);
		rearm(c, n);
	}
	hot_pairs(c);
	jump(c, n);
}

#define CONTENDER(who)							\
static void who##_run(unsigned int n, unsigned int repeat)		\
{									\
	static const struct contender c = {				\
		who##_reset, who##_add, who##_remove, who##_move,	\
		who##_expire						\
	};								\
									\
	run(&c, n, repeat);						\
}

CONTENDER(wheel)
CONTENDER(heap)
CONTENDER(rbtree)

static const struct {
	const char *name;
	unsigned int most;
	void (*run)(unsigned int n, unsigned int repeat);
} contenders[] = {
	{ "wheel", MAX_TIMERS, wheel_run },
	{ "heap", MAX_RIVAL, heap_run },
	{ "rbtree", MAX_RIVAL, rbtree_run },
};

/* with few timers, all is repeated until it makes at least so many steps */
static unsigned int min_steps = BIT(20);

/* One contender, one number of timers, one round. */
static void measure(unsigned int which, unsigned int n, unsigned int at,
		    unsigned int round)
{
	const char *who = contenders[which].name;
	unsigned int what;

	memset(spent, 0, sizeof(spent));
	memset(done, 0, sizeof(done));
	contenders[which].run(n, n < min_steps ? min_steps / n : 1);
	for (what = 0; what < WHATS; what++) {
		double value = spent[what] / done[what];

		printf("{\"what\":\"wheel-%s\",\"who\":\"%s\",\"n\":%u,",
		       whats[what], who, n);
		printf("\"round\":%u,\"value\":%.2f,\"unit\":\"ns\"}\n",
		       round + 1, value);
		rows[at].value[what][round] = value;
	}
	rows[at].who = who;
	rows[at].n = n;
	rows[at].rounds = round + 1;
	fflush(stdout);
}

/* ---- preparations ---- */

static void *huge_alloc(size_t size)
{
	void *p;

	size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	p = aligned_alloc(HUGE_PAGE, size);
	if (!p)
		die("not enough memory");
	/* best effort: without it the figures are worse, not wrong */
	madvise(p, size, MADV_HUGEPAGE);
	return memset(p, 0, size);
}

static u32 *shuffled(unsigned int n)
{
	u32 *order = huge_alloc(n * sizeof(*order));
	unsigned int i;

	for (i = 0; i < n; i++) {
		unsigned int j = rnd_below(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static s64 *random_deadlines(unsigned int n)
{
	s64 *when = huge_alloc(n * sizeof(*when));
	unsigned int i;

	for (i = 0; i < n; i++)
		when[i] = START * TICK_NS + 1 + rnd_below(RANGE * TICK_NS);
	return when;
}

static void measure_all(unsigned int n, unsigned int rounds)
{
	unsigned int first = row_count;
	unsigned int round, i;

	arm_order = shuffled(n);
	move_order = shuffled(n);
	cancel_order = shuffled(n);
	for (round = 0; round < rounds; round++) {
		unsigned int at = first;

		for (i = 0; i < ARRAY_SIZE(contenders); i++)
			if (n <= contenders[i].most)
				measure(i, n, at++, round);
		row_count = at;
	}
	free(arm_order);
	free(move_order);
	free(cancel_order);
}

int main(int argc, char **argv)
{
	static const unsigned int counts[] = { BIT(12), BIT(16), BIT(20), BIT(23) };
	unsigned int rounds = MAX_ROUNDS, most = MAX_TIMERS, i;

	if (argc == 2 && !strcmp(argv[1], "quick")) {
		rounds = BIG_ROUNDS;
		most = BIT(16);
		min_steps = BIT(18);
	} else if (argc != 1) {
		die("usage: wheel_bench [quick]");
	}

	nodes = huge_alloc((size_t)most * sizeof(*nodes));
	heap = huge_alloc((MAX_RIVAL + 1) * sizeof(*heap));
	deadlines = random_deadlines(most);
	later = random_deadlines(most);
	for (i = 0; i < ARRAY_SIZE(counts) && counts[i] <= most; i++)
		measure_all(counts[i], counts[i] > MAX_RIVAL ? BIG_ROUNDS : rounds);
	print_table();
	return 0;
}
