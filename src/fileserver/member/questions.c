/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls to a protection server, and checks of its answers. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "afs/pt.h"
#include "fileserver/member/membership.h"

/* One call. */
struct name_call {
	const char *name;
	int32_t id;
};
struct list_call {
	int32_t id; /* a user, or with `host` an address */
	bool host;
	prlist list;
	int32_t over;
};
struct id_call {
	int32_t id;
	prname name;
};

static int32_t ask_id(rxw_call *call, void *arg)
{
	struct name_call *asked = arg;
	prname name = {0};
	const namelist names = {.len = 1, .val = &name};
	idlist ids = {0};
	int32_t code;

	assert(strlen(asked->name) < sizeof(name));
	strcpy(name, asked->name);
	code = StartPR_NameToID(call, &names);
	if (!code)
		code = EndPR_NameToID(call, &ids);
	if (!code && ids.len != 1)
		code = RXW_RPC_DECODE;
	if (!code)
		asked->id = ids.val[0];
	xdrfree_idlist(&ids);
	return code;
}

int32_t member_ask_anonymous(rxw_call *call, void *arg)
{
	struct name_call asked = {.name = "anonymous"};

	(void)arg;
	return ask_id(call, &asked);
}

/* A server that is asked again starts with an empty list. */
static int32_t ask_list(rxw_call *call, void *arg)
{
	struct list_call *asked = arg;
	int32_t code =
		asked->host ? StartPR_GetHostCPS(call, asked->id) : StartPR_GetCPS(call, asked->id);

	xdrfree_prlist(&asked->list);
	asked->list = (prlist){0};
	if (code)
		return code;
	return asked->host ? EndPR_GetHostCPS(call, &asked->list, &asked->over)
			   : EndPR_GetCPS(call, &asked->list, &asked->over);
}

static int32_t ask_name(rxw_call *call, void *arg)
{
	struct id_call *asked = arg;
	const idlist ids = {.len = 1, .val = &asked->id};
	namelist names = {0};
	int32_t code = StartPR_IDToName(call, &ids);

	if (!code)
		code = EndPR_IDToName(call, &names);
	if (!code && names.len != 1)
		code = RXW_RPC_DECODE;
	if (!code)
		memcpy(asked->name, names.val[0], sizeof(asked->name));
	xdrfree_namelist(&names);
	return code;
}

/* -- answers -- */

static int order_ids(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

/* Ascending, each once. A machine is never an administrator. */
static void sort_answer_ids(struct member_answer *answer, bool host)
{
	size_t kept = 0;

	qsort(answer->ids, answer->count, sizeof(*answer->ids), order_ids);
	for (size_t i = 0; i < answer->count; i++)
		if ((!kept || answer->ids[kept - 1] != answer->ids[i]) &&
		    !(host && answer->ids[i] == PROT_ADMINISTRATORS))
			answer->ids[kept++] = answer->ids[i];
	answer->count = kept;
}

/* Groups that are missing could have negative rights, so an incomplete list is none. */
static int take_list(const struct list_call *asked, struct member_answer *answer)
{
	const int32_t own[] = {asked->id, PROT_ANYUSER, PROT_AUTHUSER};
	size_t more = asked->host ? 0 : sizeof(own) / sizeof(own[0]);

	if (asked->over || asked->list.len > MEMBER_IDS_MAX)
		return -EBUSY;
	answer->ids = malloc((asked->list.len + more + 1) * sizeof(*answer->ids));
	if (!answer->ids)
		return -EBUSY;
	if (asked->list.len)
		memcpy(answer->ids, asked->list.val, asked->list.len * sizeof(*answer->ids));
	memcpy(answer->ids + asked->list.len, own, more * sizeof(*own));
	answer->count = asked->list.len + more;
	sort_answer_ids(answer, asked->host);
	return 0;
}

static void log_useless(const char *what, int32_t code)
{
	static struct fsd_log_limit limit;
	unsigned left_out;

	if (fsd_log_permits(&limit, monotonic_ns(), 4, &left_out))
		fsd_log(RXW_LOG_WARNING, "a protection server does not say %s: %s", what,
			code ? rxw_code_text(code) : "the list is too long");
}

static int question_groups(struct member_database *database, int32_t id, bool host,
			   struct member_answer *answer)
{
	struct list_call asked = {.id = id, .host = host};
	int32_t code = member_database_ask(database, ask_list, &asked);
	int rc = -EBUSY;

	if (!code)
		rc = take_list(&asked, answer);
	else if (code == AFS_PT_NOENT)
		rc = 0;
	xdrfree_prlist(&asked.list);
	if (!rc && !code)
		answer->id = id;
	if (rc && code != MEMBER_NOBODY)
		log_useless("in which groups a user or a machine is", code);
	return rc;
}

/* id 0: there is no such name. */
static int question_id(struct member_database *database, const char *name, int32_t *id)
{
	struct name_call asked = {.name = name};
	int32_t code = member_database_ask(database, ask_id, &asked);

	if (code) {
		if (code != MEMBER_NOBODY)
			log_useless("which id a name has", code);
		return -EBUSY;
	}
	*id = asked.id == PROT_ANONYMOUS ? 0 : asked.id;
	return 0;
}

static int question_user(struct member_database *database, const char *name,
			 struct member_answer *answer)
{
	int32_t id = 0;
	int rc = question_id(database, name, &id);

	return rc || id <= 0 ? rc : question_groups(database, id, false, answer);
}

/* The text of an ACL has names between blanks and ends of lines; a number stands for an id without a name. */
static bool is_usable_name(const char *name)
{
	if (!*name || strspn(name, "-0123456789") == strlen(name))
		return false;
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f)
			return false;
	return true;
}

static int question_name(struct member_database *database, int32_t id, struct member_answer *answer)
{
	struct id_call asked = {.id = id};
	int32_t code = member_database_ask(database, ask_name, &asked);

	if (code) {
		if (code != MEMBER_NOBODY)
			log_useless("which name an id has", code);
		return -EBUSY;
	}
	asked.name[sizeof(asked.name) - 1] = 0;
	if (!is_usable_name(asked.name))
		return 0;
	answer->id = id;
	strcpy(answer->name, asked.name);
	return 0;
}

int member_question(struct member_database *database, enum member_kind kind, const char *name,
		    uint32_t number, struct member_answer *answer)
{
	*answer = (struct member_answer){0};
	switch (kind) {
	case MEMBER_USER:
		return question_user(database, name, answer);
	case MEMBER_MACHINE:
		return question_groups(database, (int32_t)number, true, answer);
	case MEMBER_ID:
		return question_id(database, name, &answer->id);
	case MEMBER_NAME:
		return question_name(database, (int32_t)number, answer);
	}
	return -EBUSY;
}
