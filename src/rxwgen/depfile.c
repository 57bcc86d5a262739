/* SPDX-License-Identifier: BSD-2-Clause */
/* -M: the dependency file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rxwgen/command.h"

bool inputs_add(struct inputs *inputs, const struct xg_file *file)
{
	for (size_t i = 0; i < file->input_count; i++) {
		bool known = false;
		char **more;

		for (size_t k = 0; k < inputs->count; k++)
			known |= !strcmp(inputs->names[k], file->inputs[i]);
		if (known)
			continue;
		more = realloc(inputs->names, (inputs->count + 1) * sizeof(*more));
		if (!more)
			return false;
		inputs->names = more;
		more[inputs->count] = strdup(file->inputs[i]);
		if (!more[inputs->count])
			return false;
		inputs->count++;
	}
	return true;
}

bool inputs_have(const struct inputs *inputs, const char *name)
{
	struct stat input, output;

	if (stat(name, &output) || !S_ISREG(output.st_mode))
		return false;
	for (size_t i = 0; i < inputs->count; i++)
		if (!stat(inputs->names[i], &input) && input.st_dev == output.st_dev &&
		    input.st_ino == output.st_ino) {
			fprintf(stderr, "%s: this is an input file, and would be overwritten\n",
				name);
			return true;
		}
	return false;
}

void inputs_free(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++)
		free(inputs->names[i]);
	free(inputs->names);
}

/* A file name, quoted for make. */
static void write_make_name(FILE *out, const char *name)
{
	for (; *name; name++) {
		if (*name == ' ' || *name == '\t' || *name == '#' || *name == '%')
			fputc('\\', out);
		else if (*name == '$')
			fputc('$', out);
		fputc(*name, out);
	}
}

char *depfile_text(const struct command *command, const struct inputs *inputs, size_t *length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length);
	const char *blank = "";

	if (!out)
		return NULL;
	for (int i = 0; i < XG_OUTPUTS; i++)
		if (command->names[i]) {
			fputs(blank, out);
			write_make_name(out, command->names[i]);
			blank = " ";
		}
	fputc(':', out);
	for (size_t i = 0; i < inputs->count; i++) {
		fputs(i ? " \\\n " : " ", out);
		write_make_name(out, inputs->names[i]);
	}
	fputc('\n', out);
	/* A rule without a recipe: make continues when an input is removed. */
	for (size_t i = 0; i < inputs->count; i++) {
		fputc('\n', out);
		write_make_name(out, inputs->names[i]);
		fputs(":\n", out);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
