/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of a run: atomic creation of the outputs, and the dependency file (-M). */
#include "rxwgen/files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- outputs ----------------------------------------------------------------------------------- */

static bool report_file_error(const char *name)
{
	fprintf(stderr, "%s: %s\n", name, strerror(errno));
	return false;
}

static bool write_all_bytes(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		text += n;
		length -= (size_t)n;
	}
	return true;
}

/* A device, a pipe or a symbolic link is written, not replaced by a file. */
static bool is_special_file(const char *name)
{
	struct stat st;

	return !lstat(name, &st) && !S_ISREG(st.st_mode);
}

static bool write_file_in_place(const char *name, const char *text, size_t length)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
	bool good;

	if (fd < 0)
		return report_file_error(name);
	good = write_all_bytes(fd, text, length);
	if (close(fd))
		good = false;
	return good ? true : report_file_error(name);
}

bool outputs_write(struct outputs *outputs, const char *name, const char *text, size_t length)
{
	struct output *out = &outputs->files[outputs->count];
	mode_t mask = umask(0);
	struct stat st;
	bool good;
	int fd;

	assert(outputs->count < sizeof(outputs->files) / sizeof(outputs->files[0]));
	umask(mask);
	/* Checked before any file is renamed. */
	if (!stat(name, &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return report_file_error(name);
	}
	if (is_special_file(name))
		return write_file_in_place(name, text, length);
	if (asprintf(&out->temporary, "%s.XXXXXX", name) < 0) {
		out->temporary = NULL;
		return report_file_error(name);
	}
	out->name = name;
	fd = mkostemp(out->temporary, O_CLOEXEC);
	if (fd < 0) {
		free(out->temporary);
		out->temporary = NULL;
		return report_file_error(name);
	}
	outputs->count++;
	good = write_all_bytes(fd, text, length) && !fchmod(fd, 0666 & ~mask);
	/* Some file systems report only here that they are full. */
	if (close(fd))
		good = false;
	return good ? true : report_file_error(name);
}

bool outputs_commit(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		struct output *out = &outputs->files[i];

		assert(out->temporary);
		if (rename(out->temporary, out->name))
			return report_file_error(out->name);
		free(out->temporary);
		out->temporary = NULL;
	}
	return true;
}

void outputs_drop(struct outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++)
		if (outputs->files[i].temporary) {
			unlink(outputs->files[i].temporary);
			free(outputs->files[i].temporary);
		}
	outputs->count = 0;
}

/* -- inputs ------------------------------------------------------------------------------------ */

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

char *depfile_text(const char *const names[XG_OUTPUTS], const struct inputs *inputs, size_t *length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length);
	const char *blank = "";

	if (!out)
		return NULL;
	for (int i = 0; i < XG_OUTPUTS; i++)
		if (names[i]) {
			fputs(blank, out);
			write_make_name(out, names[i]);
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
