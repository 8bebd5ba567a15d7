#ifndef SALLYPORT_WIRE_H
#define SALLYPORT_WIRE_H

#include "sys.h"

/* open_wire moves the container's streams to FD_CONTROL and FD_REPORT, and sets the longest time that PID 1 may live, in
 * milliseconds: whatever becomes of the executor and the engine, the container ends. */
void open_wire(u64 lifetime);

/* life is readable when that time is over. */
int life(void);

/* control_read reads n bytes; 0, or -EPIPE when the executor is gone. */
long control_read(void *data, u64 n);

/* report_bytes and send_frame return when everything was taken. Where nobody takes anything until the time is over, or the
 * executor is gone, they end PID 1. */
void report_bytes(const void *data, u64 n);
void send_frame(u32 type, u32 value, u64 size, const char *path, u32 path_len);

#endif
