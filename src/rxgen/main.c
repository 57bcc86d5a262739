/* SPDX-License-Identifier: BSD-2-Clause */
/* rxwgen: from an interface file to C. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxgen/command.h"

/* One run over the input: its output goes to a temporary file. */
static bool make_output(struct command *command, enum xg_output which, struct outputs *outputs,
			struct inputs *inputs)
{
	struct xg_file *file = xg_read(command->input, &command->options, which);
	char *text = NULL;
	size_t length = 0;
	bool good;

	if (!file)
		return false;
	good = inputs_add(inputs, file) && xg_write(file, &command->options, &text, &length);
	if (!good)
		fprintf(stderr, "%s: not enough memory\n", command->input);
	else
		good = outputs_write(outputs, command->names[which], text, length);
	free(text);
	xg_file_free(file);
	return good;
}

static bool make_depfile(struct command *command, struct outputs *outputs, struct inputs *inputs)
{
	size_t length = 0;
	char *text = depfile_text(command, inputs, &length);
	bool good;

	if (!text) {
		fprintf(stderr, "%s: %s\n", command->depfile, strerror(ENOMEM));
		return false;
	}
	good = outputs_write(outputs, command->depfile, text, length);
	free(text);
	return good;
}

int main(int argc, char **argv)
{
	struct outputs outputs = {.count = 0};
	struct inputs inputs = {NULL, 0};
	struct xg_said said = {NULL, 0};
	struct command command;
	int status = command_read(&command, argc, argv);
	bool good = true;

	if (status < 0) {
		command.options.said = &said;
		for (int i = 0; good && i < XG_OUTPUTS; i++)
			if (command.wanted[i])
				good = make_output(&command, (enum xg_output)i, &outputs, &inputs);
		if (good && command.depfile)
			good = make_depfile(&command, &outputs, &inputs);
		if (good)
			good = outputs_commit(&outputs);
		status = good ? 0 : 1;
	}
	outputs_drop(&outputs);
	inputs_free(&inputs);
	for (size_t i = 0; i < said.count; i++)
		free(said.lines[i]);
	free(said.lines);
	command_free(&command);
	return status;
}
