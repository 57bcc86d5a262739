/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeds to run, from the command line and environment of a simulator program. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

bool sim_args_parse(struct sim_args *args, int argc, char **argv, const char *taken,
		    const char *environment, uint64_t count)
{
	static const struct option options[] = {
		{"class", required_argument, NULL, 'k'}, {"seed", required_argument, NULL, 's'},
		{"first", required_argument, NULL, 'f'}, {"count", required_argument, NULL, 'c'},
		{"trace", no_argument, NULL, 't'},	 {"verbose", no_argument, NULL, 'v'},
		{"changes", no_argument, NULL, 'w'},	 {"only", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	const char *asked = getenv(environment);
	int o;

	*args = (struct sim_args){.first = 1,
				  .count = asked != NULL ? strtoull(asked, NULL, 10) : count};
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (strchr(taken, o) == NULL)
			return false;
		switch (o) {
		case 'k':
			args->class = optarg;
			break;
		case 's':
			args->seed = strtoull(optarg, NULL, 10);
			break;
		case 'f':
			args->first = strtoull(optarg, NULL, 10);
			break;
		case 'c':
			args->count = strtoull(optarg, NULL, 10);
			break;
		case 't':
			args->trace = true;
			break;
		case 'v':
			args->verbose = true;
			break;
		case 'w':
			args->changes = true;
			break;
		case 'o':
			args->only = optarg;
			break;
		}
	}
	return true;
}
