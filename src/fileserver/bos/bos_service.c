/* SPDX-License-Identifier: BSD-2-Clause */
/* The overseer's calls that report. Those that control servers or show files are refused: the service manager has these tasks. */
#include "fileserver/bos/bos.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rxwire/error.h>

#include "afs/bosint.h"
#include "afs/numbers.h"

#define INSTANCES_MAX 3

/* `type` as OpenAFS's overseer has it; `running` and `stopping` are texts of these states. */
struct bos_instance {
	const char *name, *type, *running, *stopping;
};

/* Constant but for `stopping`. */
struct fsd_bos {
	struct bos_instance instances[INSTANCES_MAX];
	int32_t count;
	int32_t started;
	_Atomic bool stopping;
};

static void add_instance(struct fsd_bos *bos, const struct bos_instance *instance)
{
	assert(bos->count < INSTANCES_MAX);
	bos->instances[bos->count++] = *instance;
}

struct fsd_bos *fsd_bos_create(bool vlserver, bool ptserver)
{
	struct fsd_bos *bos = calloc(1, sizeof(*bos));

	if (!bos)
		return NULL;
	add_instance(bos, &(struct bos_instance){"fs", "fs", "file server running",
						 "file server shutting down"});
	if (vlserver)
		add_instance(bos, &(struct bos_instance){"vlserver", "simple", "", ""});
	if (ptserver)
		add_instance(bos, &(struct bos_instance){"ptserver", "simple", "", ""});
	bos->started = (int32_t)time(NULL);
	return bos;
}

void fsd_bos_stop(struct fsd_bos *bos)
{
	atomic_store_explicit(&bos->stopping, true, memory_order_relaxed);
}

void fsd_bos_destroy(struct fsd_bos *bos)
{
	free(bos);
}

static bool is_stopping(const struct fsd_bos *bos)
{
	return atomic_load_explicit(&bos->stopping, memory_order_relaxed);
}

static const struct bos_instance *find_instance(const struct fsd_bos *bos, const char *name)
{
	assert(bos->count > 0);
	for (int32_t i = 0; i < bos->count; i++)
		if (strcmp(bos->instances[i].name, name) == 0)
			return &bos->instances[i];
	return NULL;
}

/* A text of a reply, which the stub frees. */
static int32_t reply_text(const char *text, char **reply)
{
	assert(strlen(text) < BOZO_TEXT_MAX);
	*reply = strdup(text);
	return *reply ? 0 : RXW_RPC_SS_MARSHAL;
}

static int32_t enumerate_instance(void *context, rxw_call *call, int32_t number, char **instance)
{
	const struct fsd_bos *bos = context;

	(void)call;
	if (number < 0 || number >= bos->count)
		return AFS_BOS_DOMAIN;
	return reply_text(bos->instances[number].name, instance);
}

static int32_t get_instance_info(void *context, rxw_call *call, const char *name, char **type,
				 bozo_status *status)
{
	const struct fsd_bos *bos = context;
	const struct bos_instance *instance = find_instance(bos, name);

	(void)call;
	if (!instance)
		return AFS_BOS_NOENT;
	/* The service manager, not this process, knows of earlier processes and how they ended. */
	*status = (bozo_status){
		.goal = is_stopping(bos) ? BOZO_STOPPED : BOZO_RUNNING,
		.fileGoal = BOZO_RUNNING,
		.procStartTime = bos->started,
		.procStarts = 1,
	};
	return reply_text(instance->type, type);
}

static int32_t get_bos_status(void *context, rxw_call *call, const char *name, int32_t *state,
			      char **text)
{
	const struct fsd_bos *bos = context;
	const struct bos_instance *instance = find_instance(bos, name);
	bool stopping = is_stopping(bos);

	(void)call;
	if (!instance)
		return AFS_BOS_NOENT;
	*state = stopping ? BOZO_STOPPING : BOZO_RUNNING;
	return reply_text(stopping ? instance->stopping : instance->running, text);
}

/* The command, without its arguments. Nothing is told of exits. */
static int32_t get_instance_parm(void *context, rxw_call *call, const char *name, int32_t number,
				 char **parm)
{
	(void)call;
	if (!find_instance(context, name) || number == BOZO_NOTIFIER)
		return AFS_BOS_NOENT;
	return number ? AFS_BOS_DOMAIN : reply_text("rxfsd", parm);
}

static int32_t get_instance_strings(void *context, rxw_call *call, const char *name, char **error,
				    char **spare1, char **spare2, char **spare3)
{
	(void)call;
	if (!find_instance(context, name))
		return AFS_BOS_NOENT;
	return reply_text("", error) || reply_text("", spare1) || reply_text("", spare2) ||
			       reply_text("", spare3)
		       ? RXW_RPC_SS_MARSHAL
		       : 0;
}

static const struct BOZO_handlers handlers = {
	.EnumerateInstance = enumerate_instance,
	.GetInstanceInfo = get_instance_info,
	.GetStatus = get_bos_status,
	.GetInstanceParm = get_instance_parm,
	.GetInstanceStrings = get_instance_strings,
};

/* Every other call of an overseer is refused to every caller, before its arguments are decoded. */
static int32_t enter_bos_call(void *context, rxw_call *call, int32_t opcode, int function)
{
	(void)context, (void)call;
	return function < 0 && opcode >= BOZO_FIRST && opcode <= BOZO_LAST ? AFS_BOS_ACCESS : 0;
}

int32_t fsd_bos_serve(rxw_call *call, void *bos)
{
	struct BOZO_service service = {.base = {.context = bos, .enter = enter_bos_call},
				       .handlers = &handlers};

	return BOZO_ExecuteRequest(call, &service);
}
