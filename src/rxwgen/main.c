/* SPDX-License-Identifier: BSD-2-Clause */
/* rxwgen: compile an interface file to C or Python. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/command.h"

/* One output, in a pass of its own over the input; malloc'ed, or NULL (reported). */
static char *make_output_text(struct command *command, enum xg_output which, struct inputs *inputs,
			      size_t *length)
{
	struct xg_file *file = xg_read(command->input, &command->options, which);
	char *text = NULL;

	if (!file)
		return NULL;
	if (!inputs_add(inputs, file) || !xg_write(file, &command->options, &text, length)) {
		fprintf(stderr, "%s: %s\n", command->input, strerror(ENOMEM));
		free(text);
		text = NULL;
	}
	xg_file_free(file);
	return text;
}

/* Generate all texts before writing files, so that a signal rarely leaves temporary files. */
static bool make_outputs(struct command *command, struct outputs *outputs, struct inputs *inputs)
{
	const char *names[XG_OUTPUTS + 1];
	char *texts[XG_OUTPUTS + 1];
	size_t lengths[XG_OUTPUTS + 1] = {0}, count = 0;
	bool good = true;

	for (int i = 0; good && i < XG_OUTPUTS; i++) {
		if (!command->wanted[i])
			continue;
		names[count] = command->names[i];
		texts[count] =
			make_output_text(command, (enum xg_output)i, inputs, &lengths[count]);
		good = texts[count++] != NULL;
	}
	if (good && command->depfile) {
		assert(count <= XG_OUTPUTS);
		names[count] = command->depfile;
		texts[count] = depfile_text(command, inputs, &lengths[count]);
		good = texts[count++] != NULL;
		if (!good)
			fprintf(stderr, "%s: %s\n", command->depfile, strerror(ENOMEM));
	}
	for (size_t i = 0; good && i < count; i++)
		good = !inputs_have(inputs, names[i]);
	for (size_t i = 0; good && i < count; i++)
		good = outputs_write(outputs, names[i], texts[i], lengths[i]);
	for (size_t i = 0; i < count; i++)
		free(texts[i]);
	return good && outputs_commit(outputs);
}

/* --json and --python: one pass, with the macro of the header. */
static bool make_tree_output(struct command *command, struct outputs *outputs,
			     struct inputs *inputs)
{
	struct xg_file *file = xg_read(command->input, &command->options, XG_HEADER);
	size_t length;
	char *text;
	bool good;

	if (!file)
		return false;
	text = command->json ? xg_json(file, &length) : xg_python(file, &command->options, &length);
	if (!inputs_add(inputs, file)) {
		free(text);
		text = NULL;
	}
	xg_file_free(file);
	if (!text) {
		fprintf(stderr, "%s: %s\n", command->input, strerror(ENOMEM));
		return false;
	}
	if (command->tree_name) {
		good = !inputs_have(inputs, command->tree_name) &&
		       outputs_write(outputs, command->tree_name, text, length) &&
		       outputs_commit(outputs);
	} else {
		good = fwrite(text, 1, length, stdout) == length && !fflush(stdout);
		if (!good)
			perror("rxwgen: standard output");
	}
	free(text);
	return good;
}

int main(int argc, char **argv)
{
	struct outputs outputs = {.count = 0};
	struct inputs inputs = {NULL, 0};
	struct xg_printed printed = {NULL, 0};
	struct command command;
	int status = command_read(&command, argc, argv);

	if (status < 0) {
		command.options.printed = &printed;
		status = (command.json || command.python
				  ? make_tree_output(&command, &outputs, &inputs)
				  : make_outputs(&command, &outputs, &inputs))
				 ? 0
				 : 1;
	}
	outputs_drop(&outputs);
	inputs_free(&inputs);
	for (size_t i = 0; i < printed.count; i++)
		free(printed.lines[i]);
	free(printed.lines);
	command_free(&command);
	return status;
}
