// SPDX-License-Identifier: GPL-2.0
/*
 * The last reference to a file goes, in all of the ways in which it may
 * (contract H5). That nothing is left is seen by the references to the module,
 * of which each context has one, and in the end by that it can be unloaded.
 */
#include "spottimer_test.h"

static bool wait_contexts(long long n)
{
	__s64 since = 0;

	while (contexts() != n)
		if (!look_again(&since))
			return false;
	return true;
}

/*
 * Threads that wait, in a process that ends.
 */

struct waiter {
	pthread_t thread;
	pid_t tid;
	int fd;
};

static void tell_tid(struct waiter *w)
{
	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
}

static void *wait_in_cancel(void *arg)
{
	struct waiter *w = arg;

	tell_tid(w);
	cancel(w->fd, 1, 0, 0);
	return NULL;
}

static void *wait_in_cancel_all(void *arg)
{
	struct waiter *w = arg;

	tell_tid(w);
	cancel(w->fd, 0, 0, SPOTTIMER_CANCEL_ALL);
	return NULL;
}

static void *wait_in_read(void *arg)
{
	struct spottimer_record rec;
	struct waiter *w = arg;

	tell_tid(w);
	read_records(w->fd, &rec, 1);
	return NULL;
}

static void *wait_in_poll(void *arg)
{
	struct waiter *w = arg;

	tell_tid(w);
	readable_for(w->fd, -1);
	return NULL;
}

static bool waiter_start(struct waiter *w, int fd, void *(*run)(void *),
			 long nr)
{
	__s64 since = 0;

	w->fd = fd;
	if (pthread_create(&w->thread, NULL, run, w))
		return false;
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE))
		if (!look_again(&since))
			return false;
	return wait_asleep(w->tid, nr);
}

/* A blocking file in which two handlers run and a tick is far away. */
static int open_busy(void)
{
	struct spottimer_record rec[2];
	int fd = spot_open(0);

	if (fd >= 0 && arm_once(fd, 1, 0, SPOTTIMER_REG_MANUAL) &&
	    arm_every(fd, 2, HOUR, 0) && !lease_grant(fd, 3, 1, HOUR) &&
	    arm_every(fd, 4, MSEC, SPOTTIMER_REG_MANUAL) &&
	    take_all(fd, rec, 2) == 2)
		return fd;
	close(fd);
	return -1;
}

FIXTURE(ends) {
};

FIXTURE_VARIANT(ends) {
	void (*end)(void);
	int status;
};

static void end_by_exit(void)
{
	_exit(0);
}

static void end_by_kill(void)
{
	kill(getpid(), SIGKILL);
}

static void end_by_crash(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

/* Another program in its place; the file is closed by that. */
static void end_by_exec(void)
{
	execl("/bin/true", "true", NULL);
}

FIXTURE_VARIANT_ADD(ends, by_exit) { end_by_exit, 0 };
FIXTURE_VARIANT_ADD(ends, by_kill) { end_by_kill, SIGKILL };
FIXTURE_VARIANT_ADD(ends, by_crash) { end_by_crash, SIGSEGV };
FIXTURE_VARIANT_ADD(ends, by_exec) { end_by_exec, 0 };

FIXTURE_SETUP(ends)
{
}

FIXTURE_TEARDOWN(ends)
{
}

TEST_F(ends, h5_case29_a_process_ends_while_its_threads_wait)
{
	long long before = contexts();
	int pipefd[2], status;
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe2(pipefd, O_CLOEXEC));
	pid = fork_with_us();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct waiter w[4] = { 0 };
		int fd = open_busy();

		/* the other end of the pipe is to see that it is over */
		close(pipefd[0]);
		if (waiter_start(&w[0], fd, wait_in_read, SYS_read) &&
		    waiter_start(&w[1], fd, wait_in_poll, SYS_poll) &&
		    waiter_start(&w[2], fd, wait_in_cancel, SYS_ioctl) &&
		    waiter_start(&w[3], fd, wait_in_cancel_all, SYS_ioctl) &&
		    write(pipefd[1], "x", 1) == 1)
			variant->end();
		_exit(1);
	}
	close(pipefd[1]);
	ASSERT_EQ(1, read(pipefd[0], &byte, 1));
	ASSERT_EQ(0, read(pipefd[0], &byte, 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(variant->status, status);
	EXPECT_TRUE(wait_contexts(before));
}

/* Timers in every state, and an owner. Returns whether all could be made. */
static bool fill_context(int fd)
{
	enum { N = 2000 };
	struct spottimer_register reg;
	struct spottimer_record rec;
	int i;

	/* running, and of those some that end, are replaced or wait again */
	for (i = 0; i < N; i++)
		if (!arm_every(fd, i, HOUR, SPOTTIMER_REG_MANUAL) ||
		    !arm_every(fd, i, 1, SPOTTIMER_REG_MANUAL) ||
		    take(fd, &rec) || rec.key != (__u64)i)
			return false;
	for (i = 0; i < N; i++) {
		if (i % 4 == 1)
			cancel(fd, i, 0, SPOTTIMER_CANCEL_NOWAIT);
		if (i % 4 == 2 && !arm_once(fd, i, 0, 0))
			return false;
		if (i % 8 == 3 && complete(fd, i, 0, 0))
			return false;
	}
	/* ready, held, near, far, never */
	if (lease_grant(fd, 1, 1, HOUR))
		return false;
	for (i = 0; i < N; i++) {
		reg = timer_once(N + i, i % 5 ? i * MSEC * i / 10 : 0);
		if (i % 7 == 0)
			reg.first = INT64_MAX;
		reg.owner = i % 2;
		reg.epoch = i % 2;
		if (spot_register(fd, &reg))
			return false;
	}
	return !lease_revoke(fd, 1, 1, 0);
}

TEST_F(ends, h5_a_process_ends_with_timers_in_all_states)
{
	long long before = contexts();
	int pipefd[2], status;
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe2(pipefd, O_CLOEXEC));
	pid = fork_with_us();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (fill_context(spot_open(O_NONBLOCK)) &&
		    write(pipefd[1], "x", 1) == 1)
			variant->end();
		_exit(1);
	}
	close(pipefd[1]);
	ASSERT_EQ(1, read(pipefd[0], &byte, 1));
	ASSERT_EQ(0, read(pipefd[0], &byte, 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(variant->status, status);
	EXPECT_TRUE(wait_contexts(before));
}

/*
 * Several references: the context lives as long as one of them.
 */

/* A process that opens a busy file, sends it, and does no more. */
static pid_t busy_sender(int sock)
{
	pid_t pid = fork_with_us();

	if (!pid) {
		int fd = open_busy();

		if (fd >= 0 && !send_fd(sock, fd))
			for (;;)
				pause();
		_exit(1);
	}
	return pid;
}

TEST(h5_a_file_outlives_the_process_that_opened_it)
{
	long long before = contexts();
	struct spottimer_record rec;
	int sock[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = busy_sender(sock[1]);
	ASSERT_LE(0, pid);
	fd = receive_fd(sock[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(before + 1, contexts());

	/* its handlers run on, and whoever has the file completes them */
	EXPECT_EQ(SPOTTIMER_RUNNING, query(fd, 1, 0).state);
	EXPECT_EQ(SPOTTIMER_PENDING, query(fd, 2, 0).state);
	EXPECT_EQ(SPOTTIMER_RUNNING, query(fd, 4, 0).state);
	EXPECT_EQ(0, complete(fd, 1, 0, 0));
	EXPECT_EQ(0, complete(fd, 4, 0, 0));
	ASSERT_EQ(0, take(fd, &rec));
	EXPECT_EQ(4, rec.key);
	EXPECT_EQ(2, rec.delivery_index);
	EXPECT_EQ(0, lease_renew(fd, 3, 1, HOUR));
	EXPECT_EQ(0, cancel(fd, 2, 0, 0).error);
	EXPECT_NE(0, arm_once(fd, 5, 0, 0));
	ASSERT_EQ(0, take(fd, &rec));
	EXPECT_EQ(5, rec.key);
	close(fd);
	EXPECT_TRUE(wait_contexts(before));
}

TEST(h5_a_file_that_was_sent_and_never_received_is_closed)
{
	long long before = contexts();
	int sock[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = busy_sender(sock[1]);
	ASSERT_LE(0, pid);
	ASSERT_EQ(1, recv(sock[0], &byte, 1, MSG_PEEK));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(before + 1, contexts());
	close(sock[1]);
	EXPECT_EQ(before + 1, contexts());
	close(sock[0]);
	EXPECT_TRUE(wait_contexts(before));
}

TEST(h5_the_last_of_many_references_ends_it)
{
	enum { N = 4 };
	long long before = contexts();
	int fd = spot_open(O_NONBLOCK), copy[N], i;
	struct spottimer_record rec;
	pid_t pid[N];

	ASSERT_LE(0, fd);
	ASSERT_NE(0, arm_every(fd, 1, MSEC, 0));
	for (i = 0; i < N; i++) {
		copy[i] = dup(fd);
		ASSERT_LE(0, copy[i]);
		pid[i] = fork_with_us();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			/* these take ticks until they are killed */
			while (!take(fd, &rec))
				;
			_exit(1);
		}
	}
	EXPECT_EQ(before + 1, contexts());
	close(fd);
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, take(copy[i], &rec));
		EXPECT_EQ(before + 1, contexts());
		close(copy[i]);
	}
	for (i = 0; i < N; i++) {
		EXPECT_EQ(before + 1, contexts());
		ASSERT_EQ(0, kill(pid[i], SIGKILL));
		ASSERT_EQ(pid[i], waitpid(pid[i], NULL, 0));
	}
	EXPECT_TRUE(wait_contexts(before));
}

/*
 * A timer is on one list at a time, whatever is done to it: in the wheel, on the
 * queue, with those who wait for it, among those that have ended. Here lists are
 * changed as fast as can be, which a kernel with list debugging sees; on others
 * at least the numbers have to fit.
 */

static unsigned int dice(unsigned int sides)
{
	static unsigned long long state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % sides;
}

static void any_operation(int fd, __u64 *epoch)
{
	__u64 key = dice(8), owner = 1 + dice(2);
	struct spottimer_register reg = timer_once(key, dice(3) * MSEC / 2);
	struct spottimer_record rec[3];

	switch (dice(10)) {
	case 0:
	case 1:
	case 2:
		reg.period = dice(3) * MSEC;
		reg.policy = dice(3);
		reg.flags = dice(2) ? SPOTTIMER_REG_MANUAL : 0;
		reg.flags |= dice(4) ? 0 : SPOTTIMER_REG_CRITICAL;
		reg.owner = dice(2) ? owner : 0;
		reg.epoch = reg.owner ? epoch[owner] : 0;
		spot_register(fd, &reg);
		break;
	case 3:
	case 4:
		cancel(fd, key, 0, SPOTTIMER_CANCEL_NOWAIT);
		break;
	case 5:
		cancel(fd, owner, 0, SPOTTIMER_CANCEL_OWNER |
				     SPOTTIMER_CANCEL_NOWAIT);
		break;
	case 6:
	case 7:
		read_records(fd, rec, 1 + dice(3));
		break;
	case 8:
		complete(fd, key, 0, dice(2) ? 0 : -EIO);
		break;
	case 9:
		if (dice(2))
			lease(fd, SPOTTIMER_LEASE_GRANT, owner, ++epoch[owner],
			      MSEC + dice(10) * MSEC,
			      dice(2) ? SPOTTIMER_LEASE_ADOPT : 0);
		else
			lease_revoke(fd, owner, epoch[owner],
				     dice(4) ? 0 : SPOTTIMER_LEASE_FORGET);
		break;
	}
}

/* What fdinfo counts, at one moment. */
struct census {
	int registered;
	int living;
	int ended;
};

static struct census census(int fd)
{
	struct census c = { .registered = -1 };
	char line[80], name[20];
	FILE *file;
	int n;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", fd);
	file = fopen(line, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%19[a-z]: %d", name, &n) != 2)
			continue;
		if (!strcmp(name, "registered"))
			c.registered = n;
		else if (!strcmp(name, "ended"))
			c.ended = n;
		else if (!strcmp(name, "pending") || !strcmp(name, "ready") ||
			 !strcmp(name, "running") || !strcmp(name, "held"))
			c.living += n;
	}
	if (file)
		fclose(file);
	return c;
}

TEST_F(ctx, h5_case30_a_timer_is_on_one_list_at_a_time)
{
	struct spottimer_record rec;
	__u64 epoch[3] = { 0 };
	struct census c;
	int i, k;

	for (i = 0; i < 20000; i++) {
		any_operation(self->fd, epoch);
		if (i % 50)
			continue;
		/* of a key one lives, and one may be dying or wait to be read */
		c = census(self->fd);
		ASSERT_LE(0, c.registered);
		EXPECT_GE(16, c.living);
		EXPECT_LE(c.living, c.registered);
		EXPECT_LE(c.registered, c.living + c.ended);
	}
	/* and all can be brought to an end */
	cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL | SPOTTIMER_CANCEL_NOWAIT);
	for (k = 0; k < 8; k++)
		complete(self->fd, k, 0, 0);
	while (read_records(self->fd, &rec, 1) == 1)
		EXPECT_EQ(0, rec.flags & SPOTTIMER_REC_TICK);
	c = census(self->fd);
	EXPECT_EQ(0, c.registered);
	EXPECT_EQ(0, c.living);
}

TEST_HARNESS_MAIN
