/*
 * The two streams that the engine attaches. Neither may ever hold PID 1: an engine that stopped reading, or died, must not
 * keep a container alive. So both are waited for together with the clock.
 */
#include "wire.h"

#include <linux/time.h>

#define TFD_CLOEXEC O_CLOEXEC

static int clock_fd = -1;

int life(void) { return clock_fd; }

void open_wire(u64 lifetime)
{
	struct {
		struct __kernel_timespec interval, value;
	} timer = {{0, 0}, {(long long)(lifetime / 1000), (long long)(lifetime % 1000) * 1000000}};

	if (SYS(dup3, 0, FD_CONTROL, O_CLOEXEC, 0, 0, 0) < 0 || SYS(dup3, 1, FD_REPORT, O_CLOEXEC, 0, 0, 0) < 0)
		sys_exit(1);
	/* The engine's third stream is nobody's. Something must stay at 0 to 2, or what is opened next would be there. */
	for (int fd = 0; fd <= 2; fd++)
		SYS(dup3, FD_CONTROL, fd, O_CLOEXEC, 0, 0, 0);
	SYS(close_range, FD_CONTROL + 1, ~0U, 0, 0, 0, 0);
	long flags = SYS(fcntl, FD_REPORT, F_GETFL, 0, 0, 0, 0);
	SYS(fcntl, FD_REPORT, F_SETFL, flags | O_NONBLOCK, 0, 0, 0);
	/* A lifetime of 0 would be none at all. */
	if (lifetime == 0)
		sys_exit(1);
	long fd = SYS(timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0 || SYS(timerfd_settime, fd, 0, &timer, 0, 0, 0))
		sys_exit(1);
	clock_fd = (int)fd;
}

/* wait_for waits until fd can be read or written (events), and ends PID 1 when the time is over. */
static void wait_for(int fd, short events)
{
	struct pollfd polled[2] = {{fd, events, 0}, {clock_fd, POLLIN, 0}};
	SYS(ppoll, polled, 2, 0, 0, 0, 0);
	if (polled[1].revents)
		sys_exit(1);
}

long control_read(void *data, u64 n)
{
	char *p = data;
	while (n) {
		wait_for(FD_CONTROL, POLLIN);
		long got = sys_read(FD_CONTROL, p, n);
		if (got == -EINTR || got == -EAGAIN)
			continue;
		if (got <= 0)
			return got < 0 ? got : -EPIPE;
		p += got;
		n -= (u64)got;
	}
	return 0;
}

void report_bytes(const void *data, u64 n)
{
	const char *p = data;
	while (n) {
		long written = sys_write(FD_REPORT, p, n);
		if (written == -EINTR)
			continue;
		if (written == -EAGAIN) {
			wait_for(FD_REPORT, POLLOUT);
			continue;
		}
		if (written < 0)
			sys_exit(1);
		p += written;
		n -= (u64)written;
	}
}

void send_frame(u32 type, u32 value, u64 size, const char *path, u32 path_len)
{
	struct frame f = {.type = type, .value = value, .path_len = path_len, .unused = 0, .size = size};
	report_bytes(&f, sizeof f);
	if (path_len)
		report_bytes(path, path_len);
}
