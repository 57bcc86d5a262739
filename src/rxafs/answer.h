/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files share that answer rxafsctl. */
#ifndef RXAFS_ANSWER_H
#define RXAFS_ANSWER_H

#include <jansson.h>

#include "rxafs/control.h"
#include "rxafs/task.h"
#include "rxafs/users/members.h"

#define WORDS_MOST 16

/* A request that is served. */
struct asked {
	struct task *task;
	rxafs_object *object, *named; /* named: a reference, or NULL */
	const char *words[WORDS_MOST];
	unsigned count;
	const struct control *from;
	json_t *answer;
};

static inline const char *word_of(const struct asked *a, unsigned n)
{
	return n < a->count ? a->words[n] : "";
}

/* control.c: why it fails, in the words of whoever asked. Returns `result`. */
int refuse_asked(struct asked *a, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* login.c */
int answer_tickets(struct asked *a);
int answer_login(struct asked *a);
int answer_logout(struct asked *a);
int answer_tokens(struct asked *a);
int answer_session(struct asked *a);

#endif
