#ifndef SALLYPORT_USAGE_H
#define SALLYPORT_USAGE_H

#include "sys.h"

/* used_cpu is the processor time of the container in microseconds, as its control group counts it; 0 when that cannot be
 * seen, which PID 1's own use makes impossible otherwise. */
u64 used_cpu(void);

/* send_usage reports what the control groups of the container counted; what cannot be seen is not sent. */
void send_usage(void);

#endif
