/* SPDX-License-Identifier: BSD-2-Clause */
/* The preprocessor: from files to tokens. Internal interfaces are in pp_internal.h. */
#ifndef RXWGEN_PP_H
#define RXWGEN_PP_H

#include "rxwgen/text/token.h"

struct pp;

/* Open `path` for one output. If it cannot be read, the error is fatal. */
struct pp *pp_new(struct arena *arena, struct diag *diag, struct names *names, const char *path,
		  const struct xg_options *options, enum xg_output output);
/* The next token of the language; TOKEN_END repeatedly at the end. */
void pp_next(struct pp *pp, struct token *token);
/* Files read so far, the main file first. */
const char **pp_inputs(struct pp *pp, size_t *count);

#endif
