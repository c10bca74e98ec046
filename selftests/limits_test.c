// SPDX-License-Identifier: GPL-2.0
/*
 * Limits and rights: how many timers a file and a user may have (contract H3),
 * whose memory they are, and who may have critical ones (H4).
 *
 * What a test changes in the system, parameters and cgroups, is put back by its
 * parent, so that it is even if the test crashes.
 */
#include "spottimer_test.h"

#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Users without any right */
#define USER	1000
#define OTHER	1001

/* Run as another user from here on. There is no way back. */
static int become(uid_t uid)
{
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -errno;
	/* not even now */
	die_with_parent();
	return 0;
}

/* Open the device as another user would. */
static int open_as(uid_t uid)
{
	int fd;

	if (seteuid(uid))
		return -1;
	fd = spot_open(O_NONBLOCK);
	return seteuid(0) ? -1 : fd;
}

/* Register timers @from to @to, an hour away. Returns how many could be. */
static int arm_many(int fd, int from, int to)
{
	return register_many(fd, timer_once(from, HOUR), to - from, 0);
}

/* Of the timers with keys from @from on as many as there is room for. */
static int room_for(int fd, int from)
{
	return arm_many(fd, from, from + 50);
}

/*
 * H3: limits
 */

FIXTURE(limits) {
	int fd;
	long long max_timers;
	long long max_user_timers;
};

FIXTURE_SETUP(limits)
{
	self->max_timers = read_param("max_timers");
	ASSERT_LT(0, self->max_timers);
	self->max_user_timers = read_param("max_user_timers");
	ASSERT_LT(0, self->max_user_timers);
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(limits)
{
	EXPECT_EQ(0, write_param("max_timers", self->max_timers));
	EXPECT_EQ(0, write_param("max_user_timers", self->max_user_timers));
}

TEST_F(limits, h3_case32_a_timer_beyond_the_limit_of_a_file_is_refused)
{
	struct spottimer_register reg = timer_once(3, HOUR);
	struct spottimer_record rec;
	__u64 first;
	int other;

	ASSERT_EQ(0, write_param("max_timers", 2));
	first = arm_once(self->fd, 1, 30 * MSEC, 0);
	ASSERT_NE(0, first);
	ASSERT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	EXPECT_EQ(-ENOSPC, spot_register(self->fd, &reg));
	EXPECT_EQ(-ENOENT, query(self->fd, 3, 0).error);

	/* those there keep working */
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, first, 1, 1);

	/* each end makes room at once: the last tick's, and a cancel */
	EXPECT_NE(0, arm_once(self->fd, 3, HOUR, 0));
	EXPECT_EQ(0, arm_once(self->fd, 4, HOUR, 0));
	ASSERT_EQ(0, cancel(self->fd, 3, 0, 0).error);
	EXPECT_NE(0, arm_once(self->fd, 4, HOUR, 0));

	/* another file has its own */
	other = spot_open(0);
	ASSERT_LE(0, other);
	EXPECT_NE(0, arm_once(other, 1, HOUR, 0));
	close(other);
}

TEST_F(limits, h3_at_the_limit_a_timer_may_still_be_replaced)
{
	ASSERT_EQ(0, write_param("max_timers", 2));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	ASSERT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	EXPECT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_NE(0, arm_once(self->fd, 2, HOUR, SPOTTIMER_REG_REARM));
}

TEST_F(limits, h3_in_a_batch_only_those_beyond_the_limit_are_refused)
{
	struct spottimer_register reg[5];
	int i;

	ASSERT_EQ(0, write_param("max_timers", 3));
	for (i = 0; i < 5; i++)
		reg[i] = timer_once(i, HOUR);
	ASSERT_EQ(5, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, 5,
				sizeof(reg[0])));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(i < 3 ? 0 : -ENOSPC, reg[i].error);
}

TEST_F(limits, h3_a_timer_beyond_the_limit_of_a_user_is_refused)
{
	struct spottimer_register reg = timer_once(1, HOUR);
	int other = spot_open(0);

	ASSERT_LE(0, other);
	ASSERT_EQ(0, write_param("max_user_timers", 3));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	ASSERT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	ASSERT_NE(0, arm_once(other, 2, HOUR, 0));
	EXPECT_EQ(-ENOSPC, spot_register(other, &reg));
	ASSERT_EQ(0, cancel(self->fd, 1, 0, 0).error);
	EXPECT_EQ(0, spot_register(other, &reg));
	EXPECT_EQ(0, arm_once(self->fd, 1, HOUR, 0));

	/* closing a file gives back what it held */
	close(other);
	EXPECT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_NE(0, arm_once(self->fd, 3, HOUR, 0));
	EXPECT_EQ(0, arm_once(self->fd, 4, HOUR, 0));
}

TEST_F(limits, h3_a_user_may_hold_as_many_as_the_limit_says)
{
	enum { LIMIT = 2048, FILES = 8 };
	static struct spottimer_register reg[LIMIT];
	int fd[FILES], i;

	/* one in each of some files, and the rest in one */
	ASSERT_EQ(0, write_param("max_user_timers", LIMIT));
	for (i = 0; i < FILES; i++) {
		fd[i] = spot_open(0);
		ASSERT_LE(0, fd[i]);
		EXPECT_NE(0, arm_once(fd[i], 1, HOUR, 0));
	}
	for (i = 0; i < LIMIT - FILES; i++)
		reg[i] = timer_once(i, HOUR);
	ASSERT_EQ(LIMIT - FILES, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER,
					    reg, LIMIT - FILES,
					    sizeof(reg[0])));
	EXPECT_EQ(0, reg[LIMIT - FILES - 1].error);
	EXPECT_EQ(0, arm_once(fd[0], 2, HOUR, 0));
	for (i = 0; i < FILES; i++)
		close(fd[i]);
}

/* One of a crowd, who registers on a file of his own until there is no room. */
struct one {
	pthread_t thread;
	pthread_barrier_t *start;
	int fd;
	int good;
};

static void *one_run(void *arg)
{
	enum { MANY = 256 };
	struct spottimer_register reg[MANY];
	struct one *one = arg;
	int good = MANY, i;

	pthread_barrier_wait(one->start);
	while (good == MANY) {
		for (i = 0; i < MANY; i++)
			reg[i] = timer_once(one->good + i, HOUR);
		good = 0;
		if (spot_batch(one->fd, SPOTTIMER_IOC_REGISTER, reg, MANY,
			       sizeof(reg[0])) != MANY)
			break;
		for (i = 0; i < MANY; i++)
			good += !reg[i].error;
		one->good += good;
	}
	return NULL;
}

TEST_F(limits, h3_a_crowd_does_not_get_past_the_limit_of_a_user)
{
	enum { CROWD = 96, LIMIT = CROWD * 250, ROUNDS = 5 };
	struct one one[CROWD];
	pthread_barrier_t start;
	int round, i, sum;

	ASSERT_EQ(0, write_param("max_user_timers", LIMIT));
	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_init(&start, NULL, CROWD);
		for (i = 0; i < CROWD; i++) {
			one[i].start = &start;
			one[i].good = 0;
			one[i].fd = spot_open(0);
			ASSERT_LE(0, one[i].fd);
			ASSERT_EQ(0, pthread_create(&one[i].thread, NULL,
						    one_run, &one[i]));
		}
		sum = 0;
		for (i = 0; i < CROWD; i++) {
			pthread_join(one[i].thread, NULL);
			sum += one[i].good;
		}
		EXPECT_GE(LIMIT, sum);
		/* whom one was refused when others tried may have it now */
		while (sum < LIMIT && arm_once(self->fd, sum, HOUR, 0))
			sum++;
		EXPECT_EQ(LIMIT, sum);
		EXPECT_EQ(0, arm_once(self->fd, LIMIT, HOUR, 0));
		for (i = 0; i < CROWD; i++)
			close(one[i].fd);
		cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL);
	}
}

TEST_F(limits, e3_h3_case23_ten_cancelled_in_their_due_tick_count_once)
{
	enum { N = 10 };
	struct spottimer_register reg[N];
	struct spottimer_cancel c[N];
	int other = spot_open(0), round, i;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, write_param("max_timers", N));
	ASSERT_EQ(0, write_param("max_user_timers", N));
	for (round = 0; round < 100; round++) {
		__s64 due = now() + 3 * MSEC;

		memset(c, 0, sizeof(c));
		for (i = 0; i < N; i++) {
			reg[i] = timer_every(i, due, round % 2 * MSEC);
			c[i].key = i;
		}
		ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg,
					N, sizeof(reg[0])));
		/* shortly before, while and after they become ready */
		sleep_until(due + (round % 8 - 3) * MSEC / 4);
		ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_CANCEL, c, N,
					sizeof(c[0])));
		for (i = 0; i < N; i++) {
			ASSERT_EQ(0, reg[i].error);
			ASSERT_EQ(0, c[i].error);
			ASSERT_EQ(1, c[i].cancelled);
		}
		ASSERT_EQ(0, read_fdinfo(self->fd, "registered"));
		ASSERT_EQ(0, read_fdinfo(self->fd, "pending"));
		ASSERT_EQ(0, read_fdinfo(self->fd, "ready"));
		ASSERT_FALSE(readable(self->fd));
	}
	/* below 0 would be room for more than the limits */
	for (i = 0; i < N; i++)
		ASSERT_NE(0, arm_once(self->fd, i, HOUR, 0));
	EXPECT_EQ(0, arm_once(self->fd, N, HOUR, 0));
	EXPECT_EQ(0, arm_once(other, N, HOUR, 0));
	EXPECT_EQ(N, read_fdinfo(self->fd, "registered"));
	close(other);
}

TEST_F(limits, h3_info_tells_the_limits)
{
	struct spottimer_info info;

	ASSERT_EQ(0, write_param("max_timers", 12345));
	ASSERT_EQ(0, write_param("max_user_timers", 54321));
	ASSERT_EQ(0, spot_info(self->fd, &info));
	EXPECT_EQ(12345, info.max_timers);
	EXPECT_EQ(54321, info.max_user_timers);
}

TEST_F(limits, h3_a_replaced_timer_that_runs_counts_until_it_ends)
{
	struct spottimer_record rec;

	ASSERT_EQ(0, write_param("max_timers", 2));
	ASSERT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	/* it is replaced nevertheless, and there are three for a while */
	EXPECT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_EQ(0, cancel(self->fd, 2, 0, 0).error);
	EXPECT_EQ(0, arm_once(self->fd, 2, HOUR, 0));
	EXPECT_EQ(0, complete(self->fd, 1, rec.generation, 0));
	EXPECT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	EXPECT_EQ(0, arm_once(self->fd, 3, HOUR, 0));
}

TEST_F(limits, h2_h3_enospc_changes_nothing)
{
	struct spottimer_register reg = timer_once(3, HOUR);

	ASSERT_EQ(0, write_param("max_timers", 2));
	EXPECT_EQ(2, room_for(self->fd, 1));
	reg.generation = 0;
	reg.cookie = 77;
	EXPECT_EQ(-ENOSPC, spot_register(self->fd, &reg));
	EXPECT_EQ(0, reg.generation);
	EXPECT_EQ(-ENOENT, query(self->fd, 3, 0).error);
	EXPECT_EQ(2, cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL).cancelled);

	EXPECT_EQ(0, lease_grant(self->fd, 1, 1, HOUR));
	EXPECT_EQ(0, lease_grant(self->fd, 2, 1, HOUR));
	EXPECT_EQ(-ENOSPC, lease_grant(self->fd, 3, 1, HOUR));
	EXPECT_EQ(-EKEYEXPIRED, lease_renew(self->fd, 3, 1, HOUR));
	/* an owner that is known needs no room */
	EXPECT_EQ(0, lease_grant(self->fd, 1, 2, HOUR));
	EXPECT_EQ(0, lease_renew(self->fd, 2, 1, HOUR));
	/* and is there until it is forgotten */
	EXPECT_EQ(0, lease_revoke(self->fd, 1, 2, 0));
	EXPECT_EQ(-ENOSPC, lease_grant(self->fd, 3, 1, HOUR));
	EXPECT_EQ(0, lease_revoke(self->fd, 1, 2, SPOTTIMER_LEASE_FORGET));
	EXPECT_EQ(0, lease_grant(self->fd, 3, 1, HOUR));
}

TEST_F(limits, h3_a_lower_limit_leaves_the_timers_that_are_there)
{
	struct spottimer_record rec;
	__u64 near;

	ASSERT_EQ(20, arm_many(self->fd, 1, 21));
	near = arm_once(self->fd, 0, 30 * MSEC, 0);
	ASSERT_NE(0, near);
	ASSERT_EQ(0, write_param("max_timers", 5));
	ASSERT_EQ(0, write_param("max_user_timers", 5));
	EXPECT_EQ(0, room_for(self->fd, 30));
	/* they work, and may be replaced */
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 0, near, 1, 1);
	EXPECT_EQ(20, arm_many(self->fd, 1, 21));
	/* below it there is room again, not before */
	EXPECT_EQ(0, cancel(self->fd, 1, 0, 0).error);
	EXPECT_EQ(0, room_for(self->fd, 30));
	EXPECT_EQ(19, cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL).cancelled);
	EXPECT_EQ(5, room_for(self->fd, 30));
}

TEST_F(limits, h3_files_of_a_user_share_his_limit_and_users_do_not)
{
	int one = open_as(USER), two = open_as(USER), other = open_as(OTHER);

	ASSERT_LE(0, one);
	ASSERT_LE(0, two);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, write_param("max_user_timers", 10));
	ASSERT_EQ(6, arm_many(one, 0, 6));
	EXPECT_EQ(4, room_for(two, 0));
	EXPECT_EQ(0, room_for(one, 10));
	EXPECT_EQ(10, room_for(other, 0));
	EXPECT_EQ(10, room_for(self->fd, 0));
	/* what one gives back is for him alone */
	EXPECT_EQ(0, cancel(other, 0, 0, 0).error);
	EXPECT_EQ(0, room_for(one, 10));
	EXPECT_EQ(0, room_for(self->fd, 10));
	EXPECT_EQ(0, cancel(two, 0, 0, 0).error);
	EXPECT_EQ(1, room_for(one, 10));
	EXPECT_EQ(1, room_for(other, 10));
}

TEST_F(limits, h3_who_opened_the_file_is_who_counts)
{
	int fd = open_as(USER), status;
	pid_t pid;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, write_param("max_user_timers", 10));
	/* root has no room, but the file is the user's */
	ASSERT_EQ(10, room_for(self->fd, 0));
	EXPECT_EQ(5, arm_many(fd, 0, 5));

	/* and it stays his with whoever has it */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int mine;

		EXPECT_EQ(0, become(OTHER));
		EXPECT_EQ(5, room_for(fd, 10));
		EXPECT_EQ(0, room_for(self->fd, 10));
		mine = spot_open(0);
		EXPECT_LE(0, mine);
		EXPECT_EQ(10, room_for(mine, 0));
		/* another name does not give more */
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, room_for(fd, 20));
	close(fd);
	fd = open_as(USER);
	EXPECT_EQ(10, room_for(fd, 0));
}

/* A process of USER's with @n timers, which does no more. Returns its pid. */
static pid_t user_with_timers(int n)
{
	int pipefd[2], good = 0;
	pid_t pid;

	if (pipe(pipefd))
		return -1;
	pid = fork();
	if (!pid) {
		if (!become(USER))
			good = arm_many(spot_open(0), 0, n);
		if (write(pipefd[1], &good, sizeof(good)) == sizeof(good))
			for (;;)
				pause();
		_exit(1);
	}
	if (read(pipefd[0], &good, sizeof(good)) != sizeof(good) || good != n) {
		kill(pid, SIGKILL);
		pid = -1;
	}
	close(pipefd[0]);
	close(pipefd[1]);
	return pid;
}

TEST_F(limits, h3_h5_every_end_gives_back_what_was_counted)
{
	enum { LIMIT = 10 };
	int fd = open_as(USER), other = open_as(USER), status;
	struct spottimer_record rec[LIMIT];
	struct spottimer_register reg;
	unsigned int way;
	pid_t pid;
	int i;

	ASSERT_LE(0, fd);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, write_param("max_user_timers", LIMIT));
	for (way = 0; way < 8; way++) {
		/* there is room for just as many as ever, and then for none */
		ASSERT_EQ(LIMIT, room_for(other, 0)) {
			TH_LOG("before way %u", way);
		}
		ASSERT_EQ(0, room_for(fd, 0));
		ASSERT_EQ(LIMIT, cancel(other, 0, 0,
					SPOTTIMER_CANCEL_ALL).cancelled);
		switch (way) {
		case 0: /* cancel */
			ASSERT_EQ(LIMIT, room_for(fd, 0));
			for (i = 0; i < LIMIT; i++)
				EXPECT_EQ(0, cancel(fd, i, 0, 0).error);
			break;
		case 1: /* the last tick */
			for (i = 0; i < LIMIT; i++)
				ASSERT_NE(0, arm_once(fd, i, 0, 0));
			ASSERT_EQ(LIMIT, take_all(fd, rec, LIMIT));
			break;
		case 2: /* completion, after a cancel and an END record */
			for (i = 0; i < LIMIT; i++)
				ASSERT_NE(0, arm_every(fd, i, 1,
						       SPOTTIMER_REG_MANUAL));
			ASSERT_EQ(LIMIT, take_all(fd, rec, LIMIT));
			for (i = 0; i < LIMIT; i++) {
				EXPECT_EQ(-EINPROGRESS,
					  cancel(fd, i, 0,
						 SPOTTIMER_CANCEL_NOWAIT).error);
				EXPECT_EQ(0, complete(fd, i, 0, 0));
			}
			EXPECT_EQ(0, room_for(other, 0));
			ASSERT_EQ(LIMIT, take_all(fd, rec, LIMIT));
			break;
		case 3: /* a generation that was replaced while it ran */
			ASSERT_NE(0, arm_once(fd, 0, 0, SPOTTIMER_REG_MANUAL));
			ASSERT_EQ(0, take(fd, rec));
			ASSERT_NE(0, arm_once(fd, 0, HOUR, 0));
			EXPECT_EQ(0, complete(fd, 0, 0, 0));
			EXPECT_EQ(0, cancel(fd, 0, 0, 0).error);
			break;
		case 4: /* owners, with timers and without */
			for (i = 0; i < LIMIT - 1; i++)
				ASSERT_EQ(0, lease_grant(fd, i + 1, 1, HOUR));
			reg = timer_once(1, HOUR);
			reg.owner = 1;
			reg.epoch = 1;
			ASSERT_EQ(0, spot_register(fd, &reg));
			EXPECT_EQ(-ENOSPC, lease_grant(fd, 99, 1, HOUR));
			EXPECT_EQ(0, room_for(other, 0));
			for (i = 0; i < LIMIT - 1; i++)
				EXPECT_EQ(0, lease_revoke(fd, i + 1, 1,
							  SPOTTIMER_LEASE_FORGET));
			break;
		case 5: /* close, with all of that in it */
			ASSERT_EQ(0, lease_grant(fd, 1, 1, HOUR));
			ASSERT_NE(0, arm_once(fd, 1, 0, SPOTTIMER_REG_MANUAL));
			ASSERT_EQ(0, take(fd, rec));
			ASSERT_NE(0, arm_once(fd, 1, 0, 0));
			ASSERT_NE(0, arm_once(fd, 2, 0, 0));
			ASSERT_TRUE(wait_state(fd, 1, 0, SPOTTIMER_HELD));
			ASSERT_TRUE(wait_state(fd, 2, 0, SPOTTIMER_READY));
			ASSERT_LT(0, room_for(fd, 3));
			close(fd);
			fd = open_as(USER);
			ASSERT_LE(0, fd);
			break;
		case 6: /* the process is killed */
			pid = user_with_timers(LIMIT);
			ASSERT_LT(0, pid);
			EXPECT_EQ(0, room_for(other, 0));
			ASSERT_EQ(0, kill(pid, SIGKILL));
			ASSERT_EQ(pid, waitpid(pid, &status, 0));
			break;
		case 7: /* the one file of a user, so that he is forgotten */
			close(fd);
			close(other);
			fd = open_as(USER);
			other = open_as(USER);
			ASSERT_LE(0, fd);
			ASSERT_LE(0, other);
			break;
		}
	}
	EXPECT_EQ(LIMIT, room_for(other, 0));
	EXPECT_EQ(0, room_for(fd, 0));
}

/*
 * H4: rights
 */

TEST_F(ctx, h4_everybody_may_use_it)
{
	struct spottimer_record rec;
	struct stat st;
	int status;
	pid_t pid;

	ASSERT_EQ(0, stat("/dev/spottimer", &st));
	EXPECT_EQ(0666, st.st_mode & 07777);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd;

		EXPECT_EQ(0, become(USER));
		fd = spot_open(O_NONBLOCK);
		EXPECT_LE(0, fd);
		EXPECT_NE(0, arm_once(fd, 1, 0, 0));
		EXPECT_EQ(0, lease_grant(fd, 1, 1, HOUR));
		EXPECT_EQ(0, take(fd, &rec));
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* Try to register a critical timer. Returns the error. */
static int try_critical(int fd)
{
	struct spottimer_register reg = timer_once(1, 0);
	struct spottimer_record rec;
	int ret;

	reg.flags = SPOTTIMER_REG_CRITICAL;
	ret = spot_register(fd, &reg);
	if (ret)
		return ret;
	ret = take(fd, &rec);
	return ret ? ret : rec.flags & SPOTTIMER_REC_CRITICAL ? 0 : -EPROTO;
}

TEST_F(ctx, h2_h4_critical_timers_are_not_for_everybody)
{
	int fd;

	/* a file that root has opened does not make a user root */
	EXPECT_EQ(0, try_critical(self->fd));
	ASSERT_EQ(0, become(USER));
	fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EPERM, try_critical(fd));
	EXPECT_EQ(-EPERM, try_critical(self->fd));
	EXPECT_EQ(-ENOENT, query(fd, 1, 0).error);
	EXPECT_NE(0, arm_once(fd, 1, HOUR, 0));
	EXPECT_EQ(-EPERM, try_critical(fd));
	EXPECT_EQ(SPOTTIMER_PENDING, query(fd, 1, 0).state);
	close(fd);
}

TEST_F(ctx, h4_critical_timers_need_one_capability_and_no_other)
{
	ASSERT_EQ(0, prctl(PR_SET_KEEPCAPS, 1));
	ASSERT_EQ(0, become(USER));
	ASSERT_EQ(0, have_only(1U << CAP_SYS_NICE | 1U << CAP_KILL));
	EXPECT_EQ(0, try_critical(self->fd));
	ASSERT_EQ(0, have_only(1U << CAP_SYS_NICE));
	EXPECT_EQ(0, try_critical(self->fd));
	ASSERT_EQ(0, have_only(0));
	EXPECT_EQ(-EPERM, try_critical(self->fd));
}

TEST_F(ctx, h4_to_be_root_in_a_namespace_is_not_enough)
{
	int status;
	pid_t pid;

	ASSERT_EQ(0, become(USER));
	if (unshare(CLONE_NEWUSER))
		SKIP(return, "no user namespaces");
	/* it has every capability there */
	EXPECT_EQ(-EPERM, try_critical(self->fd));
	/* and its children do */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		EXPECT_EQ(-EPERM, try_critical(self->fd));
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
}

/*
 * H3: memory. A test process is in a cgroup of its own.
 */

#define CGROUPS	"/sys/fs/cgroup"
#define GROUP	CGROUPS "/spottimer"

static long long group_stat(const char *name)
{
	return file_number(GROUP "/memory.stat", name);
}

static long long group_current(void)
{
	return file_number(GROUP "/memory.current", "");
}

/*
 * When the kernel is out of memory it shows where, as if it had crashed. A test
 * that wants this keeps it from the console, where scripts/vm looks for trouble.
 */
static int set_console_level(int level)
{
	enum { CONSOLE_LEVEL = 8 };	/* of syslog(2) */

	return klogctl(CONSOLE_LEVEL, NULL, level) ? -errno : 0;
}

FIXTURE(memory) {
	int fd;
	int console_level;
	bool mounted;
};

FIXTURE_SETUP(memory)
{
	self->console_level = file_number("/proc/sys/kernel/printk", "");
	ASSERT_LT(0, self->console_level);
	self->mounted = !mount("none", CGROUPS, "cgroup2", 0, NULL);
	if (write_file(CGROUPS "/cgroup.subtree_control", "+memory"))
		SKIP(return, "no memory cgroups");
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	/* opened outside: it is charged to whoever registers */
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

/* Nobody is in the group any more, but it may take a moment to notice. */
static bool group_remove(void)
{
	__s64 since = 0;

	while (rmdir(GROUP) && errno == EBUSY)
		if (!look_again(&since))
			return false;
	return true;
}

FIXTURE_TEARDOWN_PARENT(memory)
{
	EXPECT_EQ(0, set_console_level(self->console_level));
	EXPECT_TRUE(group_remove());
	if (self->mounted)
		EXPECT_EQ(0, umount2(CGROUPS, MNT_DETACH));
}

static int join_group(void)
{
	return write_file(GROUP "/cgroup.procs", "0");
}

/* Memory that RCU frees comes back a little later. */
static bool comes_back_to(const char *name, long long bytes)
{
	__s64 since = 0;

	while (group_stat(name) > bytes)
		if (!look_again(&since))
			return false;
	return true;
}

TEST_F_TIMEOUT(memory, h3_timers_are_charged_to_who_registers, 120)
{
	enum { N = 100000 };
	long long slab, kernel, current, own, grown;

	ASSERT_EQ(0, join_group());
	slab = group_stat("slab");
	kernel = group_stat("kernel");
	current = group_current();
	own = read_fdinfo(self->fd, "memory");
	ASSERT_LE(0, slab);
	ASSERT_LE(0, kernel);
	ASSERT_LT(0, current);
	ASSERT_EQ(N, arm_many(self->fd, 0, N));

	grown = group_stat("slab") - slab;
	TH_LOG("%.1f bytes each, of slab memory", (double)grown / N);
	EXPECT_LE(N * 128LL, grown);
	EXPECT_LE(N * 128LL, group_current() - current);
	/* and so is the table, which may be memory of another kind */
	own = read_fdinfo(self->fd, "memory") - own;
	EXPECT_LT(N * 128LL, own);
	EXPECT_LE(own, group_stat("kernel") - kernel);

	close(self->fd);
	EXPECT_TRUE(comes_back_to("slab", slab + grown / 20));
	EXPECT_TRUE(comes_back_to("kernel", kernel + grown / 20));
}

TEST_F_TIMEOUT(memory, h3_owners_are_charged_to_who_grants, 120)
{
	enum { N = 10000 };
	static struct spottimer_lease entry[N];
	long long kernel, own, grown;
	int i;

	ASSERT_EQ(0, join_group());
	kernel = group_stat("kernel");
	own = read_fdinfo(self->fd, "memory");
	for (i = 0; i < N; i++) {
		entry[i].owner = i + 1;
		entry[i].epoch = 1;
		entry[i].deadline = HOUR;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_LEASE, entry, N,
				sizeof(entry[0])));
	EXPECT_EQ(0, entry[N - 1].error);
	own = read_fdinfo(self->fd, "memory") - own;
	grown = group_stat("kernel") - kernel;
	TH_LOG("%.1f bytes each", (double)grown / N);
	EXPECT_LE(N * 128LL, own);
	EXPECT_LE(own, grown);

	for (i = 0; i < N; i++) {
		entry[i].deadline = 0;
		entry[i].op = SPOTTIMER_LEASE_REVOKE;
		entry[i].flags = SPOTTIMER_LEASE_FORGET;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_LEASE, entry, N,
				sizeof(entry[0])));
	EXPECT_EQ(0, entry[N - 1].error);
	EXPECT_TRUE(comes_back_to("kernel", kernel + grown / 20));
}

/* Start @n handlers, of timers with keys from 0 on that go on for ever. */
static int start_handlers(int fd, int n)
{
	static struct spottimer_record rec[1000];
	int i, got = 0;

	for (i = 0; i < n; i++) {
		struct spottimer_register reg = timer_once(i, 0);

		reg.period = HOUR;
		reg.flags = SPOTTIMER_REG_MANUAL;
		if (spot_register(fd, &reg))
			return i;
	}
	while (got < n) {
		i = take_all(fd, rec, n - got < 1000 ? n - got : 1000);
		if (i <= 0)
			break;
		got += i;
	}
	return got;
}

/* A thread that makes a call which has to wait. */
struct caller {
	pthread_t thread;
	int fd;
	struct spottimer_cancel *entry;
	int n;
	int ret;
	pid_t tid;
	bool go;
};

static void *caller_run(void *arg)
{
	struct caller *c = arg;

	__atomic_store_n(&c->tid, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&c->go, __ATOMIC_ACQUIRE))
		usleep(500);
	c->ret = spot_batch(c->fd, SPOTTIMER_IOC_CANCEL, c->entry, c->n,
			    sizeof(c->entry[0]));
	return NULL;
}

static bool caller_start(struct caller *c)
{
	__s64 since = 0;

	if (pthread_create(&c->thread, NULL, caller_run, c))
		return false;
	while (!__atomic_load_n(&c->tid, __ATOMIC_ACQUIRE))
		if (!look_again(&since))
			return false;
	return true;
}

static void caller_go(struct caller *c)
{
	__atomic_store_n(&c->go, true, __ATOMIC_RELEASE);
}

TEST_F_TIMEOUT(memory, h3_those_who_wait_are_charged, 120)
{
	enum { N = 10000 };
	struct spottimer_cancel all = { .flags = SPOTTIMER_CANCEL_ALL };
	struct caller c = { .fd = self->fd, .entry = &all, .n = 1 };
	long long kernel, grown;
	int i;

	ASSERT_EQ(0, join_group());
	ASSERT_EQ(N, start_handlers(self->fd, N));
	ASSERT_TRUE(caller_start(&c));
	kernel = group_stat("kernel");
	caller_go(&c);
	ASSERT_TRUE(wait_asleep(c.tid, SYS_ioctl));
	/* it waits for each of them; two lists of pointers are 32 bytes */
	grown = group_stat("kernel") - kernel;
	TH_LOG("%.1f bytes each", (double)grown / N);
	EXPECT_LE(N * 32LL, grown);
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, complete(self->fd, i, 0, 0));
	pthread_join(c.thread, NULL);
	EXPECT_EQ(1, c.ret);
	EXPECT_EQ(0, all.error);
	EXPECT_EQ(N, all.cancelled);
	close(self->fd);
	EXPECT_TRUE(comes_back_to("kernel", kernel));
}

/*
 * A cgroup that has no more memory. The kernel kills a process of it, unless
 * there is none that it may; then memory is refused.
 */

/*
 * There are so many timers that with a few more the table should grow, and for
 * that there is no room at all: that is no error, and not to be insisted on.
 */
enum { ROOM = 1 << 20, WAITERS = 1000, FIRST = 60000 };

/* What the process in the group tells, in memory that is there already. */
struct starved {
	int stage;
	int unexpected;
	int registered;
	int granted;
	int refused;
	int ticks;
	int replaced;
	pid_t waiter;
	int after_cancel;
	int waits;
	int refused_waits;
	int wrong_ends;
	int after_more;
};

static void wait_stage(struct starved *s, int stage)
{
	while (__atomic_load_n(&s->stage, __ATOMIC_ACQUIRE) < stage)
		usleep(1000);
}

static void next_stage(struct starved *s)
{
	__atomic_add_fetch(&s->stage, 1, __ATOMIC_RELEASE);
}

/* Register four at a time until one is refused; others of the four need not. */
static void starve(struct starved *s, int fd)
{
	struct spottimer_register reg[4];
	int i;

	for (;;) {
		for (i = 0; i < 4; i++)
			reg[i] = timer_once(10000 + s->registered + i, HOUR);
		if (spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, 4,
			       sizeof(reg[0])) != 4)
			s->unexpected++;
		for (i = 0; i < 4; i++) {
			s->registered += !reg[i].error;
			s->refused += reg[i].error == -ENOMEM;
			if (reg[i].error && reg[i].error != -ENOMEM)
				s->unexpected++;
		}
		if (s->refused || s->unexpected)
			return;
	}
}

static void starved_run(struct starved *s)
{
	static struct spottimer_cancel entry[WAITERS];
	struct caller c = { .entry = entry, .n = WAITERS };
	struct spottimer_record rec;
	int fd, i;

	for (i = 0; i < WAITERS; i++)
		entry[i].key = i;
	/* its own memory is all there before there is no more */
	fd = spot_open(O_NONBLOCK);
	c.fd = fd;
	if (join_group() || write_file("/proc/self/oom_score_adj", "-1000") ||
	    start_handlers(fd, WAITERS) != WAITERS || !caller_start(&c) ||
	    !arm_every(fd, 5000, 5 * MSEC, 0) ||
	    arm_many(fd, 100000, 100000 + FIRST) != FIRST || take(fd, &rec) ||
	    mlockall(MCL_CURRENT | MCL_FUTURE))
		s->unexpected++;
	next_stage(s);
	wait_stage(s, 2);

	starve(s, fd);
	while (!lease_grant(fd, s->granted + 1, 1, HOUR))
		s->granted++;
	if (lease_grant(fd, s->granted + 1, 1, HOUR) != -ENOMEM ||
	    lease_renew(fd, s->granted + 1, 1, HOUR) != -EKEYEXPIRED)
		s->unexpected++;

	/* ticks need no memory, nor does a timer in the place of another */
	for (i = 0; i < 20 && !take(fd, &rec) && rec.key == 5000; i++)
		s->ticks++;
	s->replaced = !!arm_once(fd, 10000, HOUR, 0);

	/* to wait does, and where there is none nothing was cancelled */
	caller_go(&c);
	s->waiter = c.tid;
	next_stage(s);
	wait_stage(s, 4);
	for (i = 0; i < WAITERS; i++)
		if (complete(fd, i, 0, 0))
			s->unexpected++;
	pthread_join(c.thread, NULL);
	for (i = 0; i < WAITERS; i++) {
		bool ended = query(fd, i, 0).state == SPOTTIMER_ENDED;

		s->waits += !entry[i].error;
		s->refused_waits += entry[i].error == -ENOMEM;
		s->wrong_ends += ended != !entry[i].error;
	}
	next_stage(s);
	wait_stage(s, 6);

	/* what is given up can be had again; some are remembered, though */
	for (i = 0; i < s->registered; i++) {
		memset(&entry[i % WAITERS], 0, sizeof(entry[0]));
		entry[i % WAITERS].key = 10000 + i;
		if (i % WAITERS == WAITERS - 1)
			spot_batch(fd, SPOTTIMER_IOC_CANCEL, entry, WAITERS,
				   sizeof(entry[0]));
	}
	next_stage(s);
	wait_stage(s, 8);

	s->after_cancel = arm_many(fd, 200000, 201000);
	next_stage(s);
	wait_stage(s, 10);

	s->after_more = arm_many(fd, 300000, 320000);
	next_stage(s);
	close(fd);
	next_stage(s);
	wait_stage(s, 13);
	_exit(0);
}

TEST_F_TIMEOUT(memory, h2_h3_enomem_where_a_cgroup_has_no_more, 120)
{
	struct starved *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct spottimer_record rec;
	long long current, kernel, ooms;
	int status;
	pid_t pid;

	/* each refusal has the kernel look for memory, and show where it stands */
	if (scale() > 1)
		SKIP(return, "takes minutes on a kernel that is slow");
	ASSERT_NE(MAP_FAILED, s);
	memset(s, 0, sizeof(*s));
	pid = fork_with_us();
	ASSERT_LE(0, pid);
	if (!pid)
		starved_run(s);

	wait_stage(s, 1);
	ASSERT_EQ(0, s->unexpected);
	kernel = group_stat("kernel");
	current = group_current();
	ASSERT_EQ(0, set_console_level(1));
	ASSERT_EQ(0, write_number(GROUP "/memory.max", current + ROOM));
	next_stage(s);
	wait_stage(s, 3);
	/* it may also have ended, if all of it was refused */
	wait_asleep(s->waiter, SYS_ioctl);
	ooms = file_number(GROUP "/memory.events", "oom");
	EXPECT_LT(0, ooms);
	next_stage(s);
	wait_stage(s, 5);

	TH_LOG("%d timers, %d owners, %d waits", s->registered, s->granted,
	       s->waits);
	EXPECT_EQ(0, s->unexpected);
	EXPECT_LT(0, s->refused);
	EXPECT_LT(ROOM / 2 / 136, s->registered);
	EXPECT_GT(2 * ROOM / 128, s->registered);
	EXPECT_EQ(20, s->ticks);
	EXPECT_EQ(1, s->replaced);
	EXPECT_LT(0, s->refused_waits);
	EXPECT_EQ(WAITERS, s->waits + s->refused_waits);
	EXPECT_EQ(0, s->wrong_ends);

	/* others do not notice */
	EXPECT_EQ(1000, arm_many(self->fd, 10, 1010));
	ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(1, rec.key);

	/* to complete and to cancel is not to ask for memory */
	next_stage(s);
	wait_stage(s, 7);
	EXPECT_EQ(ooms, file_number(GROUP "/memory.events", "oom"));
	EXPECT_EQ(0, set_console_level(self->console_level));
	next_stage(s);
	wait_stage(s, 9);
	EXPECT_EQ(1000, s->after_cancel);

	EXPECT_EQ(0, write_file(GROUP "/memory.max", "max"));
	next_stage(s);
	wait_stage(s, 11);
	EXPECT_EQ(20000, s->after_more);
	wait_stage(s, 12);
	/* before, there were its first timers */
	EXPECT_TRUE(comes_back_to("kernel", kernel));
	next_stage(s);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, s->unexpected);
}

TEST_F_TIMEOUT(memory, h3_h5_who_is_killed_for_memory_leaves_nothing, 120)
{
	struct spottimer_record rec;
	int pipefd[2], status;
	long long refs;
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe(pipefd));
	refs = contexts();
	pid = fork_with_us();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd = -1;

		if (!join_group() && read(pipefd[0], &byte, 1) == 1)
			fd = spot_open(0);
		arm_many(fd, 0, 1000000);
		_exit(1);
	}
	ASSERT_EQ(0, set_console_level(1));
	ASSERT_EQ(0, write_number(GROUP "/memory.max", 8 * ROOM));
	ASSERT_EQ(1, write(pipefd[1], "x", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, set_console_level(self->console_level));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	EXPECT_LE(1, file_number(GROUP "/memory.events", "oom_kill"));

	EXPECT_EQ(refs, contexts());
	EXPECT_TRUE(comes_back_to("slab", ROOM));
	ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
	EXPECT_EQ(0, take(self->fd, &rec));
}

TEST_HARNESS_MAIN
