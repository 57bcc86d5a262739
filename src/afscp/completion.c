/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp completion: functions for shells, made of the table of options, so that they cannot differ from it; and the names in
 * AFS that these ask for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/stream.h>

#include "afscp/completion.h"
#include "afscp/place.h"

struct shell {
	const struct tools_program *program;
	const struct completed_command *commands;
	size_t count;
};

/* Options of all programs. */
static const struct tools_option standard[] = {
	{.name = "config",
	 .kind = TOOLS_STRING,
	 .argument = "FILE",
	 .help = "read options from a file"},
	{.name = "help", .letter = 'h', .kind = TOOLS_FLAG, .help = "show the options"},
	{.name = "version", .letter = 'V', .kind = TOOLS_FLAG, .help = "show the version"},
};

#define STANDARD_COUNT (sizeof(standard) / sizeof(standard[0]))

static const struct tools_option *option_at(const struct shell *s, size_t i)
{
	return i < s->program->option_count ? &s->program->options[i]
	       : i < s->program->option_count + STANDARD_COUNT
		       ? &standard[i - s->program->option_count]
		       : NULL;
}

/* Whether a command takes an option; NULL: whether all do. */
static bool takes_option(const struct tools_option *o, const char *command)
{
	size_t length = command ? strlen(command) : 0;

	if (!o->commands || !command)
		return !o->commands;
	for (const char *at = o->commands; (at = strstr(at, command)); at += length)
		if ((at == o->commands || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* Help texts go into quotes. */
static void print_quoted(const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
}

/* The options of a command, with a leading blank each. */
static void print_options(const struct shell *s, const char *command)
{
	const struct tools_option *o;

	for (size_t i = 0; (o = option_at(s, i)); i++)
		if (command ? o->commands && takes_option(o, command) : !o->commands)
			printf(" --%s%s", o->name, o->kind == TOOLS_FLAG ? "" : "=");
}

/* Options whose value follows, as patterns of case: "--level|--cell". `letters`: "-s" as well. */
static void print_with_values(const struct shell *s)
{
	const struct tools_option *o;
	const char *before = "";

	for (size_t i = 0; (o = option_at(s, i)); i++) {
		if (o->kind == TOOLS_FLAG)
			continue;
		printf("%s--%s", before, o->name);
		before = "|";
		if (o->letter)
			printf("|-%c", o->letter);
	}
}

static void print_words_of_bash(const struct shell *s)
{
	for (size_t i = 0; i < s->count; i++)
		printf("%s%s", i ? " " : "", s->commands[i].name);
}

static void print_values_of_bash(const struct shell *s)
{
	const struct tools_option *o;

	for (size_t i = 0; (o = option_at(s, i)); i++) {
		if (o->kind != TOOLS_CHOICE)
			continue;
		printf("\t--%s", o->name);
		if (o->letter)
			printf("|-%c", o->letter);
		fputs(") mapfile -t COMPREPLY < <(compgen -W '", stdout);
		for (const char *c = o->argument; *c; c++)
			putchar(*c == '|' ? ' ' : *c);
		puts("' -- \"$cur\"); return ;;");
	}
}

static void print_bash(const struct shell *s)
{
	fputs("# bash completion for afscp. Made by \"afscp completion bash\".\n"
	      "_afscp() {\n"
	      "\tlocal line=${COMP_LINE:0:COMP_POINT} cur command='' word previous='' i options places=0\n"
	      "\tlocal -a words how=()\n"
	      "\tread -ra words <<< \"$line\"\n"
	      "\tcur=\n"
	      "\t[[ $line == *[[:space:]] ]] || { cur=${words[-1]}; unset 'words[-1]'; }\n"
	      "\tfor ((i = 1; i < ${#words[@]}; i++)); do\n"
	      "\t\tword=${words[i]}\n"
	      "\t\tcase $previous in\n"
	      "\t\t-s|--server|--cell|--keytab|--key-file|-x|--class|--level)\n"
	      "\t\t\t[[ $command && $previous == -[sx] ]] || how+=(\"$previous\" \"$word\") ;;\n"
	      "\t\tesac\n"
	      "\t\tcase $word in\n"
	      "\t\t--server=*|--cell=*|--keytab=*|--key-file=*|--class=*|--level=*) how+=(\"$word\") ;;\n"
	      "\t\tesac\n"
	      "\t\tcase $previous in\n\t\t",
	      stdout);
	print_with_values(s);
	fputs(") ;;\n"
	      "\t\t*) [[ $word == -* ]] || { [[ $command ]] && ((++places)) || command=$word; } ;;\n"
	      "\t\tesac\n"
	      "\t\tprevious=$word\n"
	      "\tdone\n"
	      "\tcase $previous in\n",
	      stdout);
	print_values_of_bash(s);
	fputs("\t--config|--keytab|--key-file) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n"
	      "\tesac\n"
	      "\tif [[ $cur == -* ]]; then\n"
	      "\t\toptions='",
	      stdout);
	print_options(s, NULL);
	puts("'\n\t\tcase $command in");
	for (size_t i = 0; i < s->count; i++) {
		printf("\t\t%s) options+='", s->commands[i].name);
		print_options(s, s->commands[i].name);
		puts("' ;;");
	}
	fputs("\t\tesac\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	      "\t\t[[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace\n"
	      "\telif [[ ! $command ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W '",
	      stdout);
	print_words_of_bash(s);
	fputs("' -- \"$cur\")\n"
	      "\telif [[ $cur == *:* || $cur == /afs/* ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(afscp \"${how[@]}\" -q completion place \"$cur\" 2> /dev/null)\n"
	      "\t\t# A colon ends a word of bash.\n"
	      "\t\tfor i in \"${!COMPREPLY[@]}\"; do\n"
	      "\t\t\tword=${COMPREPLY[i]}\n"
	      "\t\t\t[[ $cur == *:* && $COMP_WORDBREAKS == *:* ]] && word=${word#\"${cur%\"${cur##*:}\"}\"}\n"
	      "\t\t\tprintf -v 'COMPREPLY[i]' %q \"$word\"\n"
	      "\t\tdone\n"
	      "\t\tcompopt -o nospace\n"
	      "\telif [[ $command == completion ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W 'bash zsh fish' -- \"$cur\")\n"
	      "\telif [[ $command == acl ]] && ((places)); then\n"
	      "\t\t((places % 2)) || mapfile -t COMPREPLY < <(compgen -W 'read write all none' -- \"$cur\")\n"
	      "\telif [[ $command == lock ]] && ((places == 1)); then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
	      "\telse\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	      "\t\tcompopt -o filenames\n"
	      "\tfi\n"
	      "}\n"
	      "complete -F _afscp afscp\n",
	      stdout);
}

/* An option for zsh's _describe, "'--name:help'". */
static void print_described(const struct tools_option *o)
{
	printf("\t\t'--%s%s:", o->name, o->kind == TOOLS_FLAG ? "" : "=");
	print_quoted(o->help);
	puts("'");
}

static void print_zsh(const struct shell *s)
{
	const struct tools_option *o;

	fputs("#compdef afscp\n"
	      "# zsh completion for afscp. Made by \"afscp completion zsh\".\n"
	      "_afscp() {\n"
	      "\tlocal cur=$words[CURRENT] command='' previous='' word places=0\n"
	      "\tlocal -a how options commands found\n"
	      "\tfor word in ${words[2,CURRENT-1]}; do\n"
	      "\t\tcase $previous in\n"
	      "\t\t(-s|--server|--cell|--keytab|--key-file|-x|--class|--level)\n"
	      "\t\t\t[[ -n $command && $previous == -[sx] ]] || how+=($previous $word) ;;\n"
	      "\t\tesac\n"
	      "\t\tcase $word in\n"
	      "\t\t(--server=*|--cell=*|--keytab=*|--key-file=*|--class=*|--level=*) how+=($word) ;;\n"
	      "\t\tesac\n"
	      "\t\tcase $previous in\n\t\t(",
	      stdout);
	print_with_values(s);
	fputs(") ;;\n"
	      "\t\t(-*) ;;\n"
	      "\t\t(*) if [[ -n $command ]]; then ((++places)); else command=$word; fi ;;\n"
	      "\t\tesac\n"
	      "\t\tprevious=$word\n"
	      "\tdone\n"
	      "\tif [[ $cur == -* ]]; then\n"
	      "\t\toptions=(\n",
	      stdout);
	for (size_t i = 0; (o = option_at(s, i)); i++)
		if (!o->commands)
			print_described(o);
	puts("\t\t)\n\t\tcase $command in");
	for (size_t k = 0; k < s->count; k++) {
		printf("\t\t(%s) options+=(\n", s->commands[k].name);
		for (size_t i = 0; (o = option_at(s, i)); i++)
			if (o->commands && takes_option(o, s->commands[k].name))
				print_described(o);
		puts("\t\t) ;;");
	}
	fputs("\t\tesac\n"
	      "\t\t_describe -o option options\n"
	      "\telif [[ -z $command ]]; then\n"
	      "\t\tcommands=(\n",
	      stdout);
	for (size_t i = 0; i < s->count; i++)
		printf("\t\t'%s:%s'\n", s->commands[i].name, s->commands[i].summary);
	fputs("\t\t)\n"
	      "\t\t_describe command commands\n"
	      "\telif [[ $cur == *:* || $cur == /afs/* ]]; then\n"
	      "\t\tfound=(${(f)\"$(afscp $how -q completion place ${(Q)cur} 2> /dev/null)\"})\n"
	      "\t\tcompadd -S '' -a found\n"
	      "\telif [[ $command == completion ]]; then\n"
	      "\t\tcompadd bash zsh fish\n"
	      "\telif [[ $command == acl ]] && ((places)); then\n"
	      "\t\t((places % 2)) || compadd read write all none\n"
	      "\telif [[ $command == lock ]] && ((places == 1)); then\n"
	      "\t\t_command_names\n"
	      "\telse\n"
	      "\t\t_files\n"
	      "\tfi\n"
	      "}\n"
	      "_afscp \"$@\"\n",
	      stdout);
}

static void print_fish(const struct shell *s)
{
	const struct tools_option *o;

	puts("# fish completion for afscp. Made by \"afscp completion fish\".");
	for (size_t i = 0; i < s->count; i++)
		printf("complete -c afscp -f -n __fish_use_subcommand -a %s -d '%s'\n",
		       s->commands[i].name, s->commands[i].summary);
	for (size_t i = 0; (o = option_at(s, i)); i++) {
		fputs("complete -c afscp", stdout);
		if (o->commands)
			printf(" -n '__fish_seen_subcommand_from %s'", o->commands);
		printf(" -l %s", o->name);
		if (o->letter)
			printf(" -s %c", o->letter);
		if (o->kind == TOOLS_CHOICE) {
			fputs(" -x -a '", stdout);
			for (const char *c = o->argument; *c; c++)
				putchar(*c == '|' ? ' ' : *c);
			putchar('\'');
		} else if (o->kind != TOOLS_FLAG) {
			fputs(" -r", stdout);
		}
		fputs(" -d '", stdout);
		for (const char *c = o->help; *c; c++)
			fputs(*c == '\'' ? "\\'" : (char[]){*c, 0}, stdout);
		puts("'");
	}
	puts("complete -c afscp -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'");
	puts("complete -c afscp -n 'not __fish_use_subcommand; and string match -qr \"^(/afs/|[^/]+:)\" -- (commandline -ct)' \\\n"
	     "\t-f -a '(afscp -q completion place (commandline -ct) 2> /dev/null)'");
}

int completion_print(const char *shell, const struct tools_program *program,
		     const struct completed_command *commands, size_t count)
{
	const struct shell s = {.program = program, .commands = commands, .count = count};

	if (strcmp(shell, "bash") == 0)
		print_bash(&s);
	else if (strcmp(shell, "zsh") == 0)
		print_zsh(&s);
	else if (strcmp(shell, "fish") == 0)
		print_fish(&s);
	else
		return -1;
	return 0;
}

/* ---- places ---- */

/* Whether a name leads to a directory: mount points are told only by their status. */
static bool is_directory_name(struct run *run, rxafs_object *directory,
			      const struct rxafs_name *name)
{
	struct rxafs_request request = session_request(run);
	struct rxafs_attributes a;
	int result = -1;

	return name->fid.vnode & 1 ||
	       (rxafs_fetch_attributes(directory, &request, name, 1, &a, &result) == 0 &&
		result == 0 && a.kind == RXAFS_DIRECTORY);
}

/* The names of a directory that begin as `base` does, with `head` before them. */
static void print_candidates(struct run *run, rxafs_object *directory, const char *head,
			     const char *base)
{
	struct rxafs_request request = session_request(run);
	size_t length = strlen(base);
	struct rxafs_names names;

	if (rxafs_list_names(directory, &request, &names) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.list[i].text;

		/* A line is a candidate. Names that begin with a dot are for those who ask for them. */
		if (session_is_unnamed(name) || strncmp(name, base, length) != 0 ||
		    strchr(name, '\n') || (name[0] == '.' && !length))
			continue;
		printf("%s%s%s\n", head, name,
		       is_directory_name(run, directory, &names.list[i]) ? "/" : "");
	}
	rxafs_free_names(&names);
}

int completion_places(struct run *run, const char *text)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, text);
	const char *slash, *base;
	rxafs_object *directory;
	struct place place;
	char *head, *path;

	if (!place_parse(run, text, &place))
		return 0;
	slash = strrchr(place.path, '/');
	base = slash ? slash + 1 : place.path;
	head = strndup(text, (size_t)(base - text));
	path = strndup(place.path, (size_t)(base - place.path));
	place.path = path ? path : "";
	t.silent = true;
	if (head && path && place_try(&t, &place, true, &directory, NULL) == COPY_GOOD) {
		print_candidates(run, directory, head, base);
		rxafs_release(directory);
	}
	free(head);
	free(path);
	return 0;
}
