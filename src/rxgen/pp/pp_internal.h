/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the preprocessor: a stack of texts being read, the top one first. */
#ifndef RXGEN_PP_INTERNAL_H
#define RXGEN_PP_INTERNAL_H

#include "rxgen/text/macro.h"
#include "rxgen/pp/pp.h"

#define INCLUDE_DEPTH	32
#define EXPANSION_MAX	(1u << 20) /* bytes that the use of one macro may turn into */
#define EXPANSION_ALL	(64u << 20)
#define CONDITION_DEPTH 64 /* of parentheses and '!' */

enum frame_kind {
	FRAME_FILE,
	FRAME_LINE, /* what stands behind #if, or a % line: never read beyond it */
	FRAME_MACRO
};

struct frame {
	enum frame_kind kind;
	const char *text;
	uint32_t at, end; /* in text */
	struct source *source;
	uint32_t base; /* file and line: offset of text[0] in the source */
	struct macro *macro;
	struct loc use; /* macro: where its name stands, outside all macros */
	/* File only. */
	bool line_start;     /* only blanks and comments since the last LF */
	bool by_itself;	     /* an .xg that -i leaves to another run, or inside one */
	unsigned conditions; /* open when it began */
	bool begun;	     /* something but comments was read */
	size_t header_line;  /* behind the comments that the file begins with */
};

/* One #if that has not met its #endif. */
struct condition {
	struct loc loc;
	bool active; /* this branch is read */
	bool done;   /* a branch was read, or the #if itself is skipped: no other will be */
	bool outer;  /* what surrounds it is read */
	bool had_else;
};

/* A comment between two tokens. */
struct comment {
	const struct source *source;
	uint32_t start, end;	      /* with its marks */
	size_t first_line, last_line; /* from 0 */
};

struct pp {
	struct arena *arena;
	struct diag *diag;
	struct names *names;
	const struct xg_options *options;

	struct frame *frames;
	size_t depth, frame_room;
	unsigned files;			 /* frames of files */
	uint64_t expanded, expanded_all; /* bytes: by the macro in use, by all */
	uint64_t entered;		 /* bytes of files */

	struct condition *conditions;
	size_t condition_count, condition_room;

	struct source *sources; /* all that were loaded */
	const char **inputs;
	size_t input_count, input_room;

	/* Comments since the last token, and where that was. */
	struct comment before, behind;
	const struct source *last_source;
	size_t last_line;

	bool in_condition; /* reading what stands behind #if */
	bool line_comment; /* a % line began a comment that a further one goes on with */

	char *line; /* of a directive */
	size_t line_room;
};

struct frame *pp_top(struct pp *pp);
struct loc pp_loc(struct pp *pp, uint32_t at); /* of text[at] in the top frame */
struct frame *pp_push(struct pp *pp);

/* lex.c */
bool lex_is_name_start(char c);
bool lex_is_name(char c);
/*
 * One token of the top frame, which does not stand at a blank, a comment or its end. False if it
 * was none; that has been reported.
 */
bool lex_scan(struct pp *pp, struct token *token);
/* The value of digits; false if it is not written as a number, *large if it does not fit. */
bool lex_number(const char *text, size_t length, int64_t *value, bool *large);
/* Behind the comment that begins at text[at], at most `end`; false if it does not end. */
bool lex_comment(const char *text, uint32_t at, uint32_t end, uint32_t *behind);

/* macro.c */
void macro_define(struct pp *pp, struct name *name, struct loc loc, const char *text,
		  size_t length);
/* Replace a name that was just read; false if it is to stay. */
bool macro_use(struct pp *pp, const struct name *name, struct loc loc);
void macro_leave(struct pp *pp); /* pop the frame of a macro */
/* A % line with its macros replaced. */
const char *macro_line(struct pp *pp, uint32_t at, uint32_t end);
void macro_note_define(struct pp *pp, const char *text, size_t length, bool skipped);

/* condition.c: the value of the line text[at..end) of the top frame. */
bool condition_value(struct pp *pp, const char *text, uint32_t end, uint32_t base);

/* directive.c */
/* The line that begins at '#' in the top frame, which is a file. True: *token is a TOKEN_HEADER. */
bool directive_read(struct pp *pp, struct token *token);
/* Read to the directive that ends what is not read. */
void directive_skip(struct pp *pp);
bool pp_reading(const struct pp *pp);

/* pp.c */
struct source *pp_load(struct pp *pp, const char *path); /* NULL with errno */
void pp_enter(struct pp *pp, struct source *source, bool by_itself);
/* Skip the comment at `at` of a file's frame, which may be unfinished. */
void pp_skip_comment(struct pp *pp, struct frame *f);

#endif
