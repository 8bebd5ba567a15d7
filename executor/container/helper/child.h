#ifndef SALLYPORT_CHILD_H
#define SALLYPORT_CHILD_H

#include "sys.h"

struct script {
	const struct config_header *config;
	char **argv; /* argv[0] is the program */
	char **env;
	struct sock_filter *filter;
};

/* run_child turns the calling process into the script, or reports {stage, errno} to status_fd and exits. */
void run_child(const struct script *s, int status_fd);

#endif
