/* SPDX-License-Identifier: BSD-2-Clause */
/* Files in calls, without a thread that waits for the peer. See rxw_file_send(3). */
#ifndef RXWIRE_FILE_H
#define RXWIRE_FILE_H

#include <rxwire/error.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The end of a transfer: called once for each one that was begun, on a thread of the library
 * that may wait, possibly before the function that began it returns. Like a handler it must not
 * stop or destroy the endpoint or the engine, and rxw_endpoint_destroy() waits for its return.
 * There are few such threads: do not wait for other transfers. `moved` is the number of bytes of
 * the file that were written to the call, or read from it and written to the file. `result` is
 *
 *   0           all bytes were moved
 *   -RXW_EEOF   to send: the file is shorter; to receive: the stream has ended earlier
 *   -RXW_ESYS   the file cannot be read or written; errno, also EISDIR and ESPIPE for what is no
 *               regular file, EINVAL (to receive: open with O_APPEND), EBADF, EMFILE
 *   -RXW_ECALL  the call has failed, or rxw_call_abort(); rxw_call_error() has the code
 *   -RXW_ESTATE, -RXW_ENOMEM  as of rxw_call_reserve() or rxw_call_readv()
 *   -RXW_EDEADLK  as of rxw_call_set_callback()
 *
 * The call belongs to the application again, has no callback and is in no queue. It may write or
 * read more, begin another transfer, or end the call: after a failure with a code, since the
 * stream has too few bytes.
 */
typedef void (*rxw_file_fn)(rxw_call *call, int result, uint64_t moved, void *arg);

/*
 * Send `length` bytes of a regular file, from `offset` on, as part of the reply or of the
 * request; write the next bytes of the request or of the reply to a file. No thread waits for
 * the peer: those that find room in the window, or data, go on. What is not in the page cache is
 * read, and files are written, by at most 8 threads of the engine. The files of one peer keep at
 * most 4 of them waiting, and peers take turns.
 *
 * For deferred calls of a server (rxw_call_defer()) and calls of a client with
 * RXW_CALL_NONBLOCK. A transfer takes the place of the callback or queue of the call. Until
 * `done` use the call only for rxw_call_abort(), rxw_call_error(), rxw_call_stats() and
 * attributes.
 *
 * `fd` is duplicated: it may be closed at once. Its file position is neither used nor changed.
 * The sum of `offset` and `length` is at most INT64_MAX; a `length` of 0 is allowed. After
 * sending flush or end the stream; to receive ends the request of a client.
 *
 * 0: `done` will be called. Otherwise nothing was begun: -RXW_EINVAL (an argument is NULL or out
 * of range), -RXW_ESTATE (not such a call, or it has a transfer), -RXW_ENOMEM, -RXW_ESYS (no
 * thread can be started). Neither function waits. Any thread, also in a callback.
 */
RXW_MUST_USE
int rxw_file_send(rxw_call *call, int fd, uint64_t offset, uint64_t length, rxw_file_fn done,
		  void *arg);
RXW_MUST_USE
int rxw_file_receive(rxw_call *call, int fd, uint64_t offset, uint64_t length, rxw_file_fn done,
		     void *arg);

#ifdef __cplusplus
}
#endif
#endif
