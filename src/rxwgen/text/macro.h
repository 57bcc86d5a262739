/* SPDX-License-Identifier: BSD-2-Clause */
/* Macros of the preprocessor. */
#ifndef RXWGEN_MACRO_H
#define RXWGEN_MACRO_H

#include "rxwgen/text/name.h"

struct macro {
	const struct name *name;
	struct loc loc;		    /* of its definition */
	const struct name **params; /* of a macro with parameters, else NULL */
	size_t param_count;
	const char *text; /* without comments, leading and trailing blanks */
	uint32_t length;
	bool active; /* being expanded; not expanded again within itself */
};

#endif
