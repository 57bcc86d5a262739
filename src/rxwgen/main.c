/* SPDX-License-Identifier: BSD-2-Clause */
/* rxwgen: compile an interface file to C or Python. */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/files.h"

#define REQUEST_MAX 1048576

struct command {
	struct xg_options options;
	const char *input;
	bool wanted[XG_OUTPUTS];
	const char *names[XG_OUTPUTS]; /* of the output files, NULL if not wanted */
	const char *depfile;	       /* -M, or NULL */
	bool json, python;	       /* --json, --python */
	const char *tree_name;	       /* their output file; NULL: standard output */
};

/* -- the command line -------------------------------------------------------------------------- */

static const char usage[] =
	"usage: rxwgen [options] FILE.xg\nCompile an Rx interface description to C or Python.\n\nOutput "
	"(default: -h, -c, -C and -S, to the current directory):\n  -h           write the "
	"header, FILE.h\n  -c           write the XDR functions, FILE.xdr.c\n  -C           "
	"write the client stubs, FILE.cs.c\n  -S           write the server dispatcher, "
	"FILE.ss.c\n  -r           write the client stubs and the dispatcher\n  -y           "
	"write FILE.xdr.c with the name tables only\n  -o FILE      name of the output file, if "
	"only one is written\n  --json       print the checked interface as JSON to standard "
	"output, or to the file of -o\n  --python     write a Python module, FILE.py\n  -M FILE      also write the dependencies of the output files, "
	"for make\n\nInput:\n  -I FOLDER    search FOLDER for included files\n  -D NAME[=TEXT], "
	"-U NAME\n               define or undefine a macro\n  -i           treat included .xg "
	"files as compiled separately: include their headers\n\nGenerated code:\n  -x           "
	"generate tables for statistics: procedure names and opcode look-ups\n  -b           "
	"use short field names: len and val, u\n  -P TEXT      prefix the names of all stubs "
	"with TEXT\n  -R BYTES     maximum size of a request that the server accepts (default "
	"1048576)\n  -L NAME=N    bound of an array NAME<>, also TYPE.MEMBER or "
	"PROCEDURE.PARAMETER\n  -w           report an unbounded array in an argument as a "
	"warning, not an error\n  -W           warn if a parameter inherits its direction from "
	"another procedure\n  -n           send ENOSPC and EDQUOT unchanged\n  -u           "
	"generate plain stubs and warn\n  --copy       generate xdrcopy_T(), deep copies of values\n  --pool       also generate stubs for "
	"pools of connections\n\n  --help       "
	"show this text\n  --version    show the version\nAccepted and without effect, for old "
	"makefiles: -A -k -d -z\n";

static int report_usage_error(const char *what, const char *value)
{
	fprintf(stderr, "rxwgen: %s%s%s; see rxwgen --help\n", what, value ? " " : "",
		value ? value : "");
	return 2;
}

static bool read_bounded_number(const char *text, uint32_t least, uint32_t most, uint32_t *value)
{
	unsigned long long n;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoull(text, &end, 0);
	*value = (uint32_t)n;
	return !*end && n >= least && n <= most;
}

/* The beginning of names in C. */
static bool is_name_prefix(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return (*text < '0' || *text > '9') && !text[strspn(text, letters)];
}

static bool is_limit_option(const char *text)
{
	const char *equals = strchr(text, '=');
	uint32_t value;

	return equals && equals != text && read_bounded_number(equals + 1, 1, INT32_MAX, &value);
}

/* Handle an option without an argument; false if it is another one. */
static bool read_switch_option(struct command *command, int option)
{
	struct xg_options *options = &command->options;

	switch (option) {
	case 'h':
		command->wanted[XG_HEADER] = true;
		return true;
	case 'y':
		options->tables_only = true;
		/* fall through */
	case 'c':
		command->wanted[XG_XDR] = true;
		return true;
	case 'r':
		command->wanted[XG_SERVER] = true;
		/* fall through */
	case 'C':
		command->wanted[XG_CLIENT] = true;
		return true;
	case 'S':
		command->wanted[XG_SERVER] = true;
		return true;
	case 'i':
		options->skip_included = true;
		return true;
	case 'x':
		options->statistics = true;
		return true;
	case 'b':
		options->short_fields = true;
		return true;
	case 'w':
		options->warn_unbounded = true;
		return true;
	case 'W':
		options->warn_direction = true;
		return true;
	case 'n':
		options->no_errno_swap = true;
		return true;
	default:
		return option == 'A' || option == 'k' || option == 'd' || option == 'z';
	}
}

/* Handle an option. Returns -1 to continue, else the exit status. */
static int read_value_option(struct command *command, int option, const char **output)
{
	struct xg_options *options = &command->options;
	struct xg_macro_option *macros = (struct xg_macro_option *)options->macros;

	if (read_switch_option(command, option))
		return -1;
	switch (option) {
	case 'o':
		*output = optarg;
		return -1;
	case 'M':
		command->depfile = optarg;
		return -1;
	case 'I':
		options->folders[options->folder_count++] = optarg;
		return -1;
	case 'D':
	case 'U':
		macros[options->macro_count++] =
			(struct xg_macro_option){.undefine = option == 'U', .text = optarg};
		return -1;
	case 'P':
		if (!is_name_prefix(optarg))
			return report_usage_error("-P takes the beginning of a name, not", optarg);
		options->prefix = optarg;
		return -1;
	case 'R':
		return read_bounded_number(optarg, 4, INT32_MAX, &options->request_max)
			       ? -1
			       : report_usage_error("-R takes bytes, 4 to 2147483647, not", optarg);
	case 'L':
		if (!is_limit_option(optarg))
			return report_usage_error("-L takes NAME=N, N from 1 to 2147483647, not",
						  optarg);
		options->limits[options->limit_count++] = optarg;
		return -1;
	case 'u':
		fputs("rxwgen: warning: -u: stubs that try several servers are not supported; "
		      "generating plain stubs\n",
		      stderr);
		return -1;
	case 'p':
		fprintf(stderr, "rxwgen: -%c is not supported\n", option);
		return 2;
	case 1000:
		fputs(usage, stdout);
		return 0;
	case 1001:
		puts("rxwgen " PACKAGE_VERSION);
		return 0;
	case 1002:
		command->json = true;
		return -1;
	case 1003:
		command->python = true;
		return -1;
	case 1004:
		options->copies = true;
		return -1;
	case 1005:
		options->pools = true;
		return -1;
	default:
		fputs("See rxwgen --help\n", stderr);
		return 2;
	}
}

/* "rxafs" of "some/where/rxafs.xg". */
static size_t find_base_name(const char *path, const char **base)
{
	const char *slash = strrchr(path, '/'), *dot;

	*base = slash ? slash + 1 : path;
	dot = strrchr(*base, '.');
	return dot && dot != *base ? (size_t)(dot - *base) : strlen(*base);
}

/* --json and --python: a single output of the whole tree. */
static int name_tree_output(struct command *command, const char *output)
{
	static char module[256];

	if (command->json && command->python)
		return report_usage_error("--json excludes --python", NULL);
	if (command->python && !output) {
		xg_python_module(command->input, module, sizeof(module) - 3);
		if (!*module)
			return report_usage_error("no file name in", command->input);
		output = strcat(module, ".py");
	}
	command->tree_name = output;
	return -1;
}

static int name_output_files(struct command *command, const char *output)
{
	static const char *const suffixes[XG_OUTPUTS] = {".h", ".xdr.c", ".cs.c", ".ss.c"};
	const char *base;
	size_t length = find_base_name(command->input, &base);
	int count = 0;

	for (int i = 0; i < XG_OUTPUTS; i++)
		count += command->wanted[i];
	if ((command->json || command->python) && (count || command->depfile))
		return report_usage_error(command->json ? "--json excludes -h -c -C -S -r -y -M"
							: "--python excludes -h -c -C -S -r -y -M",
					  NULL);
	if (command->json || command->python)
		return name_tree_output(command, output);
	for (int i = 0; !count && i < XG_OUTPUTS; i++)
		command->wanted[i] = true;
	if (output && count != 1)
		return report_usage_error("-o requires exactly one of -h -c -C -S -y", NULL);
	if (output && command->depfile && !strcmp(output, command->depfile))
		return report_usage_error("-o and -M name the same file:", output);
	if (!length)
		return report_usage_error("no file name in", command->input);
	for (int i = 0; i < XG_OUTPUTS; i++) {
		char *name;

		if (!command->wanted[i])
			continue;
		if (output)
			name = strdup(output);
		else if (asprintf(&name, "%.*s%s", (int)length, base, suffixes[i]) < 0)
			name = NULL;
		if (!name)
			return report_usage_error("memory is exhausted", NULL);
		command->names[i] = name;
	}
	return -1;
}

/*
 * Parse the command line. Returns -1 to continue, else the exit status: 0 after --help or
 * --version, 2 after an error, which has been reported.
 */
static int read_command(struct command *command, int argc, char **argv)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 1000},
		{"version", no_argument, NULL, 1001},
		{"json", no_argument, NULL, 1002},
		{"python", no_argument, NULL, 1003},
		{"copy", no_argument, NULL, 1004},
		{"pool", no_argument, NULL, 1005},
		{NULL, 0, NULL, 0},
	};
	struct xg_options *options = &command->options;
	const char *output = NULL;
	int option, status;

	memset(command, 0, sizeof(*command));
	options->prefix = "";
	options->request_max = REQUEST_MAX;
	options->macros = calloc((size_t)argc + 1, sizeof(*options->macros));
	options->folders = calloc((size_t)argc + 1, sizeof(*options->folders));
	options->limits = calloc((size_t)argc + 1, sizeof(*options->limits));
	if (!options->macros || !options->folders || !options->limits)
		return report_usage_error("memory is exhausted", NULL);
	while ((option = getopt_long(argc, argv, "hcCSryo:M:I:D:U:ixbP:R:L:wWnAkdzup", longs,
				     NULL)) != -1) {
		status = read_value_option(command, option, &output);
		if (status >= 0)
			return status;
	}
	if (argc - optind != 1)
		return report_usage_error(optind == argc ? "no input file"
							 : "more than one input file:",
					  optind == argc ? NULL : argv[optind + 1]);
	command->input = argv[optind];
	return name_output_files(command, output);
}

static void free_command(struct command *command)
{
	for (int i = 0; i < XG_OUTPUTS; i++)
		free((char *)command->names[i]);
	free((void *)command->options.macros);
	free(command->options.folders);
	free(command->options.limits);
}

/* -- the outputs ------------------------------------------------------------------------------- */

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
		texts[count] = depfile_text(command->names, inputs, &lengths[count]);
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
	int status = read_command(&command, argc, argv);

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
	free_command(&command);
	return status;
}
