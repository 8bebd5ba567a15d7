#ifndef SALLYPORT_IDENTITY_H
#define SALLYPORT_IDENTITY_H

#include "sys.h"

/* become turns PID 1, started as root of the host, into the run's uid without any privilege, and hands the writable folders
 * over to it; 0 or -errno. It must happen before anything of the run is read. An id of 0 means that bubblewrap was started
 * under the run's uid, and changes nothing. */
long become(u32 id);

/* drop_capabilities empties every capability set of the caller, the bounding set first; 0 or -errno. */
long drop_capabilities(void);

/* place restricts the caller, and all it will start, to the CPUs in mask; 0 or -errno. An empty mask changes nothing. */
long place(const u64 *mask, u32 words);

#endif
