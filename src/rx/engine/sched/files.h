/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of an engine that may wait for files. Peers take turns, however many jobs they have. */
#ifndef RXW_ENGINE_FILES_H
#define RXW_ENGINE_FILES_H

struct rxw_engine;
struct rxw_files;
struct rxw_files_share;
struct rxw_peer;

/* A turn of a transfer. */
struct rxw_file_job {
	struct rxw_file_job *next; /* the lock of the threads; while it is queued */
	struct rxw_files *files;   /* fixed, as the next */
	struct rxw_files_share *share;
	void (*run)(struct rxw_file_job *job);
};

/*
 * The job is on behalf of this peer until rxw_files_leave(), which `run` calls. Starts the first
 * thread. 0, -RXW_ENOMEM, -RXW_ESYS. No lock held.
 */
int rxw_files_enter(struct rxw_engine *e, struct rxw_file_job *job, struct rxw_peer *peer);
void rxw_files_leave(struct rxw_file_job *job, struct rxw_peer *peer);
/* A thread will run it. It is not queued, and belongs to that thread now. Does not wait. */
void rxw_files_post(struct rxw_file_job *job);
/* All jobs have left. Ends the threads. NULL is allowed. */
void rxw_files_destroy(struct rxw_files *files);

#endif
