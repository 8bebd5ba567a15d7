#ifndef SALLYPORT_FILES_H
#define SALLYPORT_FILES_H

#include "sys.h"

/* stage copies the read-only revision under dir_fd to the writable skill root; 0 or -errno. */
long stage(int dir_fd);

/* collect streams SKILL_OUTPUT and the artifacts, then returns 1 when something was left out unnamed, else 0. Every
 * other process of the sandbox must be dead: nothing may change under it. */
u32 collect(const struct config_header *config);

void send_frame(u32 type, u32 value, u64 size, const char *path, u32 path_len);

#endif
