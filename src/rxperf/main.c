/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf: measures Rx, and nothing above it. */
#include <stdio.h>
#include <string.h>

#include "program/message.h"
#include "rxperf/perf.h"

static void print_usage(FILE *out)
{
	fputs("usage: rxperf server [-p PORT] [option...]\n       rxperf client -c "
	      "send|recv|rpc|file -s HOST [-p PORT] [option...]\nMeasure the Rx transport. "
	      "\"rxperf server --help\" and \"rxperf client --help\" list\nthe options.\n",
	      out);
}

int main(int argc, char **argv)
{
	int status = TOOLS_EXIT_USAGE;

	tools_set_program("rxperf");
	if (argc > 1 && strcmp(argv[1], "server") == 0) {
		status = perf_server_main(argc - 1, argv + 1);
	} else if (argc > 1 && strcmp(argv[1], "client") == 0) {
		status = perf_client_main(argc - 1, argv + 1);
	} else if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		print_usage(stdout);
		status = 0;
	} else if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
		printf("rxperf (rxwire) %s\n", rxw_version());
		status = 0;
	} else if (argc > 1) {
		tools_error("unknown command \"%s\": use server or client; see rxperf --help",
			    argv[1]);
	} else {
		tools_error("no command: use server or client; see rxperf --help");
	}
	return tools_finish(status);
}
