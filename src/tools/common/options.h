/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines and configuration files: a table for each program, merged with the tunables of the
 * library.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/config.h>

/* Kind of an option, and the type that `offset` leads to in the program's own structure. */
enum tools_kind {
	TOOLS_FLAG,     /* bool; no argument on the command line, yes|no in a file */
	TOOLS_UINT,     /* uint64_t, min..max */
	TOOLS_SIZE,     /* uint64_t in bytes, min..max; K M G T */
	TOOLS_DURATION, /* uint64_t in milliseconds, min..max; seconds unless a unit is given */
	TOOLS_STRING,   /* const char *; the last one given holds */
	TOOLS_LIST,     /* struct tools_list; one more each time it is given */
	TOOLS_CHOICE,   /* int: index in `argument`, which reads "one|two|three" */
	TOOLS_CALL,     /* whatever `set` does */
	TOOLS_TUNABLE   /* a tunable of the library that has a letter in this program */
};

struct tools_list {
	size_t count;
	const char **items; /* owned by the structure; tools_list_free() */
};
void tools_list_free(struct tools_list *list);

struct tools_option {
	const char *name;     /* long name without dashes */
	char letter;          /* short form, or 0 */
	enum tools_kind kind;
	size_t offset;        /* offsetof() in the target */
	const char *argument; /* for --help: "HOST", "on|off"; NULL for a flag */
	const char *help;     /* one line */
	uint64_t min, max;    /* of numbers; max 0 = no upper limit */
	bool once;	      /* an order, not a setting: of the command line alone */
	/* TOOLS_CALL: 0, or -1 with what is allowed in `allowed`. */
	int (*set)(void *target, const char *value, char *allowed, size_t allowed_size);
};

struct tools_program {
	const char *name;    /* "rxperf"; also its section in configuration files */
	const char *usage;   /* lines for --help, each ended by a newline */
	const char *summary; /* one line for --help */
	const struct tools_option *options;
	size_t option_count;
	bool no_tunables;    /* true: --NAME of the library's tunables are not taken */
	/*
	 * NULL, or what --check-config looks at besides: files that are named, values that must fit
	 * each other. Prints one line and returns -1 if something is wrong.
	 */
	int (*check)(void *target, struct rxw_config *config);
};

enum tools_parsed {
	TOOLS_RUN = 0, /* go on */
	TOOLS_DONE,    /* --help, --version or --check-config was served: exit with 0 */
	TOOLS_USAGE    /* one line was printed: exit with TOOLS_EXIT_USAGE */
};

/*
 * Parse argv[1..]. `--config FILE` is read first, so that the command line wins over the file.
 * Options and other arguments may come in any order; the latter are moved to the end of argv and
 * *first is the index of the first of them. Strings point into argv or into memory that lives as
 * long as the process. `config` must be initialised (rxw_config_init), `target` must hold the
 * defaults. Besides the table and the tunables every program has --config, --check-config, --help
 * (-h) and --version (-V). Tunables that do not fit each other or the machine are refused, too.
 */
enum tools_parsed tools_options_parse(const struct tools_program *program, void *target,
				      struct rxw_config *config, int argc, char **argv, int *first);

/*
 * Read one configuration file (INI): keys before any section and in [rxwire] are tunables; [NAME]
 * of this program also takes its own options; sections of the other programs of rxwire are passed
 * over. Within a section only lists may be set twice. Returns 0, or -1 after one line naming file,
 * line, option, value and what is allowed in `message`. Places are recorded (place.h).
 */
int tools_config_read(const struct tools_program *program, void *target, struct rxw_config *config,
		      const char *path, char *message, size_t message_size);

#endif
