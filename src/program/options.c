/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines and configuration files: the table of a program, merged with the tunables of the
 * library.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>
#include <rxwire/engine.h>

#include "common/near.h"
#include "program/message.h"
#include "program/number.h"
#include "program/options.h"

/* ---- places where options were set ---- */

#define VALUE_SHOWN 60 /* bytes of a value that messages show at least */

struct record {
	struct record *next;
	struct tools_place place;
	char text[]; /* path, section */
};

static struct record *records; /* the newest first */

/* Remove the records of one option, or all. */
static void forget_option(const char *name)
{
	for (struct record **at = &records; *at;) {
		struct record *r = *at;

		if (name && strcmp(r->place.name, name) != 0) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
	}
}

void tools_place_reset(void)
{
	forget_option(NULL);
}

/* Record a place, in place of an earlier record of the option unless `repeat`. 0; -1: no memory. */
static int tools_place_record(const struct tools_place *place)
{
	size_t path = place->path ? strlen(place->path) + 1 : 0;
	size_t section = place->section ? strlen(place->section) + 1 : 0;
	struct record *r = malloc(sizeof(*r) + path + section);

	if (!r)
		return -1;
	if (!place->repeat)
		forget_option(place->name);
	r->place = *place;
	if (path)
		r->place.path = memcpy(r->text, place->path, path);
	if (section)
		r->place.section = memcpy(r->text + path, place->section, section);
	r->next = records;
	records = r;
	return 0;
}

/* The line where `section` of the file set the option; 0 if it did not. */
static int tools_place_line(const char *name, const char *section)
{
	for (const struct record *r = records; r; r = r->next)
		if (r->place.path && strcmp(r->place.name, name) == 0 &&
		    strcmp(r->place.section, section) == 0)
			return r->place.line;
	return 0;
}

bool tools_place_given(const char *name)
{
	for (const struct record *r = records; r; r = r->next)
		if (!r->place.path && strcmp(r->place.name, name) == 0)
			return true;
	return false;
}

/* The record of the option whose name `text` begins with; of a list, of the item that follows. */
static const struct tools_place *find_mentioned_place(const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
	const char *value = text + length + strspn(text + length, " '\"");
	const struct tools_place *found = NULL;

	for (const struct record *r = records; r; r = r->next) {
		const struct tools_place *p = &r->place;

		if (strlen(p->name) != length || memcmp(p->name, text, length) != 0)
			continue;
		if (p->value && strncmp(value, p->value, strnlen(p->value, VALUE_SHOWN)) == 0)
			return p;
		if (!found)
			found = p;
	}
	return found;
}

void tools_place_message(char *message, size_t size)
{
	for (const char *at = message; (at = strstr(at, "--")); at += 2) {
		const struct tools_place *p = find_mentioned_place(at + 2);
		char prefix[320];
		size_t length, rest;

		if (!p || !p->path)
			continue;
		length = (size_t)snprintf(prefix, sizeof(prefix), "%.280s:%d: ", p->path, p->line);
		rest = strlen(message) + 1;
		if (length >= size)
			return;
		if (rest > size - length)
			rest = size - length;
		memmove(message + length, message, rest);
		message[size - 1] = 0;
		memcpy(message, prefix, length);
		return;
	}
}

/* ---- options ---- */

/* Options of every program. */
enum standard {
	STD_CONFIG = 1000,
	STD_CHECK,
	STD_HELP,
	STD_VERSION
};
/* Values that getopt_long() returns for long options of the two tables. */
#define VAL_OWN	    2000
#define VAL_TUNABLE 4000

/* snprintf() without a result that compilers warn about. */
static void write_reason(char *message, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void write_reason(char *message, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, size, format, args);
	va_end(args);
}

void tools_list_free(struct tools_list *list)
{
	free(list->items);
	list->items = NULL;
	list->count = 0;
}

/*
 * Strings of options live as long as the process. They stay reachable, so that leak checkers do not
 * report them.
 */
static const char *keep_string(const char *text)
{
	static struct kept {
		struct kept *next;
		char text[];
	} * all;
	size_t size = strlen(text) + 1;
	struct kept *one = malloc(sizeof(*one) + size);

	if (!one)
		return NULL;
	memcpy(one->text, text, size);
	one->next = all;
	all = one;
	return one->text;
}

/* Names compare with "_" and "-" alike. */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
			return false;
	return *a == *b;
}

static const struct tools_option *find_own(const struct tools_program *program, const char *name)
{
	for (size_t i = 0; i < program->option_count; i++)
		if (same_name(program->options[i].name, name))
			return &program->options[i];
	return NULL;
}

static const struct rxw_option *find_tunable(const char *name)
{
	size_t count;
	const struct rxw_option *options = rxw_config_options(&count);

	for (size_t i = 0; i < count; i++)
		if (same_name(options[i].name, name))
			return &options[i];
	return NULL;
}

/* ---- names that resemble an unknown one ---- */

#define NEAR_TEXT 200 /* bytes of the text of list_near_names() */

/* Whether `typed` may mean `name`: it is a prefix, or differs in few letters. */
static bool names_resemble(const char *typed, const char *name)
{
	size_t length = strlen(typed);

	if (length < 2)
		return false;
	return strncmp(typed, name, length) == 0 || near_edits(typed, name) <= (length < 5 ? 1 : 2);
}

static void append_near_name(char text[NEAR_TEXT], const char *dashes, const char *name)
{
	size_t used = strlen(text);

	write_reason(text + used, NEAR_TEXT - used, "%s%s%s", used ? ", " : ": did you mean ",
		     dashes, name);
}

/* ": did you mean NAME, NAME?" with all similar names, or "". */
static const char *list_near_names(const struct tools_program *program, const char *typed,
				   const char *dashes, char text[NEAR_TEXT])
{
	size_t count;
	const struct rxw_option *tunables = rxw_config_options(&count);

	*text = 0;
	for (size_t i = 0; i < program->option_count; i++)
		if (names_resemble(typed, program->options[i].name))
			append_near_name(text, dashes, program->options[i].name);
	for (size_t i = 0; !program->no_tunables && i < count; i++)
		if (!find_own(program, tunables[i].name) && names_resemble(typed, tunables[i].name))
			append_near_name(text, dashes, tunables[i].name);
	if (*text)
		write_reason(text + strlen(text), NEAR_TEXT - strlen(text), "?");
	return text;
}

/* Describe the allowed numbers. */
static void describe_range(const struct tools_option *o, char *text, size_t size)
{
	const char *kind = o->kind == TOOLS_SIZE       ? "bytes, with K, M or G"
			   : o->kind == TOOLS_DURATION ? "seconds, or a number with ms, s, m or h"
						       : "a whole number";
	char low[24], high[24];

	if (o->kind == TOOLS_SIZE) {
		tools_format_exact(low, sizeof(low), o->min);
		tools_format_exact(high, sizeof(high), o->max);
	} else if (o->kind == TOOLS_DURATION) {
		snprintf(low, sizeof(low), "%g", (double)o->min / 1000);
		snprintf(high, sizeof(high), "%g", (double)o->max / 1000);
	} else {
		snprintf(low, sizeof(low), "%llu", (unsigned long long)o->min);
		snprintf(high, sizeof(high), "%llu", (unsigned long long)o->max);
	}
	if (o->max)
		snprintf(text, size, "%s, %s to %s", kind, low, high);
	else if (o->min)
		snprintf(text, size, "%s, at least %s", kind, low);
	else
		snprintf(text, size, "%s", kind);
}

static int set_option_number(const struct tools_option *o, uint64_t *field, const char *value)
{
	uint64_t v;
	int rc = o->kind == TOOLS_SIZE	     ? tools_parse_size(value, &v)
		 : o->kind == TOOLS_DURATION ? tools_parse_duration(value, &v)
					     : tools_parse_uint(value, &v);

	if (rc < 0 || v < o->min || (o->max && v > o->max))
		return -1;
	*field = v;
	return 0;
}

static int set_flag(bool *field, const char *value)
{
	static const char *const yes[] = {"yes", "on", "true", "1"};
	static const char *const no[] = {"no", "off", "false", "0"};

	for (size_t i = 0; i < 4; i++) {
		if (strcmp(value, yes[i]) == 0) {
			*field = true;
			return 0;
		}
		if (strcmp(value, no[i]) == 0) {
			*field = false;
			return 0;
		}
	}
	return -1;
}

static int set_choice(const char *choices, int *field, const char *value)
{
	size_t length = strlen(value);

	for (int i = 0; *choices; i++) {
		size_t n = strcspn(choices, "|");
		if (n == length && memcmp(choices, value, n) == 0) {
			*field = i;
			return 0;
		}
		choices += n + (choices[n] == '|');
	}
	return -1;
}

static int append_to_list(struct tools_list *list, const char *value)
{
	const char **items = realloc(list->items, (list->count + 1) * sizeof(*items));

	if (!items)
		return -1;
	items[list->count++] = value;
	list->items = items;
	return 0;
}

static int record_option_place(const char *name, struct tools_place from, char *message,
			       size_t size)
{
	from.name = name;
	if (tools_place_record(&from) == 0)
		return 0;
	write_reason(message, size, "no memory");
	return -1;
}

/* Set a tunable of the library by its name in the table of tunables. */
static int set_tunable(const char *name, struct rxw_config *config, const char *value,
		       struct tools_place from, char *message, size_t size)
{
	if (rxw_config_set(config, name, value, message, size) < 0)
		return -1;
	return record_option_place(name, from, message, size);
}

/* Store a string, and a copy of it in *kept. 0, or -1 without memory. */
static int set_string(const struct tools_option *o, void *field, const char *value,
		      const char **kept)
{
	*kept = keep_string(value);
	if (!*kept)
		return -1;
	if (o->kind == TOOLS_LIST)
		return append_to_list(field, *kept);
	*(const char **)field = *kept;
	return 0;
}

/* Store a value in the target. 0, or -1 with the allowed values. */
static int set_value(const struct tools_option *o, void *target, const char *value,
		     const char **kept, char *allowed, size_t size)
{
	void *field = (char *)target + o->offset;

	switch (o->kind) {
	case TOOLS_FLAG:
		snprintf(allowed, size, "yes or no");
		return set_flag(field, value);
	case TOOLS_UINT:
	case TOOLS_SIZE:
	case TOOLS_DURATION:
		describe_range(o, allowed, size);
		return set_option_number(o, field, value);
	case TOOLS_CHOICE:
		snprintf(allowed, size, "%s", o->argument);
		return set_choice(o->argument, field, value);
	case TOOLS_CALL:
		return o->set(target, value, allowed, size);
	default: /* TOOLS_STRING, TOOLS_LIST */
		snprintf(allowed, size, "a shorter one; memory is exhausted");
		return set_string(o, field, value, kept);
	}
}

/*
 * Set an option of the program. 0, or -1 with one line in `message`. `from` is where it was set;
 * name and value are filled in.
 */
static int set_own(const struct tools_option *o, void *target, struct rxw_config *config,
		   const char *value, struct tools_place from, char *message, size_t size)
{
	char allowed[160] = "";
	const char *kept = NULL;

	if (o->kind == TOOLS_TUNABLE)
		return set_tunable(o->name, config, value, from, message, size);
	if ((o->kind == TOOLS_STRING || o->kind == TOOLS_LIST) && !*value) {
		write_reason(message, size, "option --%s needs a value", o->name);
		return -1;
	}
	if (set_value(o, target, value, &kept, allowed, sizeof(allowed)) < 0) {
		write_reason(message, size, "option --%s: invalid value \"%s\"; use %s", o->name,
			     value, allowed);
		return -1;
	}
	from.value = kept;
	from.repeat = o->kind == TOOLS_LIST;
	return record_option_place(o->name, from, message, size);
}

/* ---- configuration files ---- */

#define CONFIG_LINE 190 /* libinih silently splits lines of 200 bytes */

struct reading {
	const struct tools_program *program;
	void *target;
	struct rxw_config *config;
	const char *path;
	FILE *file;
	int line;    /* number of the last line that libinih got */
	bool failed; /* the first error is in message */
	char *message;
	size_t size;
};

static void note_reading_error(struct reading *r, const char *why)
{
	if (!r->failed)
		write_reason(r->message, r->size, "%s:%d: %s", r->path, r->line, why);
	r->failed = true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

/* The first of `chars` in a line outside comments, or NULL. */
static const char *find_char(const char *line, const char *chars)
{
	for (bool blank = false; *line && !strchr("\r\n", *line); blank = is_blank(*line++)) {
		if (strchr(chars, *line))
			return line;
		if (blank && *line == ';')
			return NULL;
	}
	return NULL;
}

/*
 * The syntax error of a line, or NULL. libinih detects some errors only later, and ignores text
 * after a heading.
 */
static const char *find_syntax_error(const char *line)
{
	const char *end;

	if (strchr("#;\r\n", *line))
		return NULL;
	if (*line != '[')
		return find_char(line, "=:")
			       ? NULL
			       : "expected \"[section]\", \"name = value\" or a comment";
	end = find_char(line, "]");
	if (!end)
		return "the heading has no \"]\"";
	while (is_blank(*++end))
		;
	return strchr("#;\r\n", *end) ? NULL : "only a comment may follow a heading";
}

/*
 * Give libinih the next line, and reject lines that it would split. Leading blanks are removed,
 * because libinih takes an indented line for another value of the preceding name.
 */
static char *read_config_line(char *text, int size, void *arg)
{
	static const char mark[] = "\xef\xbb\xbf"; /* byte order mark of UTF-8 */
	struct reading *r = arg;
	const char *start = text, *why;

	if (r->failed || !fgets(text, size, r->file))
		return NULL;
	r->line++;
	if (strlen(text) > CONFIG_LINE || (!strchr(text, '\n') && !feof(r->file))) {
		note_reading_error(r, "the line is too long: at most 190 bytes");
		return NULL;
	}
	if (r->line == 1 && strncmp(text, mark, strlen(mark)) == 0)
		start += strlen(mark);
	while (is_blank(*start))
		start++;
	memmove(text, start, strlen(start) + 1);
	why = find_syntax_error(text);
	if (why)
		note_reading_error(r, why);
	return why ? NULL : text;
}

static int is_other_program(const char *section)
{
	static const char *const programs[] = {"rxperf",	 "afscp", "rxfsd",
						"rxwstat", "rxpt",  "rxvol"};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strcmp(section, programs[i]) == 0)
			return 1;
	return 0;
}

/*
 * Whether the section has set the option before, which only lists may be; with the reason in `why`.
 */
static bool is_set_already(const char *section, const char *name, char *why, size_t size)
{
	int line = tools_place_line(name, section);

	if (line)
		write_reason(why, size,
			     "option \"%s\" is set in line %d already; remove one of them", name,
			     line);
	return line != 0;
}

static void describe_unknown_option(const struct reading *r, const char *section, const char *name,
				    char *why, size_t size)
{
	char near[NEAR_TEXT];

	if (strcmp(section, r->program->name) != 0 && find_own(r->program, name))
		write_reason(why, size, "option \"%s\" is valid only in section [%s]", name,
			     r->program->name);
	else
		write_reason(why, size, "unknown option \"%s\" in section [%s]%s; see %s --help",
			     name, *section ? section : "rxwire",
			     list_near_names(r->program, name, "", near), r->program->name);
}

/* One "name = value"; libinih wants nonzero for success. */
static int take_config_key(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;
	bool ours = strcmp(section, r->program->name) == 0;
	const struct tools_option *own = ours ? find_own(r->program, name) : NULL;
	const struct rxw_option *tunable = own ? NULL : find_tunable(name);
	const struct tools_place from = {.path = r->path, .section = section, .line = r->line};
	char why[384];

	if (!ours && *section && strcmp(section, "rxwire") != 0) {
		if (is_other_program(section))
			return 1;
		write_reason(why, sizeof(why),
			     "unknown section [%s]; use [rxwire] or the name of a program",
			     section);
	} else if (own && own->once) {
		write_reason(why, sizeof(why), "option \"%s\" is valid only on the command line",
			     name);
	} else if (own) {
		if ((own->kind == TOOLS_LIST ||
		     !is_set_already(section, own->name, why, sizeof(why))) &&
		    set_own(own, r->target, r->config, value, from, why, sizeof(why)) == 0)
			return 1;
	} else if (tunable && !r->program->no_tunables) {
		if (!is_set_already(section, tunable->name, why, sizeof(why)) &&
		    set_tunable(tunable->name, r->config, value, from, why, sizeof(why)) == 0)
			return 1;
	} else if (tunable && !ours) {
		/* a program without transport ignores tunables in the common section */
		return 1;
	} else {
		describe_unknown_option(r, section, name, why, sizeof(why));
	}
	note_reading_error(r, why);
	return 0;
}

int tools_config_read(const struct tools_program *program, void *target, struct rxw_config *config,
		      const char *path, char *message, size_t message_size)
{
	struct reading r = {.program = program,
			    .target = target,
			    .config = config,
			    .path = path,
			    .message = message,
			    .size = message_size};
	int rc;

	tools_place_reset();
	r.file = fopen(path, "re");
	if (!r.file) {
		write_reason(message, message_size, "cannot read configuration file %s: %s", path,
			     strerror(errno));
		return -1;
	}
	rc = ini_parse_stream(read_config_line, &r, take_config_key, &r);
	if (ferror(r.file)) {
		write_reason(message, message_size, "cannot read configuration file %s: %s", path,
			     strerror(errno));
		r.failed = true;
	}
	fclose(r.file);
	if (rc != 0 && !r.failed) {
		if (rc > 0)
			r.line = rc;
		note_reading_error(&r, "unreadable line");
	}
	return r.failed ? -1 : 0;
}

/* One value of the file of another program. */
struct sought_value {
	const char *section, *name;
	char *value; /* NULL: not found */
};

static int take_sought_value(void *arg, const char *section, const char *name, const char *value)
{
	struct sought_value *sought = arg;

	if (strcmp(section, sought->section) != 0 || strcmp(name, sought->name) != 0)
		return 1;
	free(sought->value);
	sought->value = strdup(value);
	return sought->value != NULL;
}

char *tools_config_value(const char *path, const char *section, const char *name)
{
	struct sought_value sought = {section, name, NULL};
	char ignored[384];
	struct reading r = {.path = path, .message = ignored, .size = sizeof(ignored)};

	r.file = fopen(path, "re");
	if (!r.file)
		return NULL;
	ini_parse_stream(read_config_line, &r, take_sought_value, &sought);
	fclose(r.file);
	return sought.value;
}

/* ---- help ---- */

#define HELP_WIDTH  100 /* columns */
#define HELP_INDENT 31

/* Print wrapped text from column HELP_INDENT on. */
static void print_help_text(const char *help)
{
	size_t column = HELP_INDENT;

	while (*help) {
		size_t length = strcspn(help, " ");

		if (column > HELP_INDENT && column + 1 + length > HELP_WIDTH) {
			printf("\n%*s", HELP_INDENT, "");
			column = HELP_INDENT;
		} else if (column > HELP_INDENT) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)length, help);
		column += length;
		help += length;
		help += strspn(help, " ");
	}
	putchar('\n');
}

static void print_help_line(char letter, const char *name, const char *argument, const char *help)
{
	char left[80];

	snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", letter ? '-' : ' ', letter ? letter : ' ',
		 letter ? ',' : ' ', name, argument ? " " : "", argument ? argument : "");
	if (strlen(left) >= HELP_INDENT - 1)
		printf("%s\n%*s", left, HELP_INDENT, "");
	else
		printf("%-*s", HELP_INDENT, left);
	print_help_text(help);
}

/* The default of a tunable for --help: "192M bytes", "255 packets", "auto"; "" for none. */
static void format_default(const struct rxw_config *config, const struct rxw_option *t, char *text,
			   size_t size)
{
	static const char suffix[] = " KMG";
	unsigned long long value;
	char *end, word[128];
	unsigned s = 0;

	*text = '\0';
	if (rxw_config_get(config, t->name, word, sizeof(word)) <= 0)
		return;
	value = strtoull(word, &end, 10);
	if (*end) {
		snprintf(text, size, "%s", word);
		return;
	}
	for (; !strcmp(t->unit, "bytes") && s < 3 && value && !(value & 1023); s++)
		value >>= 10;
	snprintf(text, size, "%llu%.*s %s", value, s ? 1 : 0, suffix + s, t->unit);
}

static void print_tunable_help(const struct rxw_config *config, const struct rxw_option *t)
{
	char help[384], value[160];

	format_default(config, t, value, sizeof(value));
	if (value[0])
		snprintf(help, sizeof(help), "%s (%s)", t->help, value);
	print_help_line(0, t->name, t->argument, value[0] ? help : t->help);
}

static void print_help(const struct tools_program *program, const struct rxw_config *config)
{
	size_t count;
	const struct rxw_option *tunables = rxw_config_options(&count);

	printf("%s%s\n\nOptions:\n", program->usage, program->summary);
	for (size_t i = 0; i < program->option_count; i++) {
		const struct tools_option *o = &program->options[i];
		print_help_line(o->letter, o->name, o->argument, o->help);
	}
	print_help_line(0, "config", "FILE", "read options from FILE first; see rxwire.conf(5)");
	print_help_line(0, "check-config", NULL, "check the command line and FILE, then exit");
	print_help_line('h', "help", NULL, "show this text");
	print_help_line('V', "version", NULL, "show the version");
	if (program->no_tunables)
		return;
	for (int ordinary = 1; ordinary >= 0; ordinary--) {
		printf(ordinary ? "\nTransport:\n" : "\nTransport, rarely needed:\n");
		for (size_t i = 0; i < count; i++)
			if (tunables[i].ordinary == ordinary &&
			    !find_own(program, tunables[i].name))
				print_tunable_help(config, &tunables[i]);
	}
}

/* ---- command lines ---- */

struct parser {
	const struct tools_program *program;
	const struct rxw_option *tunables;
	size_t tunable_count;
	struct option *longs;
	char shorts[160];
};

static void add_long_option(struct parser *p, size_t *n, const char *name, int has_arg, int val)
{
	p->longs[*n] = (struct option){name, has_arg, NULL, val};
	++*n;
}

static int init_parser(struct parser *p, const struct tools_program *program)
{
	size_t n = 0, s = 0;

	p->program = program;
	p->tunables = rxw_config_options(&p->tunable_count);
	if (program->no_tunables)
		p->tunable_count = 0;
	p->longs = calloc(program->option_count + p->tunable_count + 5, sizeof(*p->longs));
	if (!p->longs)
		return -1;
	p->shorts[s++] = ':'; /* distinguish a missing argument from an unknown option */
	p->shorts[s++] = 'h';
	p->shorts[s++] = 'V';
	for (size_t i = 0; i < program->option_count; i++) {
		const struct tools_option *o = &program->options[i];
		add_long_option(p, &n, o->name,
				o->kind == TOOLS_FLAG ? no_argument : required_argument,
				VAL_OWN + (int)i);
		if (o->letter && s + 3 < sizeof(p->shorts)) {
			p->shorts[s++] = o->letter;
			if (o->kind != TOOLS_FLAG)
				p->shorts[s++] = ':';
		}
	}
	for (size_t i = 0; i < p->tunable_count; i++)
		if (!find_own(program, p->tunables[i].name))
			add_long_option(p, &n, p->tunables[i].name, required_argument,
					VAL_TUNABLE + (int)i);
	add_long_option(p, &n, "config", required_argument, STD_CONFIG);
	add_long_option(p, &n, "check-config", no_argument, STD_CHECK);
	add_long_option(p, &n, "help", no_argument, STD_HELP);
	add_long_option(p, &n, "version", no_argument, STD_VERSION);
	p->shorts[s] = 0;
	return 0;
}

/* The option of the program for a value of getopt_long(), or NULL. */
static const struct tools_option *find_own_by_value(const struct parser *p, int val)
{
	if (val >= VAL_OWN && val < VAL_TUNABLE)
		return &p->program->options[val - VAL_OWN];
	for (size_t i = 0; val < 256 && i < p->program->option_count; i++)
		if (p->program->options[i].letter == val)
			return &p->program->options[i];
	return NULL;
}

static void report_bad_option(const struct parser *p, int why, int argc, char *const *argv)
{
	/* If the last option lacks its value, musl's getopt_long() leaves optind beyond argc. */
	const char *text = argv[(optind < argc ? optind : argc) - 1];
	char name[NEAR_MOST + 2], near[NEAR_TEXT] = "";

	if (optopt > 0 && optopt < 256 && !(text[0] == '-' && text[1] == '-'))
		tools_error("option -%c %s; see %s --help", optopt,
			    why == ':' ? "needs a value" : "is unknown", p->program->name);
	else if (why == ':' || optopt >= 256)
		tools_error("option %.*s %s; see %s --help", (int)strcspn(text, "="), text,
			    why == ':' ? "needs a value" : "takes no value", p->program->name);
	else {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "=") - 2, text + 2);
		tools_error("option --%s is unknown%s; see %s --help", name,
			    list_near_names(p->program, name, "--", near), p->program->name);
	}
}

/*
 * First pass: options without values, and the name of the file. Returns false if a line was
 * printed.
 */
static bool scan_arguments(const struct parser *p, int argc, char **argv, const char **file,
			   int *action)
{
	int val;

	*file = NULL;
	*action = 0;
	opterr = 0;
	optind = 0;
	while ((val = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
		switch (val) {
		case '?':
		case ':':
			report_bad_option(p, val, argc, argv);
			return false;
		case STD_CONFIG:
			*file = optarg;
			break;
		case 'h':
			if (find_own_by_value(p, val))
				break;
			/* fall through */
		case STD_HELP:
			*action = STD_HELP;
			return true;
		case 'V':
		case STD_VERSION:
			*action = STD_VERSION;
			return true;
		case STD_CHECK:
			*action = STD_CHECK;
			break;
		}
	}
	return true;
}

static int set_arguments(const struct parser *p, void *target, struct rxw_config *config, int argc,
			 char **argv)
{
	char message[512];
	int val;

	optind = 0;
	while ((val = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
		const struct tools_option *own = find_own_by_value(p, val);
		const struct tools_place from = {0};
		int rc = 0;

		if (own)
			rc = set_own(own, target, config, own->kind == TOOLS_FLAG ? "yes" : optarg,
				     from, message, sizeof(message));
		else if (val >= VAL_TUNABLE)
			rc = set_tunable(p->tunables[val - VAL_TUNABLE].name, config, optarg, from,
					 message, sizeof(message));
		if (rc < 0)
			return tools_fail(-1, "%s", message);
	}
	return 0;
}

/* The first CPU of the list that this program may not run on, or -1. */
static int find_missing_processor(const char *list)
{
	cpu_set_t before, one;
	int missing = -1;

	if (!strcmp(list, "auto") || sched_getaffinity(0, sizeof(before), &before) < 0)
		return -1;
	while (*list && missing < 0) {
		char *end;
		long low = strtol(list, &end, 10),
		     high = *end == '-' ? strtol(end + 1, &end, 10) : low;

		for (; low <= high && missing < 0; low++) {
			CPU_ZERO(&one);
			if (low < CPU_SETSIZE)
				CPU_SET((size_t)low, &one);
			if (sched_setaffinity(0, sizeof(one), &one) < 0 && errno == EINVAL)
				missing = (int)low;
		}
		list = end + (*end == ',');
	}
	sched_setaffinity(0, sizeof(before), &before);
	return missing;
}

/*
 * Reject values that the library would ignore or adjust: inconsistent, or impossible on this
 * machine.
 */
static int check_tunables(const struct rxw_config *config, char *message, size_t size)
{
	int missing = find_missing_processor(config->affinity);

	if (missing >= 0) {
		write_reason(
			message, size,
			"--affinity %.100s: processor %d is not available to this program; see "
			"nproc --all, taskset",
			config->affinity, missing);
		return -1;
	}
	return 0;
}

static enum tools_parsed parse_arguments(const struct parser *p, void *target,
					 struct rxw_config *config, int argc, char **argv)
{
	char message[512];
	const char *file;
	int action;

	tools_place_reset();
	if (!scan_arguments(p, argc, argv, &file, &action))
		return TOOLS_USAGE;
	if (action == STD_HELP) {
		print_help(p->program, config);
		return TOOLS_DONE;
	}
	if (action == STD_VERSION) {
		printf("%s (rxwire) %s\n", p->program->name, rxw_version());
		return TOOLS_DONE;
	}
	if (file &&
	    tools_config_read(p->program, target, config, file, message, sizeof(message)) < 0)
		return tools_fail(TOOLS_USAGE, "%s", message);
	if (set_arguments(p, target, config, argc, argv) < 0)
		return TOOLS_USAGE;
	if (!p->program->no_tunables && check_tunables(config, message, sizeof(message)) < 0) {
		tools_place_message(message, sizeof(message));
		return tools_fail(TOOLS_USAGE, "%s", message);
	}
	if (action == STD_CHECK) {
		if (p->program->check && p->program->check(target, config))
			return TOOLS_USAGE;
		printf("%s: %s\n", file ? file : "command line", "no errors");
		return TOOLS_DONE;
	}
	return TOOLS_RUN;
}

static void print_library_warning(void *arg, enum rxw_log_level level, const char *line)
{
	(void)arg;
	if (level <= RXW_LOG_WARNING)
		tools_error("%s", line);
}

void tools_config_init(struct rxw_config *config)
{
	rxw_config_init(config, sizeof(*config));
	config->log = print_library_warning;
}

enum tools_parsed tools_options_parse(const struct tools_program *program, void *target,
				      struct rxw_config *config, int argc, char **argv, int *first)
{
	struct parser p;
	enum tools_parsed result;

	if (init_parser(&p, program) < 0)
		return tools_fail(TOOLS_USAGE, "no memory");
	result = parse_arguments(&p, target, config, argc, argv);
	*first = optind;
	free(p.longs);
	return result;
}

/* ---- options of single commands ---- */

/* Whether `word` is one of the words of `list`. */
static bool is_word_of(const char *list, const char *word)
{
	size_t length = strlen(word);

	if (!length)
		return false;
	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* "get, put and mkdir" of "get put mkdir". */
static void join_words(const char *words, char *text, size_t size)
{
	const char *last = strrchr(words, ' ');
	size_t used = 0;

	for (const char *p = words; *p && used + 6 < size; p++)
		if (*p != ' ')
			text[used++] = *p;
		else
			used += (size_t)snprintf(text + used, size - used,
						 p == last ? " and " : ", ");
	text[used] = 0;
}

int tools_options_suit(const struct tools_program *program, const char *command)
{
	for (size_t i = 0; i < program->option_count; i++) {
		const struct tools_option *o = &program->options[i];
		char letter[6] = "", commands[160];

		if (!o->commands || is_word_of(o->commands, command) || !tools_place_given(o->name))
			continue;
		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		join_words(o->commands, commands, sizeof(commands));
		return tools_fail(-1, "option %s--%s is for %s, not for %s; see %s --help", letter,
				  o->name, commands, command, program->name);
	}
	return 0;
}

/* ---- programs with commands ---- */

const char *tools_store_directory(const char *given, const char *key)
{
	const char *environment = getenv(TOOLS_STORE_VARIABLE);

	if (given && *given)
		return given;
	if (environment)
		return *environment ? environment : NULL;
	return tools_config_value(TOOLS_SERVER_CONFIG, "rxfsd", key);
}

void tools_report_missing_store(const char *what)
{
	tools_error("-S DIR, $" TOOLS_STORE_VARIABLE
		    " or a line \"store = DIR\" in section [rxfsd] of " TOOLS_SERVER_CONFIG
		    " is required: the directory of %s",
		    what);
}

/* Commands without a store stand behind the name of the program in its usage. */
static bool needs_store(const struct tools_program *program, const char *command)
{
	char bare[NEAR_TEXT];

	snprintf(bare, sizeof(bare), " %s %s ", program->name, command);
	return strstr(program->usage, " -S DIR ") && !strstr(program->usage, bare);
}

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
		char near[NEAR_TEXT] = "";

		at = table;
		for (size_t i = 0; word_count && i < count; i++, at += size) {
			command = (const struct tools_command *)(const void *)at;
			if (names_resemble(words[0], command->name))
				append_near_name(near, "", command->name);
		}
		return tools_fail(NULL, "%s%s%s%s; see %s --help",
				  word_count ? words[0] : "no command",
				  word_count ? ": no such command" : "", near, *near ? "?" : "",
				  program->name);
	}
	if (word_count - 1 >= command->least && word_count - 1 <= command->most)
		return command;
	return tools_fail(NULL, "usage: %s %s%s%s%s", program->name,
			  needs_store(program, command->name) ? "-S DIR " : "", command->name,
			  *command->arguments ? " " : "", command->arguments);
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
