/* SPDX-License-Identifier: BSD-2-Clause */
/* Which session a process is in. */
#include "rxafs/users/sessions.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/held.h"

#define THREADS_KEPT 256u  /* whose session is known */
#define PARENTS_MOST 4096u /* a chain of processes that is longer changes while it is read */
#define CLIMBS_MOST  64u   /* attempts to read a chain */
/* Sessions that one user, and all but root, may have begun; those of commands hold files of this process open, at most one in FILES_PART. */
#define OF_USER_MOST  256u
#define SESSIONS_MOST 4096u
#define FILES_PART    4u
#define FIRST_LOOK 16u /* sessions, from which on those without processes are looked for */

struct session {
	struct session *next;
	rxafs_user *user;
	uid_t owner;	  /* who has begun it */
	uint32_t login;	  /* number of the login session; 0: of a command */
	pid_t leader;	  /* of a command */
	int leader_alive; /* its /proc/PID/stat: it cannot be read once the process is gone */
	bool alive;	  /* found while processes are looked at */
};

/*
 * A thread and what was found. Its number may be used again, but its open file in /proc is that of this thread only.
 */
struct found {
	pid_t thread; /* 0: nothing */
	int stat;
	uint64_t generation; /* of the sessions */
	struct session *session;
};

struct sessions {
	rxafs_client *client;
	pthread_mutex_t lock; /* covers all but `count` */
	atomic_uint count;
	uint64_t generation; /* changes with the list, after which no entry of `known` is used */
	struct session *list;
	unsigned most;	  /* of all users but root */
	bool over;	  /* no further ones */
	unsigned look_at; /* sessions, when those without processes are looked for again */
	struct found known[THREADS_KEPT];
};

struct sessions *sessions_create(rxafs_client *client)
{
	struct sessions *sessions = calloc(1, sizeof *sessions);
	struct rlimit files;

	if (!sessions)
		return NULL;
	pthread_mutex_init(&sessions->lock, NULL);
	sessions->client = client;
	sessions->look_at = FIRST_LOOK;
	sessions->most = SESSIONS_MOST;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / FILES_PART < SESSIONS_MOST)
		sessions->most = (unsigned)files.rlim_cur / FILES_PART;
	return sessions;
}

static void free_session(struct session *session)
{
	if (!session->login)
		close(session->leader_alive);
	rxafs_put_user(session->user);
	free(session);
}

void sessions_stop(struct sessions *sessions)
{
	struct session *one;

	if (!sessions)
		return;
	pthread_mutex_lock(&sessions->lock);
	sessions->over = true;
	sessions->generation++;
	atomic_store(&sessions->count, 0);
	while ((one = sessions->list)) {
		sessions->list = one->next;
		free_session(one);
	}
	pthread_mutex_unlock(&sessions->lock);
}

void sessions_free(struct sessions *sessions)
{
	if (!sessions)
		return;
	assert(!sessions->list);
	for (unsigned i = 0; i < THREADS_KEPT; i++)
		if (sessions->known[i].thread)
			close(sessions->known[i].stat);
	pthread_mutex_destroy(&sessions->lock);
	free(sessions);
}

/* -- processes -------------------------------------------------------------------------------- */

static bool is_alive(int stat)
{
	char byte;

	return pread(stat, &byte, 1, 0) == 1;
}

static int open_stat(pid_t thread)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)thread);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_parent(int stat, pid_t *parent)
{
	char text[1024], *end;
	ssize_t length = pread(stat, text, sizeof text - 1, 0);

	if (length <= 0)
		return false;
	text[length] = '\0';
	/* The name may contain any character. */
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", parent) == 1;
}

/* The number of a thread's login session; 0: it has none, or is gone, or the kernel numbers none. -1: it cannot be told. */
static int64_t read_login_session(const char *process)
{
	unsigned long number = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%s/sessionid", process);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT || errno == ESRCH ? 0 : -1;
	if (fscanf(f, "%lu", &number) != 1 || number >= UINT32_MAX)
		number = 0;
	fclose(f);
	return (int64_t)number;
}

static int64_t login_session_of(pid_t thread)
{
	char text[16];

	snprintf(text, sizeof text, "%d", (int)thread);
	return read_login_session(text);
}

/* -- the session of a thread ---------------------------------------------------------------- */

static struct session *find_login(const struct sessions *sessions, uint32_t number)
{
	struct session *one = sessions->list;

	assert(mutex_is_held((pthread_mutex_t *)&sessions->lock));
	while (one && one->login != number)
		one = one->next;
	return one;
}

/* While the leader lives, nobody else has its number. */
static struct session *find_led_by(const struct sessions *sessions, pid_t leader)
{
	struct session *one = sessions->list;

	assert(mutex_is_held((pthread_mutex_t *)&sessions->lock));
	while (one && (one->login || one->leader != leader || !is_alive(one->leader_alive)))
		one = one->next;
	return one;
}

enum step {
	STEP_UP,
	STEP_TOP,
	STEP_BROKEN
};

/*
 * From a process to its parent, whose file takes the place of its own. The child is read again after that: if it has that parent still, then
 * the file is the parent's, and not that of a later process with its number.
 */
static enum step step_to_parent(int *stat, pid_t *parent)
{
	pid_t now;
	int above;

	if (!read_parent(*stat, parent))
		return STEP_BROKEN;
	if (*parent <= 1)
		return STEP_TOP;
	above = open_stat(*parent);
	if (above < 0 || !read_parent(*stat, &now) || now != *parent) {
		if (above >= 0)
			close(above);
		return STEP_BROKEN;
	}
	close(*stat);
	*stat = above;
	return STEP_UP;
}

/* False: it cannot be told. */
static bool climb_from(const struct sessions *sessions, pid_t thread, struct session **session)
{
	enum step step = STEP_BROKEN;
	int stat = open_stat(thread);

	*session = NULL;
	if (stat < 0)
		return false;
	for (unsigned i = 0; i < PARENTS_MOST; i++) {
		*session = find_led_by(sessions, thread);
		step = *session ? STEP_TOP : step_to_parent(&stat, &thread);
		if (step != STEP_UP)
			break;
	}
	close(stat);
	return step == STEP_TOP;
}

/*
 * The command above a thread, or NULL. A parent may end meanwhile, then its children get another one: orphans become children of the leader,
 * which asks the kernel for that. False: it cannot be told.
 */
static bool find_above(const struct sessions *sessions, pid_t thread, struct session **session)
{
	for (unsigned i = 0; i < CLIMBS_MOST; i++)
		if (climb_from(sessions, thread, session))
			return true;
	return false;
}

/* Its session, or NULL. False: it cannot be told. */
static bool find_session_of(const struct sessions *sessions, pid_t thread, struct session **session)
{
	int64_t login;

	if (!find_above(sessions, thread, session))
		return false;
	login = *session ? 0 : login_session_of(thread);
	if (login > 0)
		*session = find_login(sessions, (uint32_t)login);
	return login >= 0;
}

/* The entry of a thread that is alive and was looked at, or NULL. */
static struct found *look_at_thread(struct sessions *sessions, pid_t thread)
{
	struct found *found = &sessions->known[(unsigned)thread % THREADS_KEPT];
	struct session *session;
	bool told;

	if (found->thread == thread && is_alive(found->stat)) {
		if (found->generation == sessions->generation)
			return found;
	} else {
		if (found->thread)
			close(found->stat);
		found->stat = open_stat(thread);
		found->thread = found->stat < 0 ? 0 : thread;
		if (!found->thread)
			return NULL;
	}
	told = find_session_of(sessions, thread, &session);
	/* What was read by number may be of another thread if this one is gone by now. */
	if (!told || !is_alive(found->stat)) {
		close(found->stat);
		found->thread = 0;
		return NULL;
	}
	found->session = session;
	found->generation = sessions->generation;
	return found;
}

bool sessions_find(struct sessions *sessions, pid_t thread, rxafs_user **user)
{
	struct found *found;

	*user = NULL;
	if (!atomic_load(&sessions->count) || !thread)
		return true;
	pthread_mutex_lock(&sessions->lock);
	found = look_at_thread(sessions, thread);
	if (found && found->session)
		*user = rxafs_hold_user(found->session->user);
	pthread_mutex_unlock(&sessions->lock);
	return found != NULL;
}

/* -- beginning and end ------------------------------------------------------------------------ */

/* Marks the sessions that have processes. */
static void mark_alive(struct sessions *sessions)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	for (struct session *one = sessions->list; one; one = one->next)
		one->alive = !proc || (!one->login && is_alive(one->leader_alive));
	while (proc && (entry = readdir(proc))) {
		int64_t number = entry->d_name[0] >= '0' && entry->d_name[0] <= '9'
					 ? read_login_session(entry->d_name)
					 : 0;

		/* If it cannot be told, it may be any. */
		for (struct session *one = number ? sessions->list : NULL; one; one = one->next)
			one->alive |= one->login && (number < 0 || one->login == number);
	}
	if (proc)
		closedir(proc);
}

/* With the lock. */
static void forget_dead(struct sessions *sessions)
{
	struct session **at = &sessions->list, *one;
	unsigned count = 0;

	assert(mutex_is_held(&sessions->lock));
	mark_alive(sessions);
	while ((one = *at)) {
		if (one->alive) {
			count++;
			at = &one->next;
			continue;
		}
		*at = one->next;
		free_session(one);
		sessions->generation++;
	}
	atomic_store(&sessions->count, count);
	sessions->look_at = 2 * count > FIRST_LOOK ? 2 * count : FIRST_LOOK;
}

static void write_session_name(const struct session *session, char text[SESSION_TEXT])
{
	if (session->login)
		snprintf(text, SESSION_TEXT, "login session %u", session->login);
	else
		snprintf(text, SESSION_TEXT, "command %d", (int)session->leader);
}

/* With the lock. */
static bool has_too_many(const struct sessions *sessions, uid_t owner)
{
	unsigned count = 0, others = 0;

	for (const struct session *one = sessions->list; one; one = one->next) {
		count += one->owner == owner;
		others += one->owner != 0;
	}
	return owner && (count >= OF_USER_MOST || others >= sessions->most);
}

/* *made: it is new, and not in the list. A negative errno: none. */
static int find_or_make(struct sessions *sessions, uid_t owner, pid_t thread, bool command,
			struct session **made, struct session **out)
{
	int64_t login = command ? 0 : login_session_of(thread);
	struct session *session = command     ? find_led_by(sessions, thread)
				  : login > 0 ? find_login(sessions, (uint32_t)login)
					      : NULL;

	*made = NULL;
	*out = session;
	if (session)
		return 0;
	if (sessions->over)
		return -ESHUTDOWN;
	if (!command && login <= 0)
		return login ? -EAGAIN : -ENODEV;
	if (has_too_many(sessions, owner)) {
		forget_dead(sessions);
		if (has_too_many(sessions, owner))
			return -EUSERS;
	}
	session = calloc(1, sizeof *session);
	if (!session || rxafs_create_user(sessions->client, &session->user)) {
		free(session);
		return -ENOMEM;
	}
	session->owner = owner;
	session->login = (uint32_t)login;
	session->leader = thread;
	session->leader_alive = command ? open_stat(thread) : -1;
	if (command && session->leader_alive < 0) {
		int error = errno;

		rxafs_put_user(session->user);
		free(session);
		return error == ENOENT ? -ESRCH : -error;
	}
	*made = *out = session;
	return 0;
}

int session_begin(struct sessions *sessions, uid_t owner, pid_t thread, bool command,
		  rxafs_user **user, char text[SESSION_TEXT])
{
	struct session *session, *made;
	int result;

	*user = NULL;
	if (!thread)
		return -ESRCH;
	pthread_mutex_lock(&sessions->lock);
	if (atomic_load(&sessions->count) >= sessions->look_at)
		forget_dead(sessions);
	result = find_or_make(sessions, owner, thread, command, &made, &session);
	if (made) {
		made->next = sessions->list;
		sessions->list = made;
		sessions->generation++;
		atomic_fetch_add(&sessions->count, 1);
	}
	if (!result) {
		*user = rxafs_hold_user(session->user);
		write_session_name(session, text);
	}
	pthread_mutex_unlock(&sessions->lock);
	return result;
}

int session_end(struct sessions *sessions, pid_t thread)
{
	int64_t login = login_session_of(thread);
	struct session **at = &sessions->list, *session;

	pthread_mutex_lock(&sessions->lock);
	session = login > 0 ? find_login(sessions, (uint32_t)login) : NULL;
	while (session && *at != session)
		at = &(*at)->next;
	if (session) {
		*at = session->next;
		sessions->generation++;
		atomic_fetch_sub(&sessions->count, 1);
		free_session(session);
	}
	pthread_mutex_unlock(&sessions->lock);
	return session ? 0 : -ENOENT;
}

void sessions_forget_dead(struct sessions *sessions)
{
	if (!atomic_load(&sessions->count))
		return;
	pthread_mutex_lock(&sessions->lock);
	forget_dead(sessions);
	pthread_mutex_unlock(&sessions->lock);
}

bool session_name(struct sessions *sessions, const rxafs_user *user, char text[SESSION_TEXT])
{
	const struct session *session;

	pthread_mutex_lock(&sessions->lock);
	session = sessions->list;
	while (session && session->user != user)
		session = session->next;
	if (session)
		write_session_name(session, text);
	pthread_mutex_unlock(&sessions->lock);
	return session != NULL;
}
