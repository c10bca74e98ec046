// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of a call in which memory cannot be had or user memory cannot be
 * reached, at every place where that can happen. The kernel's fault injection
 * makes the nth such place of a system call fail; each call is made with
 * n = 1, 2, 3, ... until it comes through without having met the fault. Since
 * the kernel often tries twice, calls that need several things are also made
 * while there is memory for the first few of them only, and none from there on.
 *
 * A fault may be made good within the call, and then all of its effect has to be
 * there. Else the call says ENOMEM or EFAULT, nothing has changed, and the same
 * call made again succeeds.
 */
#include "spottimer_test.h"

#include <sys/epoll.h>

/* a call is made many times here, on kernels that are slow */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

#define FAULTS		"/sys/kernel/debug/"

#define OWNER		42

enum {
	KEYS = 6,	/* the tests' timers are 0 to 5 */
	LIMIT = 100,	/* timers and owners that the user may have */
	BATCH = 70,	/* entries of a large batch, more than are worked at once */
	PLACES = 100000, /* more than there are in any call, and bytes */
};

FIXTURE(fault) {
	int fd;
	long long limit;
};

/* of this thread: at which place to fail, and whether to run out of memory */
static int nth_fd, short_fd;

/* Faults for all that asks, but only of who wants them, and not a word about it. */
static bool may_inject(void)
{
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	short_fd = open("/proc/thread-self/make-it-fail", O_WRONLY);
	return nth_fd >= 0 && short_fd >= 0 &&
	       !write_file(FAULTS "failslab/task-filter", "Y") &&
	       !write_file(FAULTS "failslab/probability", "100") &&
	       !write_file(FAULTS "failslab/ignore-gfp-wait", "N") &&
	       !write_file(FAULTS "failslab/verbose", "0") &&
	       !write_file(FAULTS "fail_page_alloc/ignore-gfp-wait", "N") &&
	       !write_file(FAULTS "fail_page_alloc/min-order", "0") &&
	       !write_file(FAULTS "fail_page_alloc/verbose", "0") &&
	       !write_file(FAULTS "fail_usercopy/verbose", "0");
}

FIXTURE_SETUP(fault)
{
	if (!may_inject())
		SKIP(return, "the kernel has no fault injection");
	self->limit = read_param("max_user_timers");
	ASSERT_LT(0, self->limit);
	ASSERT_EQ(0, write_param("max_user_timers", LIMIT));
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(fault)
{
	write_param("max_user_timers", self->limit);
	close(self->fd);
}

/* The nth place of this thread's next system call is to fail. */
static void fault_at(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth_fd, text, len, 0) != len)
		abort();
}

/*
 * No fault any more. Returns how many places it was away, 0 if it was met. What
 * this does itself may fail by it, for there are places in it too.
 */
static int fault_away(void)
{
	char text[16] = "";
	int away = 1;

	if (pread(nth_fd, text, sizeof(text) - 1, 0) > 0)
		away = atoi(text);
	while (pwrite(nth_fd, "0", 1, 0) != 1)
		if (errno != EFAULT)
			abort();
	return away;
}

static bool fault_met(void)
{
	return !fault_away();
}

#define FAULTS_LEFT	"1000000\n"

/* This thread may have @bytes of memory, and nothing more. */
static void shortage_from(unsigned int bytes)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", bytes);
	if (write_file(FAULTS "failslab/space", text) ||
	    write_file(FAULTS "failslab/times", FAULTS_LEFT) ||
	    pwrite(short_fd, "1", 1, 0) != 1)
		abort();
}

/* There is enough again. Returns whether there was not. */
static bool shortage_met(void)
{
	char text[16] = "";
	ssize_t len;
	int fd;

	if (pwrite(short_fd, "0", 1, 0) != 1)
		abort();
	fd = open(FAULTS "failslab/times", O_RDONLY);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	return len > 0 && strcmp(text, FAULTS_LEFT);
}

/*
 * All that can be seen of a context, but for what changes by itself
 */

struct snapshot {
	struct spottimer_query q[KEYS];
	bool dying[KEYS];
	int lease[2];
	bool readable;
	int registered, owners, states[5];
};

static void look(int fd, struct snapshot *s)
{
	static const char * const state[] = {
		"pending", "ready", "running", "held", "ended",
	};
	int i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < KEYS; i++) {
		struct spottimer_register excl = timer_once(i, HOUR);

		s->q[i] = query(fd, i, 0);
		s->q[i].remaining = 0;
		/* one that was cancelled leaves room for the next */
		excl.flags = SPOTTIMER_REG_EXCL;
		if (s->q[i].state == SPOTTIMER_RUNNING)
			s->dying[i] = spot_register(fd, &excl) != -EEXIST;
	}
	for (i = 0; i < (int)ARRAY_LEN(s->lease); i++)
		s->lease[i] = lease_renew(fd, OWNER, i + 1, HOUR);
	s->readable = readable(fd);
	s->registered = read_fdinfo(fd, "registered");
	s->owners = read_fdinfo(fd, "owners");
	for (i = 0; i < (int)ARRAY_LEN(state); i++)
		s->states[i] = read_fdinfo(fd, state[i]);
}

/* How many timers the user may still have. They are registered for that. */
static int room(int fd)
{
	static struct spottimer_register reg[LIMIT + 1];
	int i, n = 0;

	for (i = 0; i <= LIMIT; i++)
		reg[i] = timer_once(1000 + i, HOUR);
	if (spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, LIMIT + 1,
		       sizeof(reg[0])) != LIMIT + 1)
		return -1;
	for (i = 0; i <= LIMIT; i++)
		n += !reg[i].error;
	return n;
}

/*
 * A call, its effect, and what it needs to have one. All begin with a new
 * context.
 */
struct subject {
	/* may be NULL; returns 0 or an error */
	int (*prepare)(int fd);
	/* returns 0 or an error */
	int (*call)(int fd);
	/* whether all is there that the call does */
	bool (*done)(int fd);
	/* what the call must have said, each at some place */
	bool enomem, efault;
	/* the call may have done a part of its work when it fails */
	bool partly;
	/* nor is there memory at any place after the first that fails */
	bool shortage;
};

static void sweep(struct __test_metadata *_metadata, int *fd, bool shortage,
		  const struct subject *subject)
{
	int n, ret, enomem = 0, efault = 0;
	struct snapshot before, after;
	bool met = true;

	/* what a call asks for may be large, if it comes late */
	for (n = 1; met && n < PLACES; n += shortage ? 64 + n / 4 : 1) {
		close(*fd);
		*fd = spot_open(O_NONBLOCK);
		ASSERT_LE(0, *fd);
		if (subject->prepare)
			ASSERT_EQ(0, subject->prepare(*fd));
		look(*fd, &before);

		if (shortage)
			shortage_from(n);
		else
			fault_at(n);
		ret = subject->call(*fd);
		met = shortage ? shortage_met() : fault_met();
		if (ret) {
			EXPECT_TRUE(met);
			EXPECT_TRUE(ret == -ENOMEM ||
				    (ret == -EFAULT && !shortage));
			enomem += ret == -ENOMEM;
			efault += ret == -EFAULT;
			if (!subject->partly) {
				look(*fd, &after);
				EXPECT_EQ(0, memcmp(&before, &after,
						    sizeof(after)));
			}
			EXPECT_EQ(0, subject->call(*fd));
		}
		EXPECT_TRUE(subject->done(*fd));

		look(*fd, &after);
		EXPECT_EQ(LIMIT,
			  room(*fd) + after.registered + after.owners);
		if (!__test_passed(_metadata)) {
			TH_LOG("at %s %d, which said %d",
			       shortage ? "byte" : "place", n, ret);
			return;
		}
	}
	EXPECT_FALSE(met);
	EXPECT_TRUE(enomem || !subject->enomem);
	EXPECT_TRUE(efault || shortage || !subject->efault);
	if (!shortage)
		TH_LOG("%d places, ENOMEM at %d, EFAULT at %d", n - 2, enomem,
		       efault);
}

static void sweeps(struct __test_metadata *_metadata, int *fd,
		   const struct subject *subject)
{
	sweep(_metadata, fd, false, subject);
	if (subject->shortage)
		sweep(_metadata, fd, true, subject);
}

#define SWEEP(...)							\
	sweeps(_metadata, &self->fd, &(const struct subject){ __VA_ARGS__ })

/* An ioctl can always fail to get at its argument and at memory of its own. */
#define SWEEP_IOCTL(...) \
	SWEEP(.enomem = true, .efault = true, __VA_ARGS__)

static __u64 generation;

static bool state_is(int fd, __u64 key, __u32 state)
{
	struct spottimer_query q = query(fd, key, 0);

	return !q.error && q.state == state;
}

static int arm(int fd, __u64 key, __s64 delay, __u32 flags)
{
	generation = arm_once(fd, key, delay, flags);
	return generation ? 0 : -EPROTO;
}

static int arm_pending(int fd)
{
	return arm(fd, 0, HOUR, 0);
}

static int arm_ready(int fd)
{
	int ret = arm(fd, 0, 0, 0);

	return ret || wait_state(fd, 0, 0, SPOTTIMER_READY) ? ret : -ETIME;
}

static int arm_running(int fd)
{
	struct spottimer_record rec;
	int ret = arm(fd, 0, 0, SPOTTIMER_REG_MANUAL);

	return ret ?: take(fd, &rec);
}

/*
 * Registering
 */

static struct spottimer_register reg;

static int call_register(int fd)
{
	reg = timer_once(0, HOUR);
	return spot_register(fd, &reg);
}

static bool is_registered(int fd)
{
	return state_is(fd, 0, SPOTTIMER_PENDING) &&
	       query(fd, 0, 0).generation == reg.generation;
}

TEST_F(fault, h2_register)
{
	SWEEP_IOCTL(.call = call_register, .done = is_registered,
		    .shortage = true);
}

static bool is_replaced(int fd)
{
	return reg.generation > generation && is_registered(fd) &&
	       read_fdinfo(fd, "registered") == 1;
}

TEST_F(fault, b2_h2_replace_while_pending)
{
	SWEEP_IOCTL(.prepare = arm_pending, .call = call_register,
		    .done = is_replaced);
}

static bool is_replaced_beside(int fd)
{
	return query(fd, 0, generation).state == SPOTTIMER_RUNNING &&
	       is_registered(fd) && !complete(fd, 0, generation, 0) &&
	       is_replaced(fd);
}

TEST_F(fault, b2_h2_replace_while_running)
{
	SWEEP_IOCTL(.prepare = arm_running, .call = call_register,
		    .done = is_replaced_beside, .shortage = true);
}

/* So many that they are not worked on all at once, and the table grows. */
static int call_register_batch(int fd)
{
	static struct spottimer_register regs[BATCH];
	int i, ret, error = 0;

	for (i = 0; i < BATCH; i++)
		regs[i] = timer_once(i, HOUR);
	ret = spot_batch(fd, SPOTTIMER_IOC_REGISTER, regs, BATCH,
			 sizeof(regs[0]));
	if (ret < 0)
		return ret;
	if (ret < BATCH)
		return -EPROTO;
	for (i = 0; i < BATCH; i++)
		error = error ?: regs[i].error;
	return error;
}

static bool is_batch_registered(int fd)
{
	int i;

	for (i = 0; i < BATCH; i++)
		if (!state_is(fd, i, SPOTTIMER_PENDING))
			return false;
	return read_fdinfo(fd, "registered") == BATCH;
}

TEST_F(fault, f6_h2_register_a_batch)
{
	SWEEP_IOCTL(.call = call_register_batch, .done = is_batch_registered,
		    .partly = true);
}

/*
 * Entries of a program that knows more of them than this kernel: they are copied
 * one by one, and a result that cannot be told is possible. What the call and
 * the entries say has to be what happened.
 */
TEST_F(fault, f6_h2_entries_say_what_became_of_them)
{
	struct {
		struct spottimer_register reg;
		__u64 more;
	} e[3];
	int nth, ret, i, efault = 0;
	bool met = true;

	for (nth = 1; met && nth < PLACES; nth++) {
		close(self->fd);
		self->fd = spot_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd);
		memset(e, 0, sizeof(e));
		for (i = 0; i < 3; i++)
			e[i].reg = timer_once(i, HOUR);

		fault_at(nth);
		ret = spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, e, 3,
				 sizeof(e[0]));
		met = fault_met();
		EXPECT_TRUE(met || ret == 3);
		EXPECT_TRUE(ret > 0 || ret == -ENOMEM || ret == -EFAULT);
		for (i = 0; i < 3; i++) {
			bool worked = i < ret;
			int error = e[i].reg.error;

			/* EFAULT: what became of it could not be written */
			if (worked)
				EXPECT_TRUE(!error || error == -ENOMEM ||
					    error == -EFAULT);
			efault += worked && error == -EFAULT;
			EXPECT_EQ(worked && error != -ENOMEM,
				  state_is(self->fd, i, SPOTTIMER_PENDING));
		}
		if (!__test_passed(_metadata)) {
			TH_LOG("at place %d, which said %d: %d, %d, %d", nth,
			       ret, e[0].reg.error, e[1].reg.error,
			       e[2].reg.error);
			return;
		}
	}
	EXPECT_FALSE(met);
	EXPECT_LT(0, efault);
}

/*
 * Cancelling
 */

static int call_cancel(int fd)
{
	return cancel(fd, 0, 0, 0).error;
}

static bool has_ended(int fd)
{
	return state_is(fd, 0, SPOTTIMER_ENDED) && nothing(fd);
}

TEST_F(fault, e3_h2_cancel_while_pending)
{
	SWEEP_IOCTL(.prepare = arm_pending, .call = call_cancel,
		    .done = has_ended);
}

TEST_F(fault, e3_h2_cancel_while_ready)
{
	SWEEP_IOCTL(.prepare = arm_ready, .call = call_cancel,
		    .done = has_ended);
}

static int call_cancel_nowait(int fd)
{
	int ret = cancel(fd, 0, 0, SPOTTIMER_CANCEL_NOWAIT).error;

	return ret == -EINPROGRESS ? 0 : ret ?: -EPROTO;
}

static bool has_end_record(int fd)
{
	struct spottimer_record rec;

	return nothing(fd) && !complete(fd, 0, 0, -EIO) && !take(fd, &rec) &&
	       rec.flags == SPOTTIMER_REC_END && rec.result == -EIO &&
	       rec.generation == generation && has_ended(fd);
}

TEST_F(fault, e3_h2_cancel_while_running_and_go_on)
{
	SWEEP_IOCTL(.prepare = arm_running, .call = call_cancel_nowait,
		    .done = has_end_record);
}

/*
 * A thread that takes the records of @n timers, and completes them when the one
 * that cancels waits for it.
 */
static struct taker {
	pthread_t thread;
	pid_t canceller;
	int fd, n;
} taker;

static void *taker_run(void *arg)
{
	struct spottimer_record rec[KEYS];
	struct taker *t = arg;
	int i;

	if (take_all(t->fd, rec, t->n) != t->n ||
	    !wait_asleep(t->canceller, SYS_ioctl))
		return "the canceller did not wait";
	for (i = 0; i < t->n; i++)
		if (complete(t->fd, i, 0, -EIO))
			return "not completed";
	return NULL;
}

static int taker_start(int fd, int n)
{
	int i;

	taker.canceller = gettid();
	taker.fd = fd;
	taker.n = n;
	for (i = 0; i < n; i++)
		if (arm(fd, i, 0, SPOTTIMER_REG_MANUAL))
			return -EPROTO;
	if (pthread_create(&taker.thread, NULL, taker_run, &taker))
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (!wait_state(fd, i, 0, SPOTTIMER_RUNNING))
			return -ETIME;
	return 0;
}

static bool taker_is_done(void)
{
	void *failure;

	return !pthread_join(taker.thread, &failure) && !failure;
}

static int arm_taken(int fd)
{
	return taker_start(fd, 1);
}

static bool has_ended_with_a_wait(int fd)
{
	return taker_is_done() && has_ended(fd) &&
	       cancel(fd, 0, 0, 0).result == -EIO;
}

TEST_F(fault, e3_h2_cancel_while_running_and_wait)
{
	SWEEP_IOCTL(.prepare = arm_taken, .call = call_cancel,
		    .done = has_ended_with_a_wait, .shortage = true);
}

/* Three that run, one that waits for its time, and one that is ready. */
static int arm_many(int fd)
{
	int ret = taker_start(fd, 3);

	if (ret || arm(fd, 3, HOUR, 0) || arm(fd, 4, 0, 0))
		return ret ?: -EPROTO;
	return wait_state(fd, 4, 0, SPOTTIMER_READY) ? 0 : -ETIME;
}

static int call_cancel_all(int fd)
{
	return cancel(fd, 0, 0, SPOTTIMER_CANCEL_ALL).error;
}

static bool many_have_ended(int fd)
{
	int i;

	if (!taker_is_done())
		return false;
	for (i = 0; i < 5; i++)
		if (!state_is(fd, i, SPOTTIMER_ENDED))
			return false;
	return nothing(fd) && !read_fdinfo(fd, "registered");
}

TEST_F(fault, e7_h2_cancel_all)
{
	SWEEP_IOCTL(.prepare = arm_many, .call = call_cancel_all,
		    .done = many_have_ended, .partly = true, .shortage = true);
}

/*
 * Completing, and looking
 */

static int call_complete(int fd)
{
	return complete(fd, 0, generation, -EIO);
}

static bool is_completed(int fd)
{
	return has_ended(fd) && query(fd, 0, generation).result == -EIO;
}

TEST_F(fault, f4_h2_complete)
{
	SWEEP_IOCTL(.prepare = arm_running, .call = call_complete,
		    .done = is_completed);
}

static int call_query(int fd)
{
	struct spottimer_query q = query(fd, 0, 0);

	if (q.error)
		return q.error;
	return q.generation == generation && q.state == SPOTTIMER_READY ?
		0 : -EPROTO;
}

static bool is_ready(int fd)
{
	struct spottimer_record rec;

	return !take(fd, &rec) && rec.generation == generation &&
	       has_ended(fd);
}

TEST_F(fault, h2_query)
{
	SWEEP_IOCTL(.prepare = arm_ready, .call = call_query, .done = is_ready);
}

static int call_info(int fd)
{
	struct spottimer_info info;
	int ret = spot_info(fd, &info);

	return ret || info.max_user_timers == LIMIT ? ret : -EPROTO;
}

TEST_F(fault, h2_info)
{
	SWEEP(.prepare = arm_ready, .call = call_info, .done = is_ready,
	      .efault = true);
}

static int call_fdinfo(int fd)
{
	char path[40], text[1000];
	ssize_t len;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY);
	if (info < 0)
		return -errno;
	len = read(info, text, sizeof(text) - 1);
	if (len < 0)
		len = -errno;
	close(info);
	if (len < 0)
		return len;
	text[len] = 0;
	return strstr(text, "ready:\t1\n") ? 0 : -EPROTO;
}

TEST_F(fault, j3_h2_fdinfo)
{
	SWEEP(.prepare = arm_ready, .call = call_fdinfo, .done = is_ready,
	      .enomem = true, .efault = true);
}

/*
 * Leases
 */

static int arm_owned(int fd)
{
	struct spottimer_register owned = timer_once(0, HOUR);
	int ret = lease_grant(fd, OWNER, 1, HOUR);

	if (ret)
		return ret;
	owned.owner = OWNER;
	owned.epoch = 1;
	ret = spot_register(fd, &owned);
	generation = owned.generation;
	return ret;
}

static int call_grant_1(int fd)
{
	return lease_grant(fd, OWNER, 1, HOUR);
}

static int call_grant_2(int fd)
{
	return lease_grant(fd, OWNER, 2, HOUR);
}

static int call_adopt_2(int fd)
{
	return lease(fd, SPOTTIMER_LEASE_GRANT, OWNER, 2, HOUR,
		     SPOTTIMER_LEASE_ADOPT);
}

static int call_renew(int fd)
{
	return lease_renew(fd, OWNER, 1, HOUR);
}

static int call_revoke(int fd)
{
	return lease_revoke(fd, OWNER, 1, 0);
}

static int call_forget(int fd)
{
	return lease_revoke(fd, OWNER, 1, SPOTTIMER_LEASE_FORGET);
}

static bool epoch_1_lives(int fd)
{
	return !lease_renew(fd, OWNER, 1, HOUR) && read_fdinfo(fd, "owners") == 1;
}

static bool epoch_2_lives(int fd)
{
	return !lease_renew(fd, OWNER, 2, HOUR) &&
	       lease_renew(fd, OWNER, 1, HOUR) == -ESTALE &&
	       read_fdinfo(fd, "owners") == 1;
}

static bool is_replaced_by_epoch_2(int fd)
{
	return epoch_2_lives(fd) && has_ended(fd);
}

static bool is_adopted_by_epoch_2(int fd)
{
	return epoch_2_lives(fd) && state_is(fd, 0, SPOTTIMER_PENDING);
}

static bool is_renewed(int fd)
{
	return epoch_1_lives(fd) && state_is(fd, 0, SPOTTIMER_PENDING);
}

static bool is_revoked(int fd)
{
	return lease_renew(fd, OWNER, 1, HOUR) == -EKEYEXPIRED &&
	       lease_grant(fd, OWNER, 1, HOUR) == -ESTALE &&
	       state_is(fd, 0, SPOTTIMER_PENDING);
}

static bool is_forgotten(int fd)
{
	return !read_fdinfo(fd, "owners") && has_ended(fd) &&
	       !lease_grant(fd, OWNER, 1, HOUR);
}

TEST_F(fault, g1_h2_grant)
{
	SWEEP_IOCTL(.call = call_grant_1, .done = epoch_1_lives,
		    .shortage = true);
}

TEST_F(fault, g4_h2_grant_the_next_epoch)
{
	SWEEP_IOCTL(.prepare = arm_owned, .call = call_grant_2,
		    .done = is_replaced_by_epoch_2, .shortage = true);
}

TEST_F(fault, g4_h2_adopt)
{
	SWEEP_IOCTL(.prepare = arm_owned, .call = call_adopt_2,
		    .done = is_adopted_by_epoch_2);
}

TEST_F(fault, g1_h2_renew)
{
	SWEEP_IOCTL(.prepare = arm_owned, .call = call_renew,
		    .done = is_renewed);
}

TEST_F(fault, g1_h2_revoke)
{
	SWEEP_IOCTL(.prepare = arm_owned, .call = call_revoke,
		    .done = is_revoked);
}

TEST_F(fault, g1_h2_revoke_and_forget)
{
	SWEEP_IOCTL(.prepare = arm_owned, .call = call_forget,
		    .done = is_forgotten);
}

/*
 * Reading and waiting
 */

static struct spottimer_record records[BATCH];
static int got;

/* Read until there are @n; what came before an error is kept. */
static int call_read(int fd, int n)
{
	while (got < n) {
		int ret = read_records(fd, records + got, n - got);

		if (ret < 0)
			return ret;
		got += ret;
	}
	return 0;
}

static int call_read_1(int fd)
{
	return call_read(fd, 1);
}

static int arm_tick(int fd)
{
	got = 0;
	return arm_ready(fd);
}

static bool tick_was_read(int fd)
{
	return got == 1 && records[0].flags ==
			   (SPOTTIMER_REC_TICK | SPOTTIMER_REC_LAST) &&
	       records[0].generation == generation && has_ended(fd);
}

TEST_F(fault, f2_h2_read_a_tick)
{
	SWEEP(.prepare = arm_tick, .call = call_read_1, .done = tick_was_read);
}

static int arm_end(int fd)
{
	int ret = arm_running(fd);

	got = 0;
	return ret ?: call_cancel_nowait(fd) ?: complete(fd, 0, 0, -EIO);
}

static bool end_was_read(int fd)
{
	return got == 1 && records[0].flags == SPOTTIMER_REC_END &&
	       records[0].result == -EIO && has_ended(fd);
}

TEST_F(fault, e3_f2_h2_read_an_end)
{
	SWEEP(.prepare = arm_end, .call = call_read_1, .done = end_was_read);
}

static int arm_lapse(int fd)
{
	int ret = lease_grant(fd, OWNER, 1, 1);

	got = 0;
	return ret || readable_for(fd, PATIENCE) ? ret : -ETIME;
}

static bool lapse_was_read(int fd)
{
	return got == 1 && records[0].flags == SPOTTIMER_REC_LEASE &&
	       records[0].owner == OWNER && records[0].generation == 1 &&
	       nothing(fd);
}

TEST_F(fault, f2_g3_h2_read_a_lapse)
{
	SWEEP(.prepare = arm_lapse, .call = call_read_1,
	      .done = lapse_was_read);
}

static int arm_batch(int fd)
{
	int i;

	got = 0;
	for (i = 0; i < BATCH; i++)
		if (arm(fd, i, 0, 0))
			return -EPROTO;
	for (i = 0; i < BATCH; i++)
		if (!wait_state(fd, i, 0, SPOTTIMER_READY))
			return -ETIME;
	return 0;
}

static int call_read_batch(int fd)
{
	return call_read(fd, BATCH);
}

static bool batch_was_read(int fd)
{
	bool seen[BATCH] = { false };
	int i;

	for (i = 0; i < BATCH; i++) {
		if (records[i].key >= BATCH || seen[records[i].key])
			return false;
		seen[records[i].key] = true;
	}
	return got == BATCH && nothing(fd) && !read_fdinfo(fd, "registered");
}

TEST_F(fault, f2_f6_h2_read_many)
{
	SWEEP(.prepare = arm_batch, .call = call_read_batch,
	      .done = batch_was_read, .partly = true);
}

static int call_poll(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int ret = poll(&pfd, 1, 0);

	if (ret < 0)
		return -errno;
	return ret == 1 && pfd.revents == POLLIN ? 0 : -EPROTO;
}

TEST_F(fault, f1_h2_poll)
{
	SWEEP(.prepare = arm_ready, .call = call_poll, .done = is_ready,
	      .efault = true);
}

static int epoll_fd = -1;

static int arm_epoll(int fd)
{
	close(epoll_fd);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -errno : arm_ready(fd);
}

static int call_epoll_add(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static bool epoll_tells(int fd)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, 0) == 1 &&
	       event.data.fd == fd && is_ready(fd) &&
	       !epoll_wait(epoll_fd, &event, 1, 0) &&
	       arm_once(fd, 0, 0, 0) &&
	       epoll_wait(epoll_fd, &event, 1, PATIENCE) == 1;
}

TEST_F(fault, f1_h2_epoll_add)
{
	SWEEP(.prepare = arm_epoll, .call = call_epoll_add,
	      .done = epoll_tells, .enomem = true, .efault = true);
}

/*
 * Opening, closing, loading
 */

static int try_open(void)
{
	int fd = spot_open(O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* The first file of a user is the one that needs most. */
static void sweep_open(struct __test_metadata *_metadata, bool shortage)
{
	int n, fd, enomem = 0;
	bool met = true;

	for (n = 1; met && n < PLACES; n += shortage ? 64 + n / 4 : 1) {
		if (shortage)
			shortage_from(n);
		else
			fault_at(n);
		fd = try_open();
		met = shortage ? shortage_met() : fault_met();
		if (fd < 0) {
			EXPECT_TRUE(met);
			EXPECT_TRUE(fd == -ENOMEM ||
				    (fd == -EFAULT && !shortage));
			enomem += fd == -ENOMEM;
			fd = try_open();
		}
		ASSERT_LE(0, fd);
		EXPECT_EQ(LIMIT, room(fd));
		close(fd);
	}
	EXPECT_FALSE(met);
	EXPECT_LT(0, enomem);
}

TEST_F(fault, h2_open)
{
	close(self->fd);
	self->fd = -1;
	sweep_open(_metadata, false);
	sweep_open(_metadata, true);
}

TEST_F(fault, h2_h5_close)
{
	bool met = true;
	int nth;

	for (nth = 1; met && nth < PLACES; nth++) {
		/* something of everything */
		ASSERT_EQ(0, arm_end(self->fd));
		ASSERT_EQ(0, arm_running(self->fd));
		ASSERT_EQ(0, arm_owned(self->fd));
		ASSERT_EQ(0, arm(self->fd, 1, 0, 0));
		ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
		ASSERT_EQ(0, arm(self->fd, 2, HOUR, 0));

		fault_at(nth);
		EXPECT_EQ(0, close(self->fd));
		met = fault_met();
		self->fd = spot_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd);
		EXPECT_EQ(LIMIT, room(self->fd));
		close(self->fd);
		self->fd = spot_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd);
	}
	EXPECT_FALSE(met);
	TH_LOG("%d places", nth - 2);
}

static int load(int ko, const char *params)
{
	return syscall(SYS_finit_module, ko, params, 0) ? -errno : 0;
}

static bool is_loaded(void)
{
	return !access("/sys/module/spottimer", F_OK);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "spottimer", O_NONBLOCK) ? -errno : 0;
}

TEST_F(fault, h2_h5_load)
{
	int first, nth, ret, failed = 0;
	bool met = true;
	int ko = open("spottimer.ko", O_RDONLY);

	ASSERT_LE(0, ko);
	ASSERT_EQ(0, write_param("max_user_timers", self->limit));
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, unload());

	/* how the kernel reads a module, until it is ours to go on, is its own */
	fault_at(PLACES);
	EXPECT_EQ(-EINVAL, load(ko, "tick_ns=0"));
	first = PLACES - fault_away() - 10;
	ASSERT_LT(0, first);

	for (nth = first; met && nth < PLACES; nth++) {
		fault_at(nth);
		ret = load(ko, "");
		met = fault_met();
		if (ret) {
			EXPECT_TRUE(met);
			EXPECT_TRUE(ret == -ENOMEM || ret == -EFAULT);
			EXPECT_FALSE(is_loaded());
			EXPECT_NE(0, access("/dev/spottimer", F_OK));
			failed++;
			continue;
		}
		/* what failed may have been made good, or not have mattered */
		EXPECT_EQ(0, access("/dev/spottimer", F_OK));
		if (met)
			ASSERT_EQ(0, unload());
	}
	EXPECT_FALSE(met);
	EXPECT_LT(0, failed);
	TH_LOG("%d places, %d failures", nth - first - 1, failed);
	close(ko);
	self->fd = spot_open(O_NONBLOCK);
	EXPECT_LE(0, self->fd);
}

TEST_HARNESS_MAIN
