/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * refusing WHAT COMMAND...: runs it on a kernel that lacks WHAT (refuse.h); 77 if that is not
 * possible.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "refuse.h"

int main(int argc, char **argv)
{
	int rc;

	if (argc < 3) {
		fprintf(stderr, "usage: refusing WHAT COMMAND...\n");
		return 2;
	}
	rc = refuse(argv[1]);
	if (rc < 0) {
		fprintf(stderr, "refusing %s: %s\n", argv[1], strerror(-rc));
		return rc == -ENOTSUP ? 77 : 99;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
	return 99;
}
