/*
 * The time in which a script runs. Its streams are read as fast as it writes, whatever becomes of what was read, so that it is
 * never stopped by a full pipe; what is over the limit is counted and dropped here, so that neither the engine nor the
 * executor ever carries it.
 */
#include "pump.h"
#include "usage.h"
#include "wire.h"

#include <linux/time.h>

static u64 total[3];
static char chunk[STREAM_CHUNK];

/* pass_on reads once from a stream of the script and sends what is within the limit; false at its end. */
static int pass_on(const struct config_header *config, int stream, int fd)
{
	long n = sys_read(fd, chunk, sizeof chunk);
	if (n == -EINTR || n == -EAGAIN)
		return 1;
	if (n <= 0)
		return 0;
	u64 room = total[stream] < config->stream_bytes ? config->stream_bytes - total[stream] : 0;
	u64 take = (u64)n < room ? (u64)n : room;
	total[stream] += (u64)n;
	if (take) {
		send_frame(FRAME_STREAM, (u32)stream, take, 0, 0);
		report_bytes(chunk, take);
	}
	return 1;
}

/* reap collects every process that ended; true once the leader is among them. */
static int reap(int leader, int *leader_status)
{
	int done = 0, status;
	for (;;) {
		long pid = sys_wait(-1, &status, WAIT_NO_HANG);
		if (pid == -EINTR)
			continue;
		if (pid <= 0)
			return done;
		if (pid == leader) {
			*leader_status = status;
			done = 1;
		}
	}
}

static void close_stream(int *fd)
{
	if (*fd >= 0)
		sys_close(*fd);
	*fd = -1;
}

/* feed writes input to the script, as much as its pipe takes. A script may close its input at any time. */
static void feed(int *fd, const char **input, u64 *left)
{
	while (*left) {
		long n = sys_write(*fd, *input, *left);
		if (n == -EAGAIN)
			return;
		if (n == -EINTR)
			continue;
		if (n < 0)
			break;
		*input += n;
		*left -= (u64)n;
	}
	close_stream(fd);
}

u32 pump(const struct config_header *config, int leader, int signal_fd, int streams[3], const char *input, int *status)
{
	struct signalfd_siginfo info;
	u64 input_left = config->stdin_len;
	char command;

	SYS(fcntl, streams[0], F_SETFL, O_WRONLY | O_NONBLOCK, 0, 0, 0);
	feed(&streams[0], &input, &input_left);
	for (;;) {
		struct pollfd polled[] = {
			{signal_fd, POLLIN, 0},     {FD_CONTROL, POLLIN, 0},   {life(), POLLIN, 0},
			{streams[0], POLLOUT, 0}, {streams[1], POLLIN, 0}, {streams[2], POLLIN, 0},
		};
		/* The call below leaves in it what was left of the time, which is nothing. */
		struct __kernel_timespec tick = {0, 50 * 1000 * 1000};
		/* Before anything else: a script that ended by itself was not killed, however late the news arrives. */
		if (reap(leader, status))
			return ENDED;
		if (config->cpu_budget && used_cpu() >= config->cpu_budget)
			return reap(leader, status) ? ENDED : OVER_BUDGET;
		long n = SYS(ppoll, polled, 6, config->cpu_budget ? &tick : 0, 0, 0, 0);
		if (n == -EINTR)
			continue;
		if (polled[0].revents)
			sys_read(signal_fd, &info, sizeof info);
		if (polled[2].revents)
			return ABANDONED;
		if (polled[1].revents) {
			if (reap(leader, status))
				return ENDED;
			return sys_read(FD_CONTROL, &command, 1) == 1 && command == COMMAND_KILL ? COMMANDED : ABANDONED;
		}
		if (polled[3].revents)
			feed(&streams[0], &input, &input_left);
		for (int i = 1; i <= 2; i++)
			if (polled[3 + i].revents && !pass_on(config, i, streams[i]))
				close_stream(&streams[i]);
	}
}

void drain(const struct config_header *config, int streams[3])
{
	close_stream(&streams[0]);
	for (int i = 1; i <= 2; i++) {
		/* Every writer is dead, so the end of file is certain. */
		while (streams[i] >= 0 && pass_on(config, i, streams[i]))
			;
		close_stream(&streams[i]);
		send_frame(FRAME_TOTAL, (u32)i, total[i], 0, 0);
	}
}
