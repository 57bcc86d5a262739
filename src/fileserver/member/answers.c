/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the protection service has said about users, machines and names. Each thing is asked by one question at a time, on threads of this
 * module, by turns of the callers who caused them; the calls that wait for it have no thread.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "fileserver/member/membership.h"

#define KNOWN_MAX   65536u	/* answers */
#define IDS_MAX	    (16u << 20) /* ids in all of them */
#define PENDING_MAX 4096u	/* questions */
#define THREADS	    16u		/* that ask */
#define NO_SUCH_S   30		/* how long it is believed that somebody does not exist */
#define NO_NAME_S   5		/* the same of a name for an ACL, which may have been made since */
#define OUTAGE_S    7200	/* how long an answer is used while no server answers */
#define AGAIN_S	    2		/* before a question that had no answer is repeated */

/* Something that was asked about. */
struct known {
	void *chain;
	struct known *newer, *older; /* by use */
	struct fsd_share *share;
	struct fsd_share_key caller; /* who asked first */
	enum member_kind kind;
	uint32_t number;	      /* of a machine or an id */
	char name[PROT_NAME_MAX + 1]; /* else */
	bool answered, asking;
	uint64_t since;	    /* of the answer, s */
	uint64_t failed;    /* when the last question had none, s */
	int64_t expires;    /* the latest token for which it was asked */
	uint64_t forgotten; /* the count of `forgets` when it was asked */
	struct member_answer answer;
	struct fsd_asker *askers;
	/* The question: */
	struct fsd_job job;
	struct fsd_share *place;
	struct member_answers *all;
};

struct member_answers {
	uint64_t fresh_s;
	uint64_t secret[2];
	_Atomic(struct member_database *) database; /* NULL: not yet */
	struct fsd_pool *pool;
	pthread_mutex_t lock;	/* covers the rest */
	pthread_cond_t no_more; /* `asked_now` is 0 */
	struct htable table;
	struct known *newest, *oldest;
	struct fsd_shares known, pending; /* of callers */
	size_t ids;
	uint64_t forgets;
	uint64_t asked, failed, refused;
	unsigned asked_now; /* questions whose job has not ended */
	bool stopped;
};

static uint64_t hash_known(const void *item, const uint64_t key[2])
{
	const struct known *known = item;
	uint64_t hash = rxw_siphash(known->name, strlen(known->name), key);

	return hash ^ ((uint64_t)known->kind << 32 | known->number) * 0x9e3779b97f4a7c15u;
}

struct member_answers *member_answers_create(uint64_t fresh_s)
{
	struct member_answers *answers = calloc(1, sizeof(*answers));

	if (!answers)
		return NULL;
	pthread_mutex_init(&answers->lock, NULL);
	pthread_cond_init(&answers->no_more, NULL);
	answers->fresh_s = fresh_s ? fresh_s : FSD_MEMBER_FRESH;
	answers->pool = fsd_pool_create(THREADS, THREADS, sizeof(struct fsd_pool_caller));
	if (answers->pool && rxw_random(answers->secret, sizeof(answers->secret)) == 0 &&
	    htable_init(&answers->table, offsetof(struct known, chain), hash_known, answers->secret,
			0) &&
	    fsd_shares_init(&answers->known, sizeof(struct fsd_share), answers->secret) &&
	    fsd_shares_init(&answers->pending, sizeof(struct fsd_share), answers->secret))
		return answers;
	member_answers_destroy(answers);
	return NULL;
}

/* -- the table; lock held -- */

static void unlink_use(struct member_answers *answers, struct known *known)
{
	*(known->newer ? &known->newer->older : &answers->newest) = known->older;
	*(known->older ? &known->older->newer : &answers->oldest) = known->newer;
	known->newer = known->older = NULL;
}

static void link_use(struct member_answers *answers, struct known *known)
{
	known->older = answers->newest;
	known->newer = NULL;
	*(known->older ? &known->older->newer : &answers->oldest) = known;
	answers->newest = known;
}

static void forget_answer(struct member_answers *answers, struct known *known)
{
	assert(!known->asking && !known->askers);
	htable_remove(&answers->table, known);
	unlink_use(answers, known);
	fsd_share_give(&answers->known, known->share);
	answers->ids -= known->answer.count;
	free(known->answer.ids);
	free(known);
}

/* Those that were not used for longest make room. */
static void drop_oldest_answers(struct member_answers *answers, size_t entries, size_t ids)
{
	struct known *known = answers->oldest, *newer;

	for (; known && (answers->table.count > entries || answers->ids > ids); known = newer) {
		newer = known->newer;
		if (!known->asking)
			forget_answer(answers, known);
	}
}

static struct known *find_known(struct member_answers *answers, const struct known *like,
				uint64_t hash)
{
	struct known *known = htable_first(&answers->table, hash);

	while (known && (known->kind != like->kind || known->number != like->number ||
			 strcmp(known->name, like->name) != 0))
		known = known->chain;
	return known;
}

/* NULL: the caller has its share, or there is no memory. */
static struct known *add_known(struct member_answers *answers, const struct known *like,
			       const struct fsd_share_key *caller, uint64_t hash)
{
	struct known *known;
	struct fsd_share *share;

	drop_oldest_answers(answers, KNOWN_MAX / 8 * 7, SIZE_MAX);
	share = fsd_share_take(&answers->known, caller, KNOWN_MAX);
	known = share ? malloc(sizeof(*known)) : NULL;
	if (!known) {
		if (share)
			fsd_share_give(&answers->known, share);
		return NULL;
	}
	*known = *like;
	known->share = share;
	known->caller = *caller;
	known->all = answers;
	htable_add_hashed(&answers->table, known, hash);
	link_use(answers, known);
	return known;
}

void member_answers_destroy(struct member_answers *answers)
{
	if (!answers)
		return;
	fsd_pool_destroy(answers->pool);
	drop_oldest_answers(answers, 0, 0);
	assert(!answers->table.count && !answers->ids);
	htable_fini(&answers->table, NULL);
	fsd_shares_fini(&answers->known);
	fsd_shares_fini(&answers->pending);
	pthread_cond_destroy(&answers->no_more);
	pthread_mutex_destroy(&answers->lock);
	free(answers);
}

/* -- questions -- */

/* Lock held. */
static void keep_answer(struct member_answers *answers, struct known *known, int rc,
			struct member_answer *answer)
{
	if (rc) {
		known->failed = fsd_now();
		answers->failed++;
		return;
	}
	answers->ids += answer->count - known->answer.count;
	free(known->answer.ids);
	known->answer = *answer;
	known->answered = true;
	known->failed = 0;
	known->since = fsd_now();
	drop_oldest_answers(answers, SIZE_MAX, IDS_MAX);
}

static void ask_question(struct fsd_job *job)
{
	struct known *known = (struct known *)(void *)((char *)job - offsetof(struct known, job));
	struct member_answers *answers = known->all;
	struct fsd_pool_caller *caller = job->caller;
	struct fsd_asker *askers, *next;
	struct member_answer answer;
	int rc = member_question(atomic_load(&answers->database), known->kind, known->name,
				 known->number, &answer);

	pthread_mutex_lock(&answers->lock);
	assert(known->asking);
	askers = known->askers;
	known->askers = NULL;
	fsd_share_give(&answers->pending, known->place);
	keep_answer(answers, known, rc, &answer);
	known->asking = false;
	pthread_mutex_unlock(&answers->lock);
	for (; askers; askers = next) {
		next = askers->next;
		fsd_asker_end(askers);
	}
	fsd_pool_leave(answers->pool, caller);
	pthread_mutex_lock(&answers->lock);
	if (!--answers->asked_now)
		pthread_cond_broadcast(&answers->no_more);
	pthread_mutex_unlock(&answers->lock);
}

/* Lock held. False: too much is being asked. */
static bool pose_question(struct member_answers *answers, struct known *known, int64_t expires)
{
	struct fsd_pool_caller *caller;

	assert(!known->asking);
	known->place = fsd_share_take(&answers->pending, &known->caller, PENDING_MAX);
	if (!known->place)
		return false;
	caller = fsd_pool_enter(answers->pool, &known->caller);
	if (!caller) {
		fsd_share_give(&answers->pending, known->place);
		return false;
	}
	if (expires > known->expires)
		known->expires = expires;
	known->asking = true;
	known->forgotten = answers->forgets;
	answers->asked++;
	answers->asked_now++;
	known->job = (struct fsd_job){.caller = caller, .run = ask_question};
	fsd_pool_post(answers->pool, &known->job);
	return true;
}

/* Lock held: the asker waits for a question. -EAGAIN, or -EBUSY. */
static int wait_as_asker(struct member_answers *answers, struct known *known, int64_t expires,
			 struct fsd_asker *asker)
{
	if (!known->asking && !pose_question(answers, known, expires)) {
		answers->refused++;
		return asker->waits ? -EAGAIN : -EBUSY;
	}
	if (!asker->waits) {
		asker->waits = true;
		atomic_fetch_add(&asker->holds, 1);
		asker->next = known->askers;
		known->askers = asker;
	}
	return -EAGAIN;
}

/* -- answers -- */

/* How long an answer is used without asking. */
static uint64_t answer_lifetime(const struct member_answers *answers, const struct known *known)
{
	uint64_t shorter = known->kind == MEMBER_ID ? NO_NAME_S : NO_SUCH_S;

	if (known->answer.id || known->kind == MEMBER_MACHINE || answers->fresh_s < shorter)
		return answers->fresh_s;
	return shorter;
}

/* What to do with the answer that is there. */
enum use {
	USE,	     /* as it is */
	USE_AND_ASK, /* it gets old */
	USE_IN_NEED, /* if nobody can be asked */
	USELESS
};

static enum use judge_known(const struct member_answers *answers, const struct known *known,
			    int64_t expires)
{
	uint64_t age, life;

	if (!known || !known->answered)
		return USELESS;
	age = fsd_now() - known->since;
	life = answer_lifetime(answers, known);
	/* Who logs in again wants the groups of now. */
	if (known->forgotten != answers->forgets || (expires > known->expires && age >= AGAIN_S) ||
	    age >= 2 * life)
		return age < OUTAGE_S ? USE_IN_NEED : USELESS;
	return age < life ? USE : USE_AND_ASK;
}

/* Lock held. 0: known->answer is to be used. */
static int look_up(struct member_answers *answers, const struct known *like, int64_t expires,
		   struct fsd_asker *asker, struct known **out)
{
	uint64_t hash = hash_known(like, answers->secret);
	struct known *known = find_known(answers, like, hash);
	struct member_database *database = atomic_load(&answers->database);
	enum use use = judge_known(answers, known, expires);
	bool nobody = answers->stopped || !database || member_database_dead(database);

	*out = known;
	if (known && answers->newest != known) {
		unlink_use(answers, known);
		link_use(answers, known);
	}
	if (use == USE_AND_ASK && !nobody && !known->asking && fsd_now() >= known->failed + AGAIN_S)
		pose_question(answers, known, expires);
	if (use <= USE_AND_ASK)
		return 0;
	if (nobody || (asker && asker->final) ||
	    (known && !known->asking && known->failed && fsd_now() < known->failed + AGAIN_S))
		return use == USE_IN_NEED ? 0 : -EBUSY;
	if (!asker)
		return -EAGAIN;
	if (!known)
		known = add_known(answers, like, &asker->caller, hash);
	if (!known) {
		answers->refused++;
		return asker->waits ? -EAGAIN : -EBUSY;
	}
	return wait_as_asker(answers, known, expires, asker);
}

/* Lock held. */
static void copy_ids(const struct known *known, struct fsd_ids *ids)
{
	size_t n = known->answer.count < ids->room ? known->answer.count : ids->room;

	ids->id = known->answer.id;
	ids->count = known->answer.count;
	if (n)
		memcpy(ids->ids, known->answer.ids, n * sizeof(*ids->ids));
}

int member_find_user(struct member_answers *answers, const char *name, int64_t expires,
		     struct fsd_asker *asker, struct fsd_ids *ids)
{
	struct known like = {.kind = MEMBER_USER}, *known;
	int rc;

	strncpy(like.name, name, sizeof(like.name) - 1);
	pthread_mutex_lock(&answers->lock);
	rc = look_up(answers, &like, expires, asker, &known);
	if (!rc && known->answer.id)
		copy_ids(known, ids);
	else if (!rc)
		rc = -ENOENT;
	pthread_mutex_unlock(&answers->lock);
	return rc;
}

int member_find_machine(struct member_answers *answers, uint32_t address, struct fsd_asker *asker,
			struct fsd_ids *ids)
{
	struct known like = {.kind = MEMBER_MACHINE, .number = address}, *known;
	int rc;

	pthread_mutex_lock(&answers->lock);
	rc = look_up(answers, &like, 0, asker, &known);
	if (!rc)
		copy_ids(known, ids);
	pthread_mutex_unlock(&answers->lock);
	return rc;
}

int member_find_id(struct member_answers *answers, const char *name, struct fsd_asker *asker,
		   int32_t *id)
{
	struct known like = {.kind = MEMBER_ID}, *known;
	int rc;

	if (strlen(name) >= sizeof(like.name))
		return -ENOENT;
	strcpy(like.name, name);
	pthread_mutex_lock(&answers->lock);
	rc = look_up(answers, &like, 0, asker, &known);
	if (!rc && known->answer.id)
		*id = known->answer.id;
	else if (!rc)
		rc = -ENOENT;
	pthread_mutex_unlock(&answers->lock);
	return rc;
}

int member_find_name(struct member_answers *answers, int32_t id, struct fsd_asker *asker,
		     char name[FSD_PERSON_MAX + 1])
{
	struct known like = {.kind = MEMBER_NAME, .number = (uint32_t)id}, *known;
	int rc;

	pthread_mutex_lock(&answers->lock);
	rc = look_up(answers, &like, 0, asker, &known);
	if (!rc && known->answer.id)
		memcpy(name, known->answer.name, FSD_PERSON_MAX + 1);
	else if (!rc)
		rc = -ENOENT;
	pthread_mutex_unlock(&answers->lock);
	return rc;
}

/* -- beginning and end -- */

void member_answers_start(struct member_answers *answers, struct member_database *database)
{
	assert(database);
	atomic_store(&answers->database, database);
}

void member_answers_stop(struct member_answers *answers)
{
	pthread_mutex_lock(&answers->lock);
	answers->stopped = true;
	while (answers->asked_now)
		pthread_cond_wait(&answers->no_more, &answers->lock);
	pthread_mutex_unlock(&answers->lock);
}

void member_answers_forget(struct member_answers *answers)
{
	pthread_mutex_lock(&answers->lock);
	answers->forgets++;
	pthread_mutex_unlock(&answers->lock);
}

void member_answers_count(struct member_answers *answers, struct fsd_member_counts *counts)
{
	pthread_mutex_lock(&answers->lock);
	counts->known = answers->table.count;
	counts->asked = answers->asked;
	counts->failed = answers->failed;
	counts->refused = answers->refused;
	pthread_mutex_unlock(&answers->lock);
}
