/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with commands. */
#include <string.h>

#include "program/command.h"
#include "program/message.h"

const void *tools_find_command(const struct tools_program *program, const void *table, size_t count,
			       size_t size, char **words, size_t word_count)
{
	const struct tools_command *command = NULL;
	const char *at = table;

	for (size_t i = 0; word_count && !command && i < count; i++, at += size) {
		command = (const struct tools_command *)(const void *)at;
		if (strcmp(command->name, words[0]) != 0)
			command = NULL;
	}
	if (!command) {
		tools_error("%s%s; see %s --help", word_count ? words[0] : "no command",
			    word_count ? ": no such command" : "", program->name);
		return NULL;
	}
	if (word_count - 1 >= command->least && word_count - 1 <= command->most)
		return command;
	tools_error("usage: %s -S DIR %s%s%s", program->name, command->name,
		    *command->arguments ? " " : "", command->arguments);
	return NULL;
}

int tools_run_program(const struct tools_program *program, void *target, int argc, char **argv,
		      int (*run)(void *target, char **words, size_t count))
{
	struct rxw_config config;
	int first = 0;

	tools_set_program(program->name);
	rxw_config_init(&config, sizeof(config));
	switch (tools_options_parse(program, target, &config, argc, argv, &first)) {
	case TOOLS_RUN:
		return run(target, argv + first, (size_t)(argc - first));
	case TOOLS_DONE:
		return 0;
	default:
		return TOOLS_EXIT_USAGE;
	}
}
