/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines and configuration files: a table for each program, merged with the tunables of the
 * library.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>
#include <rxwire/engine.h>
#include <rxwire/error.h>

#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/common/options.h"

/* What every program takes. */
enum standard { STD_CONFIG = 1000, STD_CHECK, STD_HELP, STD_VERSION };
/* Values that getopt_long() returns for long options of the two tables. */
#define VAL_OWN     2000
#define VAL_TUNABLE 4000

/* One line; unlike snprintf() it has no result that anyone must look at. */
static void say(char *message, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(char *message, size_t size, const char *format, ...)
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
 * Strings of configuration files live as long as the process; reachable from here, so that no tool
 * calls them lost.
 */
static const char *keep(const char *text)
{
	static struct kept {
		struct kept *next;
		char text[];
	} *all;
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

static bool is_tunable(const char *name)
{
	size_t count;
	const struct rxw_option *options = rxw_config_options(&count);

	for (size_t i = 0; i < count; i++)
		if (same_name(options[i].name, name))
			return true;
	return false;
}

/* What a number may be, in words. */
static void describe_range(const struct tools_option *o, char *text, size_t size)
{
	const char *kind = o->kind == TOOLS_SIZE     ? "bytes, with K, M or G" :
			   o->kind == TOOLS_DURATION ? "seconds, or a number with ms, s, m or h" :
						       "a whole number";
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

static int set_number(const struct tools_option *o, uint64_t *field, const char *value)
{
	uint64_t v;
	int rc = o->kind == TOOLS_SIZE     ? tools_parse_size(value, &v) :
		 o->kind == TOOLS_DURATION ? tools_parse_duration(value, &v) :
					     tools_parse_uint(value, &v);

	if (rc < 0 || v < o->min || (o->max && v > o->max))
		return -1;
	*field = v;
	return 0;
}

static int set_flag(bool *field, const char *value)
{
	static const char *const yes[] = { "yes", "on", "true", "1" };
	static const char *const no[] = { "no", "off", "false", "0" };

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

static int list_append(struct tools_list *list, const char *value)
{
	const char **items = realloc(list->items, (list->count + 1) * sizeof(*items));

	if (!items)
		return -1;
	items[list->count++] = value;
	list->items = items;
	return 0;
}

/* Set one option of the program. 0, or -1 with one line in `message`. */
static int set_own(const struct tools_option *o, void *target, struct rxw_config *config,
		   const char *value, char *message, size_t size)
{
	char *field = (char *)target + o->offset;
	char allowed[160] = "";
	const char *kept;
	int rc;

	switch (o->kind) {
	case TOOLS_FLAG:
		rc = set_flag((bool *)(void *)field, value);
		snprintf(allowed, sizeof(allowed), "yes or no");
		break;
	case TOOLS_UINT:
	case TOOLS_SIZE:
	case TOOLS_DURATION:
		rc = set_number(o, (uint64_t *)(void *)field, value);
		describe_range(o, allowed, sizeof(allowed));
		break;
	case TOOLS_CHOICE:
		rc = set_choice(o->argument, (int *)(void *)field, value);
		snprintf(allowed, sizeof(allowed), "%s", o->argument);
		break;
	case TOOLS_CALL:
		rc = o->set(target, value, allowed, sizeof(allowed));
		break;
	case TOOLS_TUNABLE:
		return rxw_config_set(config, o->name, value, message, size) < 0 ? -1 : 0;
	default: /* TOOLS_STRING, TOOLS_LIST */
		kept = keep(value);
		if (kept && o->kind == TOOLS_STRING)
			*(const char **)(void *)field = kept;
		rc = !kept ? -1 :
		     o->kind == TOOLS_LIST ? list_append((struct tools_list *)(void *)field, kept) :
					     0;
		snprintf(allowed, sizeof(allowed), "less: there is no memory");
		break;
	}
	if (rc < 0)
		say(message, size, "option --%s: \"%s\" is not allowed; it takes %s", o->name,
		    value, allowed);
	return rc;
}

/* ---- configuration files ---- */

#define CONFIG_LINE 190 /* libinih cuts lines of 200 bytes in two without a word */

struct reading {
	const struct tools_program *program;
	void *target;
	struct rxw_config *config;
	const char *path;
	FILE *file;
	int line;      /* number of the line handed out last */
	bool failed;   /* the first error is in message */
	char *message;
	size_t size;
};

static void reading_failed(struct reading *r, const char *why)
{
	if (!r->failed)
		say(r->message, r->size, "%s:%d: %s", r->path, r->line, why);
	r->failed = true;
}

/* Hands libinih one line; counts them, and refuses those that it would cut. */
static char *next_line(char *text, int size, void *arg)
{
	struct reading *r = arg;

	if (r->failed || !fgets(text, size, r->file))
		return NULL;
	r->line++;
	if (strlen(text) > CONFIG_LINE || (!strchr(text, '\n') && !feof(r->file))) {
		reading_failed(r, "the line is too long: at most 190 bytes");
		return NULL;
	}
	return text;
}

static int is_other_program(const char *section)
{
	static const char *const programs[] = { "rxperf", "afscp", "rxfsd", "rxwstat" };

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strcmp(section, programs[i]) == 0)
			return 1;
	return 0;
}

/* One "name = value"; libinih wants nonzero for success. */
static int take_key(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;
	bool ours = strcmp(section, r->program->name) == 0;
	const struct tools_option *own = ours ? find_own(r->program, name) : NULL;
	char why[384];

	if (!ours && *section && strcmp(section, "rxwire") != 0) {
		if (is_other_program(section))
			return 1;
		say(why, sizeof(why),
		    "no section [%s]; there are [rxwire] and those of the programs", section);
	} else if (own) {
		if (set_own(own, r->target, r->config, value, why, sizeof(why)) == 0)
			return 1;
	} else if (is_tunable(name) && (!ours || !r->program->no_tunables)) {
		/* what all programs share is none of a program's that has no transport */
		if (r->program->no_tunables)
			return 1;
		if (rxw_config_set(r->config, name, value, why, sizeof(why)) == 0)
			return 1;
	} else {
		say(why, sizeof(why), "no option \"%s\" in section [%s]; see %s --help", name,
		    *section ? section : "rxwire", r->program->name);
	}
	reading_failed(r, why);
	return 0;
}

int tools_config_read(const struct tools_program *program, void *target, struct rxw_config *config,
		      const char *path, char *message, size_t message_size)
{
	struct reading r = { .program = program, .target = target, .config = config, .path = path,
			     .message = message, .size = message_size };
	int rc;

	r.file = fopen(path, "re");
	if (!r.file) {
		say(message, message_size, "cannot read configuration file %s: %s", path,
		    strerror(errno));
		return -1;
	}
	rc = ini_parse_stream(next_line, &r, take_key, &r);
	if (ferror(r.file)) {
		say(message, message_size, "cannot read configuration file %s: %s", path,
		    strerror(errno));
		r.failed = true;
	}
	fclose(r.file);
	if (rc != 0 && !r.failed) {
		if (rc > 0)
			r.line = rc;
		reading_failed(&r, "this is neither \"[section]\", \"name = value\" nor a comment");
	}
	return r.failed ? -1 : 0;
}

/* ---- help ---- */

static void help_line(char letter, const char *name, const char *argument, const char *help)
{
	char left[80];
	int width = 30;

	snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", letter ? '-' : ' ', letter ? letter : ' ',
		 letter ? ',' : ' ', name, argument ? " " : "", argument ? argument : "");
	if ((int)strlen(left) >= width)
		printf("%s\n%*s %s\n", left, width, "", help);
	else
		printf("%-*s %s\n", width, left, help);
}

/* The default of a tunable as people write it: "192M bytes", "255 packets", "auto"; "" for none. */
static void preset(const struct rxw_config *config, const struct rxw_option *t, char *text,
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

static void tunable_line(const struct rxw_config *config, const struct rxw_option *t)
{
	char help[384], value[160];

	preset(config, t, value, sizeof(value));
	if (value[0])
		snprintf(help, sizeof(help), "%s (%s)", t->help, value);
	help_line(0, t->name, t->argument, value[0] ? help : t->help);
}

static void print_help(const struct tools_program *program, const struct rxw_config *config)
{
	size_t count;
	const struct rxw_option *tunables = rxw_config_options(&count);

	printf("%s%s\n\nOptions:\n", program->usage, program->summary);
	for (size_t i = 0; i < program->option_count; i++) {
		const struct tools_option *o = &program->options[i];
		help_line(o->letter, o->name, o->argument, o->help);
	}
	help_line(0, "config", "FILE", "read options from FILE first; see rxwire.conf(5)");
	help_line(0, "check-config", NULL, "check command line and FILE, then stop");
	help_line('h', "help", NULL, "show this text");
	help_line(0, "version", NULL, "show the version");
	if (program->no_tunables)
		return;
	printf("\nTransport:\n");
	for (size_t i = 0; i < count; i++) {
		if (!find_own(program, tunables[i].name))
			tunable_line(config, &tunables[i]);
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

static void parser_add(struct parser *p, size_t *n, const char *name, int has_arg, int val)
{
	p->longs[*n] = (struct option){ name, has_arg, NULL, val };
	++*n;
}

static int parser_init(struct parser *p, const struct tools_program *program)
{
	size_t n = 0, s = 0;

	p->program = program;
	p->tunables = rxw_config_options(&p->tunable_count);
	if (program->no_tunables)
		p->tunable_count = 0;
	p->longs = calloc(program->option_count + p->tunable_count + 5, sizeof(*p->longs));
	if (!p->longs)
		return -1;
	p->shorts[s++] = ':'; /* a missing argument is told apart from an unknown option */
	p->shorts[s++] = 'h';
	for (size_t i = 0; i < program->option_count; i++) {
		const struct tools_option *o = &program->options[i];
		parser_add(p, &n, o->name, o->kind == TOOLS_FLAG ? no_argument : required_argument,
			   VAL_OWN + (int)i);
		if (o->letter && s + 3 < sizeof(p->shorts)) {
			p->shorts[s++] = o->letter;
			if (o->kind != TOOLS_FLAG)
				p->shorts[s++] = ':';
		}
	}
	for (size_t i = 0; i < p->tunable_count; i++)
		if (!find_own(program, p->tunables[i].name))
			parser_add(p, &n, p->tunables[i].name, required_argument,
				   VAL_TUNABLE + (int)i);
	parser_add(p, &n, "config", required_argument, STD_CONFIG);
	parser_add(p, &n, "check-config", no_argument, STD_CHECK);
	parser_add(p, &n, "help", no_argument, STD_HELP);
	parser_add(p, &n, "version", no_argument, STD_VERSION);
	p->shorts[s] = 0;
	return 0;
}

/* The option of the program that a value of getopt_long() stands for, or NULL. */
static const struct tools_option *own_of(const struct parser *p, int val)
{
	if (val >= VAL_OWN && val < VAL_TUNABLE)
		return &p->program->options[val - VAL_OWN];
	for (size_t i = 0; val < 256 && i < p->program->option_count; i++)
		if (p->program->options[i].letter == val)
			return &p->program->options[i];
	return NULL;
}

static void complain(const struct parser *p, int why, int argc, char *const *argv)
{
	/* Where the last option lacks its value, musl's getopt_long() stands behind the end. */
	const char *text = argv[(optind < argc ? optind : argc) - 1];

	if (optopt > 0 && optopt < 256 && !(text[0] == '-' && text[1] == '-'))
		tools_error("option -%c %s; see %s --help", optopt,
			    why == ':' ? "needs a value" : "is unknown", p->program->name);
	else
		tools_error("option %.*s %s; see %s --help", (int)strcspn(text, "="), text,
			    why == ':'    ? "needs a value" :
			    optopt >= 256 ? "takes no value" :
					    "is unknown or not complete",
			    p->program->name);
}

/*
 * First pass: what needs no values, and the name of the file. Returns false if a line was printed.
 */
static bool first_pass(const struct parser *p, int argc, char **argv, const char **file,
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
			complain(p, val, argc, argv);
			return false;
		case STD_CONFIG:
			*file = optarg;
			break;
		case 'h':
			if (own_of(p, val))
				break;
			/* fall through */
		case STD_HELP:
			*action = STD_HELP;
			return true;
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

static int second_pass(const struct parser *p, void *target, struct rxw_config *config, int argc,
		       char **argv)
{
	char message[512];
	int val;

	optind = 0;
	while ((val = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
		const struct tools_option *own = own_of(p, val);
		int rc = 0;

		if (own)
			rc = set_own(own, target, config,
				     own->kind == TOOLS_FLAG ? "yes" : optarg, message,
				     sizeof(message));
		else if (val >= VAL_TUNABLE)
			rc = rxw_config_set(config, p->tunables[val - VAL_TUNABLE].name, optarg,
					    message, sizeof(message));
		if (rc < 0) {
			tools_error("%s", message);
			return -1;
		}
	}
	return 0;
}

static enum tools_parsed parse(const struct parser *p, void *target, struct rxw_config *config,
			       int argc, char **argv)
{
	char message[512];
	const char *file;
	int action;

	if (!first_pass(p, argc, argv, &file, &action))
		return TOOLS_USAGE;
	if (action == STD_HELP) {
		print_help(p->program, config);
		return TOOLS_DONE;
	}
	if (action == STD_VERSION) {
		printf("%s (rxwire) %s\n", p->program->name, rxw_version());
		return TOOLS_DONE;
	}
	if (file && tools_config_read(p->program, target, config, file, message,
				      sizeof(message)) < 0) {
		tools_error("%s", message);
		return TOOLS_USAGE;
	}
	if (second_pass(p, target, config, argc, argv) < 0)
		return TOOLS_USAGE;
	if (action == STD_CHECK) {
		if (p->program->check && p->program->check(target, config))
			return TOOLS_USAGE;
		printf("%s: %s\n", file ? file : "command line", "no errors");
		return TOOLS_DONE;
	}
	return TOOLS_RUN;
}

enum tools_parsed tools_options_parse(const struct tools_program *program, void *target,
				      struct rxw_config *config, int argc, char **argv, int *first)
{
	struct parser p;
	enum tools_parsed result;

	if (parser_init(&p, program) < 0) {
		tools_error("no memory");
		return TOOLS_USAGE;
	}
	result = parse(&p, target, config, argc, argv);
	*first = optind;
	free(p.longs);
	return result;
}
