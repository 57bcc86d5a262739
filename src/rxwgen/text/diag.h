/* SPDX-License-Identifier: BSD-2-Clause */
/* Diagnostics: position, text, the source line and a caret below it. */
#ifndef RXWGEN_DIAG_H
#define RXWGEN_DIAG_H

#include "rxwgen/text/source.h"

/* The run stops after this number of errors. */
#define DIAG_ERRORS 20
/* Maximum number of warnings printed. */
#define DIAG_WARNINGS 100

struct diag {
	FILE *out;
	struct xg_printed *printed; /* warnings of earlier passes, or NULL */
	unsigned errors, warnings;
	bool quiet; /* the last message was suppressed, and so are its notes */
	jmp_buf *stop;
};

/*
 * Print "FILE:LINE:COLUMN: error: text". Without a source the message concerns the command line.
 * Jumps to diag->stop after DIAG_ERRORS errors.
 */
void diag_error(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void diag_warning(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A note on the previous message. */
void diag_note(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A fatal error: jumps to diag->stop. */
_Noreturn void diag_fatal(struct diag *diag, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, without a position: "what: why". */
_Noreturn void diag_fatal_file(struct diag *diag, const char *what, const char *why);

#endif
