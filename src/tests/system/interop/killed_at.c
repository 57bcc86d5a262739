/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library for LD_PRELOAD that kills the program after its KILL_AT-th remote call, or, with KILL_DURING, while that call is in
 * progress. KILL_COUNT names a file for the number of calls of a program that ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static _Atomic long calls;

static void *kill_soon(void *arg)
{
	const struct timespec pause = {.tv_nsec = 5000000};

	(void)arg;
	nanosleep(&pause, NULL);
	kill(getpid(), SIGKILL);
	return NULL;
}

static void note_call(void)
{
	const char *at = getenv("KILL_AT"), *count = getenv("KILL_COUNT");
	long number = ++calls;
	pthread_t thread;
	FILE *file;

	if (count && (file = fopen(count, "w"))) {
		fprintf(file, "%ld\n", number);
		fclose(file);
	}
	if (!at || number != atol(at))
		return;
	if (!getenv("KILL_DURING"))
		kill(getpid(), SIGKILL);
	else if (!pthread_create(&thread, NULL, kill_soon, NULL))
		pthread_detach(thread);
}

int32_t rxw_rpc_begin(void *connection, const void *options, void **call)
{
	int32_t (*next)(void *, const void *, void **) =
		(int32_t(*)(void *, const void *, void **))dlsym(RTLD_NEXT, "rxw_rpc_begin");

	if (getenv("KILL_DURING"))
		note_call();
	return next(connection, options, call);
}

int32_t rxw_rpc_end(void *call, int32_t code, const void *interface, unsigned function)
{
	int32_t (*next)(void *, int32_t, const void *, unsigned) =
		(int32_t(*)(void *, int32_t, const void *, unsigned))dlsym(RTLD_NEXT,
									   "rxw_rpc_end");
	int32_t result = next(call, code, interface, function);

	if (!getenv("KILL_DURING"))
		note_call();
	return result;
}
