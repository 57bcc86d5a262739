/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of rxkad's codes, for the com_err of OpenAFS. */
#include <pthread.h>

#include <rx/rxkad.h>

/* As com_err declares them. */
struct error_table {
	const char *const *msgs;
	int base;
	int n_msgs;
};
struct et_list {
	struct et_list *next;
	const struct error_table *table;
};

/* Programs without com_err do not have this function. */
extern void afs_add_to_error_table(struct et_list *list) __attribute__((weak));

#define MESSAGES 13

static const char *const messages[MESSAGES + 1] = {
	"rxkad: internal state is inconsistent",
	"rxkad: an authentication packet is too short",
	"rxkad: the server requires a higher security level",
	"rxkad: the ticket is too long or too short",
	"rxkad: a packet is out of sequence",
	"rxkad: the client is not authenticated",
	"rxkad: the key is invalid",
	"rxkad: the ticket is invalid",
	"rxkad: the server does not have the key that the ticket names",
	"rxkad: the ticket has expired",
	"rxkad: a packet was changed, or the keys differ",
	"rxkad: a packet's data is too long",
	"rxkad: encrypted connections are not allowed",
};

static const struct error_table table = {messages, ERROR_TABLE_BASE_RXK, MESSAGES};

static void register_messages(void)
{
	static struct et_list link = {NULL, &table};

	if (afs_add_to_error_table)
		afs_add_to_error_table(&link);
}

void initialize_RXK_error_table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_messages);
}
