/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: processes that share tokens of their own, apart from others of the same user. A session is one of two: the
 * kernel's login session, which its audit system numbers at each login and no process can leave; or a command that
 * rxafsctl has started, with all processes below it. The inner session counts. Processes of a session have its tokens
 * whatever their user id is, as with the process authentication groups of other clients.
 */
#ifndef RXAFS_SESSIONS_H
#define RXAFS_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <rxafs/client.h>

#define SESSION_TEXT 48

struct sessions;

/* NULL: no memory. */
struct sessions *sessions_create(rxafs_client *client);
/* Before the client is closed: forgets all users. NULL is allowed. */
void sessions_stop(struct sessions *sessions);
/* Afterwards, when no operation is in progress. */
void sessions_free(struct sessions *sessions);

/*
 * The user of the session that a thread is in; a reference. NULL: it is in none. `thread` 0: not known, so in none. False: there are sessions,
 * and it cannot be told whether the thread is in one, since it has ended or files cannot be opened. Any thread; never waits for anything
 * but /proc.
 */
bool sessions_find(struct sessions *sessions, pid_t thread, rxafs_user **user);

/*
 * A session of the login session of a thread; or, if `command`, of that process and all below it, until its end.
 * *user is a reference to its user, who has no tokens yet; `text` is the session's name. A login session that exists already is
 * given again. -ENODEV: the kernel has given the process no login session; -ESRCH: there is no such process; -EUSERS: `owner` has
 * begun too many, or all users have; -ENOMEM, -EMFILE and others.
 */
int session_begin(struct sessions *sessions, uid_t owner, pid_t thread, bool command,
		  rxafs_user **user, char text[SESSION_TEXT]);
/* The login session of a thread has no tokens of its own any more. -ENOENT: it had none. */
int session_end(struct sessions *sessions, pid_t thread);

/* Forget sessions without processes. */
void sessions_forget_dead(struct sessions *sessions);
/* Whether the user is that of a session; its name. */
bool session_name(struct sessions *sessions, const rxafs_user *user, char text[SESSION_TEXT]);

#endif
