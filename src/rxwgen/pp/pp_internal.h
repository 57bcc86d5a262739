/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal interfaces of the preprocessor. Input is a stack of frames; the top one is read. */
#ifndef RXWGEN_PP_INTERNAL_H
#define RXWGEN_PP_INTERNAL_H

#include "rxwgen/pp/pp.h"

#define INCLUDE_DEPTH  32
#define EXPANSION_MAX  (1u << 20)  /* bytes, of one use of a macro */
#define EXPANSION_ALL  (64u << 20) /* bytes, of all uses */
#define ARGUMENT_DEPTH 64	   /* uses of macros in arguments of macros */
#define PARAMETERS_MAX 120	   /* of a macro */

enum frame_kind {
	FRAME_FILE,
	FRAME_LINE, /* the expression of #if, or a % line; reading stops at its end */
	FRAME_MACRO,
	FRAME_ARGUMENT /* an argument of a macro; reading stops at its end */
};

struct frame {
	enum frame_kind kind;
	const char *text;
	uint32_t at, end; /* in text */
	struct source *source;
	uint32_t base; /* file and line: offset of text[0] in the source */
	struct macro *macro;
	struct loc use; /* macro and argument: position of the outermost use */
	/* File only. */
	bool line_start;     /* only blanks and comments since the last LF */
	bool separate;	     /* -i: an .xg file that is compiled separately, or included by one */
	unsigned conditions; /* number of open conditions when the file was entered */
	bool begun;	     /* something other than comments was read */
	size_t header_line;  /* the line after the comments at the top of the file */
};

/* An #if without its #endif so far. */
struct condition {
	struct loc loc;
	bool active; /* the current branch is compiled */
	bool done;   /* a branch was compiled, or the whole #if is skipped */
	bool outer;  /* the surrounding text is compiled */
	bool had_else;
};

/* A comment between two tokens. */
struct comment {
	const struct source *source;
	uint32_t start, end;	      /* including the delimiters */
	size_t first_line, last_line; /* from 0 */
};

struct pp {
	struct arena *arena;
	struct diag *diag;
	struct names *names;
	const struct xg_options *options;

	struct frame *frames;
	size_t depth, frame_room;
	unsigned files;			 /* number of file frames */
	uint64_t expanded, expanded_all; /* bytes, by the outermost macro and by all macros */
	uint64_t entered;		 /* bytes of entered files */
	unsigned argument_depth;	 /* frames of arguments */

	struct condition *conditions;
	size_t condition_count, condition_room;

	struct source *sources; /* all loaded files */
	const char **inputs;
	size_t input_count, input_room;

	/* Comments since the last token, and the position of that token. */
	struct comment before, after;
	const struct source *last_source;
	size_t last_line;

	bool in_condition; /* reading the expression of #if */
	bool line_comment; /* a comment of a % line continues in the next % line */

	char *line; /* the current directive */
	size_t line_room;
};

/* lex.c */
struct frame *pp_top(struct pp *pp);
struct loc pp_loc(struct pp *pp, uint32_t at); /* of text[at] in the top frame */
struct frame *pp_push(struct pp *pp);
struct source *pp_load(struct pp *pp, const char *path); /* NULL with errno */
void pp_enter(struct pp *pp, struct source *source, bool separate);
/* Skip the comment at the current position of a file frame; reports an unterminated one. */
void pp_skip_comment(struct pp *pp, struct frame *f);
bool lex_is_name_start(char c);
bool lex_is_name(char c);
/*
 * Read a token of the top frame, which is not at a blank, a comment or its end. False if there is
 * no valid token, which has been reported.
 */
bool lex_scan(struct pp *pp, struct token *token);
/* The value of a number; false if it is malformed. *large: it does not fit. */
bool lex_number(const char *text, size_t length, int64_t *value, bool *large);
/* *next is the offset after the comment at text[at], at most `end`; false if unterminated. */
bool lex_comment(const char *text, uint32_t at, uint32_t end, uint32_t *next);

/* macro.c */
/* Define `macro`, whose name, position and parameters are set, with its text. */
void macro_define(struct pp *pp, struct name *name, struct macro *macro, const char *text,
		  size_t length);
/* Expand the name that was just read; false if it is not a use of a macro. */
bool macro_use(struct pp *pp, const struct name *name, struct loc loc);
void macro_leave(struct pp *pp); /* pop the frame of a macro */
/*
 * The expansion of the frame on top, which reading does not leave; NUL-terminated. Pops the frame.
 */
const char *macro_expand(struct pp *pp, size_t *length);
/* A % line with its macros expanded. */
const char *macro_line(struct pp *pp, uint32_t at, uint32_t end);
/* Record the value of a line `%#define NAME number`. */
void macro_note_define(struct pp *pp, const char *text, size_t length, bool skipped);

/* directive.c */
/* Handle the directive at '#' of the top frame, a file. True: *token is a TOKEN_HEADER. */
bool directive_read(struct pp *pp, struct token *token);
/* Skip to the directive that ends the excluded text. */
void directive_skip(struct pp *pp);
bool pp_reading(const struct pp *pp);

#endif
