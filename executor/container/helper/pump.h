#ifndef SALLYPORT_PUMP_H
#define SALLYPORT_PUMP_H

#include "sys.h"

/* Why pump returned; the two in the middle are sent as they are. */
#define ENDED 0 /* the leader ended by itself */
#define COMMANDED KILLED_BY_COMMAND
#define OVER_BUDGET KILLED_BY_CPU
#define ABANDONED 3 /* the executor is gone, or the time is over */

/* pump feeds the script its input, passes on what it writes and reaps what ends, until there is a reason to stop. */
u32 pump(const struct config_header *config, int leader, int signal_fd, int streams[3], const char *input, int *status);

/* drain passes on the rest of what dead processes wrote, and the totals of both streams. */
void drain(const struct config_header *config, int streams[3]);

#endif
