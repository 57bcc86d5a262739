/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client of librxafs that a run has. The library makes one round of the servers; repeating that, with a
 * message, for the time of --retry is done here.
 */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <rxafs/admin.h>

#include "afs/numbers.h"
#include "afs/vl.h"
#include "common/clock.h"
#include "common/held.h"
#include "program/endpoints.h"
#include "program/message.h"
#include "afscp/session.h"

/* ---- servers and tokens ---- */

/* The first address that answers, and those to be asked when it does not any more. */
static void choose_location(struct run *run, const struct tools_address *list, size_t count)
{
	size_t first = tools_find_reachable(&run->config, list, count, AFS_SERVICE_VL);

	run->vl = list[first];
	for (size_t i = 1; i < count; i++) {
		const struct tools_address *other = &list[(first + i) % count];

		if (other->sa.ss_family == run->vl.sa.ss_family)
			run->vl_others[run->vl_other_count++] = other->sa;
	}
}

/* What -s or the environment says of the home cell; NULL: nothing. */
static const char *named_server(const struct run *run, const char **option)
{
	const struct tools_list *servers = &run->set.servers;
	const char *text = getenv("AFSCP_SERVER");

	*option = "$AFSCP_SERVER";
	for (size_t i = servers->count; i > 0; i--)
		if (!strchr(servers->items[i - 1], '=')) {
			*option = "option --server";
			return servers->items[i - 1];
		}
	return text && *text ? text : NULL;
}

/* Its host and ports. 1: none is named; -1 after a message. */
static int split_server(const struct run *run, char host[256], uint16_t ports[2])
{
	const char *option, *text = named_server(run, &option);

	if (!text)
		return 1;
	if (tools_split_host(text, host, 256, ports, 2) == 0)
		return 0;
	tools_error("%s: invalid value \"%s\"; use HOST[:VLPORT[:FSPORT]]", option, text);
	return -1;
}

int run_check_servers(const struct run *run)
{
	uint16_t ports[2];
	char host[256];

	return split_server(run, host, ports) < 0 ? -1 : 0;
}

/*
 * Find the servers that the options name for the home cell. 0: run->vl and the ports are set; 1: none are
 * named, and the cell has to tell; or -1 after a message.
 */
static int find_home_servers(struct run *run)
{
	uint16_t ports[2] = {AFS_PORT_VL, AFS_PORT_FS};
	struct tools_address list[TOOLS_ADDRESSES];
	char host[256], message[320];
	size_t count;
	int rc = split_server(run, host, ports);

	if (rc)
		return rc;
	count = tools_resolve_all(host, ports[0], list, message, sizeof(message));
	if (count == 0) {
		tools_error("-s: %s", message);
		return -1;
	}
	/* Location entries have no IPv6 addresses: those of IPv4 serve both. */
	tools_addresses_prefer_ipv4(list, count);
	choose_location(run, list, count);
	run->fs_port = ports[1];
	return 0;
}

/* Authentication according to command line and environment. */
static struct tools_auth auth_of(const struct run *run)
{
	struct tools_auth auth = run->set.auth;

	if (!auth.cell)
		auth.cell = getenv("AFSCELL");
	if (auth.class < 0)
		auth.class = TOOLS_RXKAD;
	return auth;
}

/* If none was requested explicitly, continue without one, after a message. 0, or -1 after a message. */
static int get_first_token(struct run *run)
{
	const struct tools_auth *set = &run->set.auth, auth = auth_of(run);
	char message[TOOLS_AUTH_MESSAGE];
	bool asked =
		set->class >= 0 || set->level >= 0 || set->key_file || set->keytab || set->cell;

	if (!asked && !auth.cell)
		return 0;
	if (tools_renewal_open(&run->renewal, &auth, &run->vl, session_use_token, run, message,
			       sizeof(message)) == 0)
		return 0;
	if (asked) {
		tools_error("%s", message);
		return -1;
	}
	tools_error("continuing as anonymous: %s", message);
	return 0;
}

/* ---- the client ---- */

#define UNNAMED "afscp.invalid" /* a cell of which only the servers are known */

bool session_is_unnamed(const char *cell)
{
	return strcmp(cell, UNNAMED) == 0;
}

/* The name of the home cell as far as the command line has it. */
static const char *name_cell(const struct run *run)
{
	const struct tools_list *servers = &run->set.servers;
	const char *cell = run->set.auth.cell ? run->set.auth.cell : getenv("AFSCELL");
	static char first[256];

	for (size_t i = 0; !cell && i < servers->count; i++) {
		const char *end = strchr(servers->items[i], '=');

		if (!end)
			continue;
		snprintf(first, sizeof(first), "%.*s", (int)(end - servers->items[i]),
			 servers->items[i]);
		cell = first;
	}
	return cell;
}

static int append_server(char *text, size_t size, const struct sockaddr_storage *address,
			 uint16_t fs_port)
{
	char one[TOOLS_ADDRESS_TEXT];
	size_t used = strlen(text);

	return snprintf(text + used, size - used, "%s%s:%u", text[used - 1] == '=' ? "" : ",",
			tools_address_text(address, one, sizeof(one)), fs_port);
}

/* The home cell with the servers of -s, "CELL=ADDRESS:PORT:PORT,…". */
static void format_home(const struct run *run, const char *cell, char *text, size_t size)
{
	snprintf(text, size, "%s=", cell);
	append_server(text, size, &run->vl.sa, run->fs_port);
	for (unsigned i = 0; i < run->vl_other_count; i++)
		append_server(text, size, &run->vl_others[i], run->fs_port);
}

/* While a command runs under a lock, errors of the library are told. */
static void tell_log(void *arg, int priority, const char *text)
{
	const struct run *run = arg;

	if (priority <= LOG_ERR && atomic_load(&run->tells_log))
		tools_error("%s", text);
}

static int open_run_client(struct run *run, const char *cell, bool named)
{
	char home[2048];
	const struct tools_list *servers = &run->set.servers;
	const char **cells = calloc(servers->count + 1, sizeof(*cells));
	struct rxafs_options o = {.size = sizeof(o),
				  .cell = cell,
				  .cells = cells,
				  .transport = &run->config,
				  .limit_ms = run->set.timeout_ms,
				  .one_round = true,
				  .paths = run->set.named_paths.items,
				  .path_count = run->set.named_paths.count,
				  .log = tell_log,
				  .log_arg = run};
	struct rxafs_failure failure = {.text = "no memory"};
	int rc = -ENOMEM;

	if (cells) {
		for (size_t i = 0; i < servers->count; i++)
			if (strchr(servers->items[i], '='))
				cells[o.cell_count++] = servers->items[i];
		if (named) {
			format_home(run, cell, home, sizeof(home));
			cells[o.cell_count++] = home;
		}
		rc = rxafs_open_client(&o, &run->afs, &failure);
	}
	free(cells);
	if (rc < 0)
		tools_error("cannot start: %s", failure.text);
	return rc;
}

/* The home cell as the library knows it, for run->cell. */
static void learn_home(struct run *run)
{
	struct rxafs_request request = {.user = NULL};
	struct rxafs_attributes attributes;
	rxafs_object *root = rxafs_root(run->afs), *link;
	char *text = NULL;

	if (rxafs_lookup(root, &request, "@cell", &link, &attributes) == 0) {
		if (rxafs_readlink(link, &request, &text) == 0)
			snprintf(run->cell, sizeof(run->cell), "%s", text);
		free(text);
		rxafs_release(link);
	}
	rxafs_release(root);
}

/* Without a home cell: the servers of this machine. */
static int open_local_servers(struct run *run)
{
	char message[160];

	rxafs_close_client(run->afs, 0);
	run->afs = NULL;
	if (tools_resolve("127.0.0.1", AFS_PORT_VL, 0, &run->vl, message, sizeof(message)) < 0)
		return -1;
	run->fs_port = AFS_PORT_FS;
	snprintf(run->cell, sizeof(run->cell), "%s", UNNAMED);
	return open_run_client(run, UNNAMED, true);
}

static bool set_token(struct run *run, rxw_security *security, int64_t expires)
{
	int rc = run->user ? 0 : rxafs_get_user(run->afs, 1, &run->user);

	if (rc == 0)
		rc = rxafs_set_token(run->user, run->cell, security, expires);
	return rc == 0;
}

bool session_use_token(void *arg, rxw_token *token)
{
	struct rxw_token_details info = {.size = sizeof(info)};

	return rxw_token_info(token, &info) == 0 &&
	       set_token(arg, rxw_token_security(token), info.expires);
}

/* The token needs the address of a server of the cell, which is known if there is one at all. */
static int log_in_to_cell(struct run *run, bool named)
{
	if (!named && *run->cell)
		rxafs_cell_address(run->afs, run->cell, &run->vl.sa, &run->vl.len);
	if (get_first_token(run) < 0)
		return -1;
	if (!run->renewal.token)
		return 0;
	if (set_token(run, tools_renewal_security(&run->renewal), atomic_load(&run->renewal.ends)))
		return 0;
	tools_error("the token cannot be used in the cell \"%s\"", run->cell);
	return -1;
}

int session_open(struct run *run)
{
	const char *cell = name_cell(run);
	int named = find_home_servers(run);

	if (named < 0)
		return -1;
	run->config.idle_ms =
		run->config.idle_ms ? run->config.idle_ms : (unsigned)run->set.timeout_ms;
	if (named == 0 && !cell)
		cell = UNNAMED;
	if (open_run_client(run, cell, named == 0) < 0)
		return -1;
	learn_home(run);
	if (!*run->cell && open_local_servers(run) < 0)
		return -1;
	return log_in_to_cell(run, named == 0);
}

void session_close(struct run *run, unsigned limit_ms)
{
	if (!run->afs)
		return;
	rxafs_put_user(run->user);
	rxafs_close_client(run->afs, limit_ms);
	/* A signal may still come. */
	pthread_mutex_lock(&run->lock);
	for (size_t i = 0; i < run->cancel_count; i++)
		rxafs_free_cancel(run->cancels[i]);
	free(run->cancels);
	run->cancels = NULL;
	run->cancel_count = 0;
	pthread_mutex_unlock(&run->lock);
	run->afs = NULL;
}

void session_cancel(struct run *run)
{
	assert(mutex_is_held(&run->lock));
	for (size_t i = 0; i < run->cancel_count; i++)
		rxafs_raise_cancel(run->cancels[i]);
}

/* ---- requests ---- */

/* That of this thread. NULL without memory: signals then take effect after the operation. */
static rxafs_cancel *own_cancel(struct run *run)
{
	static _Thread_local rxafs_cancel *own;
	static _Thread_local struct run *owner;
	rxafs_cancel **more;

	if (own && owner == run)
		return own;
	pthread_mutex_lock(&run->lock);
	own = rxafs_create_cancel();
	more = own ? realloc(run->cancels, (run->cancel_count + 1) * sizeof(rxafs_cancel *)) : NULL;
	if (more) {
		run->cancels = more;
		more[run->cancel_count++] = own;
		if (atomic_load(&run->interrupted))
			rxafs_raise_cancel(own);
	} else {
		rxafs_free_cancel(own);
		own = NULL;
	}
	owner = run;
	pthread_mutex_unlock(&run->lock);
	return own;
}

struct rxafs_request session_request(struct run *run)
{
	if (run->user) {
		pthread_mutex_lock(&run->token_lock);
		tools_renewal_fresh(&run->renewal);
		pthread_mutex_unlock(&run->token_lock);
	}
	return (struct rxafs_request){.user = run->user, .cancel = own_cancel(run)};
}

/* ---- failures ---- */

/* The server did not answer within the limit. Another one, or later the same, may. */
static void describe_timeout(struct attempt *t, const struct rxafs_failure *f)
{
	const char *what = strncmp(f->text, "FetchData", 9) == 0
				   ? "no progress for"
				   : "did not finish its answer within";

	afs_error_text(&t->error, "%s: %s: %s %llu s", t->label, f->server, what,
		       (unsigned long long)(t->run->set.timeout_ms + 999) / 1000);
	t->error.code = RXW_CALL_TIMEOUT;
	t->error.passing = t->op != CHANGE_NONE;
}

/* Nobody has answered. */
static void describe_silence(struct attempt *t, const struct rxafs_failure *f)
{
	char label[400];

	if (f->code == RXW_CALL_TIMEOUT) {
		describe_timeout(t, f);
	} else if (f->code && f->volume) {
		snprintf(label, sizeof(label), "%s: %s", t->label, f->server);
		afs_error_code(&t->error, label, f->code, RXW_ORIGIN_LOCAL);
		t->error.passing = true;
	} else if (!f->volume && *f->server) {
		afs_error_text(&t->error, "no answer from the %s; check that it is running%s",
			       f->server,
			       session_is_unnamed(t->run->cell) ? " and that -s is right" : "");
		t->error.passing = true;
	} else {
		afs_error_text(&t->error, "%s: %s", t->label, f->text);
		t->error.passing = true;
	}
}

static void describe_refusal(struct attempt *t, const struct rxafs_failure *f)
{
	size_t used;

	afs_error_code(&t->error, t->label, f->code, RXW_ORIGIN_PEER);
	if (f->code != RXW_INVALID_OPERATION)
		return;
	/* The service is unknown where the call went, or the class. */
	used = strlen(t->error.text);
	snprintf(t->error.text + used, sizeof(t->error.text) - used,
		 " at the %s; %scheck the order of the ports, -s HOST:VLPORT:FSPORT", f->server,
		 t->run->user ? "" : "it may require a ticket, see --cell, or ");
}

/* "volume NAME", with the place of the mount point that leads there if the user has not named it. */
static void describe_absence(struct attempt *t, const struct rxafs_failure *f)
{
	const char *name = strncmp(f->text, "volume ", 7) == 0 ? f->text + 7 : f->text;
	size_t length = strcspn(name, ":");
	bool named = strncmp(t->label, name, length) == 0 && t->label[length] == ':';

	afs_error_text(&t->error,
		       "%s%svolume %.*s: no such volume; the location server does not know it",
		       named ? "" : t->label, named ? "" : ": ", (int)length, name);
}

static void describe_location(struct attempt *t, const struct rxafs_failure *f)
{
	if (f->code == AFS_VL_NOENT)
		describe_absence(t, f);
	else if (f->code == RXW_INVALID_OPERATION)
		describe_refusal(t, f);
	else
		afs_error_text(&t->error, "%s: %s", t->label, f->text);
	t->error.code = f->code;
	t->error.origin = RXW_ORIGIN_PEER;
	if (f->code < 0 && f->code >= RXW_RESTARTING && f->code != RXW_INVALID_OPERATION)
		t->error.passing = true;
}

/* The server has sent something that makes no sense. */
static bool is_nonsense(const struct rxafs_failure *f, int number)
{
	return *f->server && (f->code == RXW_USER_ABORT || f->code == RXW_RPC_CC_UNMARSHAL ||
			      f->code == RXW_PROTOCOL_ERROR || (f->code == 0 && number == EIO));
}

static void describe_nonsense(struct attempt *t, const struct rxafs_failure *f)
{
	const char *why = strstr(f->text, f->server);

	why = f->code == RXW_RPC_CC_UNMARSHAL ? "its answer is malformed"
	      : why			      ? why + strlen(f->server)
					      : f->text;
	afs_error_text(&t->error, "%s: %s: %s", t->label, f->server, why + strspn(why, ": "));
}

static const char *text_of(int number)
{
	return number == EXDEV	   ? "leads out of the volume and of AFS"
	       : number == ELOOP   ? "too many symbolic links"
	       : number == ENOENT  ? "no such file or directory"
	       : number == ENOTDIR ? "is not a directory"
				   : strerror(number);
}

/* A path begins with the name of a cell that nobody knows. */
static bool describe_unknown_cell(struct attempt *t)
{
	struct rxafs_request request = session_request(t->run);
	const char *name = t->label + strspn(t->label, "/");
	struct rxafs_attributes attributes;
	rxafs_object *root, *cell;
	char text[256];
	int rc;

	if (t->label[0] != '/' || strncmp(name, "afs/", 4) != 0)
		return false;
	name += 4 + strspn(name + 4, "/");
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "/"), name);
	if (!*text)
		return false;
	root = rxafs_root(t->run->afs);
	rc = rxafs_lookup(root, &request, text, &cell, &attributes);
	rxafs_release(root);
	if (rc == 0)
		rxafs_release(cell);
	if (rc != -ENOENT)
		return false;
	afs_error_text(&t->error,
		       "%s: no such file or directory: the cell is unknown; name its servers with "
		       "-s %s=HOST",
		       t->label, text[0] == '.' ? text + 1 : text);
	return true;
}

static void describe_failure(struct attempt *t, int number)
{
	const struct rxafs_failure *f = &t->request.failure;
	bool told = f->number == number;

	if (number == EINTR) {
		afs_error_text(&t->error, "%s: interrupted", t->label);
		t->error.interrupted = true;
	} else if (number == EKEYEXPIRED && !f->code) {
		afs_error_code(&t->error, t->label, RXW_RXKAD_EXPIRED, RXW_ORIGIN_PEER);
	} else if (told && number == EADDRNOTAVAIL) {
		afs_error_text(&t->error, "%s: no path of --path leads to %s", t->label, f->server);
	} else if (told && f->origin == RXAFS_FROM_SERVER) {
		describe_refusal(t, f);
	} else if (told && f->origin == RXAFS_FROM_LOCATION) {
		describe_location(t, f);
	} else if (told && is_nonsense(f, number)) {
		describe_nonsense(t, f);
	} else if (told && f->origin == RXAFS_FROM_NETWORK) {
		describe_silence(t, f);
	} else if (number != ENOENT || !describe_unknown_cell(t)) {
		afs_error_text(&t->error, "%s: %s", t->label,
			       told && *f->text && number != EACCES && number != EROFS
				       ? f->text
				       : text_of(number));
		if (t->op == CHANGE_NONE && (number == EAGAIN || number == EBUSY))
			t->error.passing = true;
	}
	t->error.number = number;
	t->unknown |= told && f->maybe_done;
	/* The answer was lost, and what became of the change could not be found out. */
	if (number == ETIMEDOUT && !told) {
		t->unknown = true;
		t->error.passing = true;
	}
}

/* Add what the administrator says of a volume that is off line. */
static void explain_volume(struct attempt *t)
{
	struct rxafs_request request;
	size_t used = strlen(t->error.text);
	struct rxafs_volume volume;

	if (t->error.code != AFS_VOFFLINE || t->error.explained || !t->about)
		return;
	t->error.explained = true;
	request = session_request(t->run);
	if (rxafs_examine(t->about, &request, &volume) == 0 && *volume.message)
		snprintf(t->error.text + used, sizeof(t->error.text) - used, ": \"%s\"",
			 volume.message);
}

/* ---- tries ---- */

#define START_MS 15000 /* for a location server that has never answered: it may restart */

struct attempt attempt_begin(struct run *run, enum change_op op, const char *label)
{
	return (struct attempt){.run = run,
				.op = op,
				.label = label,
				.began = monotonic_ns(),
				.request = session_request(run)};
}

/* How long the operation is repeated after its first failure. */
static uint64_t patience_ms(const struct attempt *t)
{
	uint64_t ms = t->run->set.retry_ms, failed = t->outage.since_ns, spent, start;

	if (atomic_load(&t->run->gave_up))
		return 0;
	if (t->error.origin == RXW_ORIGIN_PEER || atomic_load(&t->run->located))
		return ms;
	/* Do not wait long for a server that has never answered: its address may be wrong. */
	spent = ((failed ? failed : monotonic_ns()) - t->began) / 1000000;
	start = spent < START_MS ? START_MS - spent : 0;
	return ms < start ? ms : start;
}

/* Whether the token had expired and there is a new one. */
static bool has_new_token(struct attempt *t)
{
	struct run *run = t->run;
	bool again = false;

	if (!run->user || t->error.number != EKEYEXPIRED)
		return false;
	pthread_mutex_lock(&run->token_lock);
	again = tools_renewal_again(&run->renewal);
	pthread_mutex_unlock(&run->token_lock);
	return again;
}

bool attempt_again_unless(struct attempt *t, int64_t value, int expected)
{
	t->value = value;
	if (value >= 0 || value == expected) {
		atomic_store(&t->run->located, true);
		atomic_store(&t->run->gave_up, false);
		return false;
	}
	/* An earlier try has removed it. */
	if (t->unknown && value == -ENOENT && (t->op == CHANGE_REMOVE || t->op == CHANGE_RMDIR)) {
		t->value = 0;
		return false;
	}
	describe_failure(t, (int)-value);
	if (!t->error.interrupted && has_new_token(t)) {
		t->request = session_request(t->run);
		return true;
	}
	if (t->error.passing && !t->silent) {
		explain_volume(t);
		if (run_wait_round(t->run, &t->outage, t->error.text, patience_ms(t))) {
			t->request = session_request(t->run);
			return true;
		}
		if (t->request.failure.origin == RXAFS_FROM_NETWORK)
			atomic_store(&t->run->gave_up, true);
	}
	if (atomic_load(&t->run->interrupted) && !t->error.interrupted) {
		afs_error_text(&t->error, "%s: interrupted", t->label);
		t->error.interrupted = true;
	}
	if (!t->silent && !t->later)
		attempt_complain(t);
	return false;
}

bool attempt_again(struct attempt *t, int64_t value)
{
	return attempt_again_unless(t, value, 1);
}

/* The text of EFBIG is about files: of a directory that is full the name remains. */
static void cut_file_reason(char *text)
{
	char *reason = strstr(text, ": File too large");

	if (reason)
		*reason = 0;
}

void attempt_complain(struct attempt *t)
{
	const char *remedy = t->op == CHANGE_NONE ? NULL : change_remedy(t->op, &t->error);
	const char *login =
		t->error.number == EACCES && !t->run->user ? ", and --cell for authentication" : "";

	if (t->error.interrupted) {
		if (!atomic_exchange(&t->run->told, true))
			tools_error("%s", t->error.text);
		return;
	}
	explain_volume(t);
	if (t->error.number == EFBIG && t->op != CHANGE_STORE && t->op != CHANGE_STATUS)
		cut_file_reason(t->error.text);
	if (remedy)
		tools_error("%s: %s%s", t->error.text, remedy, login);
	else if (t->error.number == EACCES)
		tools_error("%s: you need the right l (lookup) on the directory, and r (read) for "
			    "files; see afscp acl%s",
			    t->error.text, login);
	else
		tools_error("%s", t->error.text);
}

void attempt_complain_of(struct attempt *t, const char *label)
{
	t->label = label;
	describe_failure(t, t->value < 0 ? (int)-t->value : ENOMEM);
	attempt_complain(t);
}

void session_complain(struct run *run, const char *label, int number)
{
	struct attempt t = {.run = run, .op = CHANGE_NONE, .value = -number};

	attempt_complain_of(&t, label);
}

enum copy_result attempt_result(const struct attempt *t)
{
	const struct afs_error *error = &t->error;

	if (t->value >= 0)
		return COPY_GOOD;
	if (run_interrupted(t->run))
		return COPY_STOP;
	if (t->run->set.keep_going)
		return COPY_FAILED;
	if (error->passing || tools_renewal_expired(error->code, error->origin))
		return COPY_STOP;
	/* A volume that is full or read-only is so for the others. */
	if (error->number == ENOSPC || error->number == EDQUOT || error->number == EROFS)
		return COPY_STOP;
	/* An answer, even an invalid one, concerns this object; no answer concerns them all. */
	if (error->origin == RXW_ORIGIN_PEER)
		return COPY_FAILED;
	return error->code == 0 || error->code == RXW_RPC_CC_UNMARSHAL ? COPY_FAILED : COPY_STOP;
}
