/* SPDX-License-Identifier: BSD-2-Clause */
/* The preprocessor: from files to tokens. Its parts see its inside in pp_internal.h. */
#ifndef RXGEN_PP_H
#define RXGEN_PP_H

#include "rxgen/text/diag.h"
#include "rxgen/text/token.h"

struct pp;

/* Reads `path` for one output; a file that cannot be read leaves by diag->stop. */
struct pp *pp_new(struct arena *arena, struct diag *diag, struct names *names, const char *path,
		  const struct xg_options *options, enum xg_output output);
/* The next token of the language; TOKEN_END again and again when there is none left. */
void pp_next(struct pp *pp, struct token *token);
/* Files read so far, the main one first. */
const char **pp_inputs(struct pp *pp, size_t *count);

#endif
