/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines and configuration files: the table of a program, merged with the tunables of the
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
	TOOLS_FLAG,	/* bool; no argument on the command line, yes|no in a file */
	TOOLS_UINT,	/* uint64_t, min..max */
	TOOLS_SIZE,	/* uint64_t in bytes, min..max; K M G T */
	TOOLS_DURATION, /* uint64_t in milliseconds, min..max; seconds unless a unit is given */
	TOOLS_STRING,	/* const char *; the last one counts */
	TOOLS_LIST,	/* struct tools_list; each use adds an item */
	TOOLS_CHOICE,	/* int: index in `argument`, which reads "one|two|three" */
	TOOLS_CALL,	/* handled by `set` */
	TOOLS_TUNABLE	/* a tunable of the library with a letter in this program */
};

struct tools_list {
	size_t count;
	const char **items; /* owned by the structure; tools_list_free() */
};
void tools_list_free(struct tools_list *list);

struct tools_option {
	const char *name; /* long name without dashes */
	char letter;	  /* short form, or 0 */
	enum tools_kind kind;
	size_t offset;	      /* offsetof() in the target */
	const char *argument; /* for --help: "HOST", "on|off"; NULL for a flag */
	const char *help;     /* one line */
	uint64_t min, max;    /* of numbers; max 0 = no upper limit */
	bool once;	      /* an action, not a setting: only on the command line */
	const char *commands; /* the commands that take it, "get put"; NULL: all */
	/* TOOLS_CALL: 0, or -1 with the allowed values in `allowed`. */
	int (*set)(void *target, const char *value, char *allowed, size_t allowed_size);
};

/* A row of a table of options. `place` is the offset in the target; more initialisers may follow. */
#define TOOLS_OPTION_AT(option, short_form, type, place, form, text, ...)            \
	{                                                                            \
		.name = option, .letter = short_form, .kind = type, .offset = place, \
		.argument = form, .help = text, __VA_ARGS__                          \
	}
/* The same in a program that defines SETTING(member) as offsetof() in its structure. */
#define TOOLS_OPTION(option, short_form, type, member, form, text, ...) \
	TOOLS_OPTION_AT(option, short_form, type, SETTING(member), form, text, __VA_ARGS__)

struct tools_program {
	const char *name;    /* "rxperf"; also its section in configuration files */
	const char *usage;   /* lines for --help, each ended by a newline */
	const char *summary; /* one line for --help */
	const struct tools_option *options;
	size_t option_count;
	bool no_tunables; /* true: the tunables of the library are not options */
	/*
	 * NULL, or further checks of --check-config: files that are named, combinations of values.
	 * Prints one line and returns -1 after an error.
	 */
	int (*check)(void *target, struct rxw_config *config);
};

enum tools_parsed {
	TOOLS_RUN = 0, /* go on */
	TOOLS_DONE,    /* --help, --version or --check-config was served: exit with 0 */
	TOOLS_USAGE    /* one line was printed: exit with TOOLS_EXIT_USAGE */
};

/* rxw_config_init() for a program that reports warnings of the library as messages of its own. */
void tools_config_init(struct rxw_config *config);

/*
 * Parse argv[1..]. `--config FILE` is read first, so that the command line overrides the file.
 * Options and other arguments may be mixed; the latter are moved to the end of argv, and *first is
 * the index of the first of them. Strings point into argv or into memory that lives as long as the
 * process. `config` must be initialised, and `target` must hold the defaults. In
 * addition to the table and the tunables, every program has --config, --check-config, --help (-h)
 * and --version (-V). Tunables that are inconsistent, or impossible on this machine, are refused.
 */
enum tools_parsed tools_options_parse(const struct tools_program *program, void *target,
				      struct rxw_config *config, int argc, char **argv, int *first);

/*
 * After tools_options_parse(): whether `command` takes all options that the command line has. 0, or
 * -1 after a message: an option that is ignored would surprise ("rm -n" would remove). Options of a
 * configuration file are settings for all commands, and not refused.
 */
int tools_options_suit(const struct tools_program *program, const char *command);

/*
 * Read a configuration file (INI). Keys before the first section and in [rxwire] are tunables; the
 * section of this program also has its own options; sections of the other programs of rxwire are
 * ignored. Within a section only lists may be set twice. Returns 0, or -1 with one line in
 * `message` that names file, line, option, value and the allowed values. The lines are recorded
 * (tools_place_line()).
 */
int tools_config_read(const struct tools_program *program, void *target, struct rxw_config *config,
		      const char *path, char *message, size_t message_size);

/*
 * ---- places ----
 *
 * Messages about a value, however late, name the line of the configuration file that set it. The
 * records are global to the process and have no lock: they are for the thread that parses the options
 * and starts the program.
 */

/* The place where an option was set. `name` and `value` are not copied. */
struct tools_place {
	const char *name;    /* of the option, without dashes */
	const char *value;   /* NULL: not a string */
	const char *path;    /* of the file; NULL: the command line */
	const char *section; /* of the file; "" above the first heading */
	int line;
	bool repeat; /* another item of a list */
};

/* Forget everything. */
void tools_place_reset(void);
/* Whether the command line set the option. */
bool tools_place_given(const char *name);
/*
 * If `message` mentions an option ("--NAME") that the file set, put "FILE:LINE: " in front of the
 * message. If it mentions several, the first one counts; of a list, the item that follows the name.
 */
void tools_place_message(char *message, size_t size);

/*
 * The value that a line of a configuration file gives, without a look at the rest of the file; to be freed. NULL: there is
 * none, or the file cannot be read.
 */
char *tools_config_value(const char *path, const char *section, const char *name);

/* ---- programs with commands that work on the directory of a store, which -S names ---- */

#define TOOLS_STORE_VARIABLE "RXWIRE_STORE"

/*
 * The directory: what -S has given; else the value of $RXWIRE_STORE, which may be empty: then there is none; else that of `key` in the configuration file of the
 * server, TOOLS_SERVER_CONFIG. NULL: none of these. Lives as long as the process.
 */
const char *tools_store_directory(const char *given, const char *key);
/* The message about NULL; `what` is in the directory. */
void tools_report_missing_store(const char *what);

/* The beginning of each element of a program's table of commands. */
struct tools_command {
	const char *name;
	size_t least, most;    /* number of arguments */
	const char *arguments; /* for messages: "NAME NEWNAME" */
};

/*
 * The command that words[0] names, if as many arguments follow as it takes. `table` has `count`
 * elements of `size` bytes, each of which begins with a struct tools_command. NULL after a message.
 */
const void *tools_find_command(const struct tools_program *program, const void *table, size_t count,
			       size_t size, char **words, size_t word_count);

/*
 * Set the name of the program, parse the command line, and call `run` with its words unless an
 * option has ended the program. The exit status, for tools_finish().
 */
int tools_run_program(const struct tools_program *program, void *target, int argc, char **argv,
		      int (*run)(void *target, char **words, size_t count));

#endif
