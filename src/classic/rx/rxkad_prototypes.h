/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of rxkad. Included by rxkad.h. Any thread. */
#ifndef RXWIRE_CLASSIC_RXKAD_PROTOTYPES_H
#define RXWIRE_CLASSIC_RXKAD_PROTOTYPES_H

#include <rx/fcrypt.h>
#include <rx/rx.h>
#include <rx/rxkad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- Security objects ----------------------------------------------------------------------------- */

/*
 * The client side, with one reference. Key and ticket are copied. `kvno` is the form of the ticket.
 * NULL: the level or the length of the ticket (32 to 12,000) is invalid.
 */
extern struct rx_securityClass *rxkad_NewClientSecurityObject(rxkad_level level,
							      struct ktc_encryptionKey *key,
							      afs_int32 kvno, int length,
							      char *ticket);
/*
 * The server side, with one reference; clients below the level are refused. `get_key_enctype` is
 * asked for the key at each authentication, on a thread of the library, without a lock, on several
 * threads at the same time; `rock` must exist as long as the object, its services and their
 * connections. get_key() finds keys of single DES, which are not accepted, so it is not called.
 * `user_ok` must be NULL: use rxkad_GetServerInfo() in the procedure. NULL: an invalid argument,
 * which the log names.
 */
extern struct rx_securityClass *rxkad_NewKrb5ServerSecurityObject(
	rxkad_level level, void *rock,
	int (*get_key)(void *rock, int kvno, struct ktc_encryptionKey *key),
	rxkad_get_key_enctype_func get_key_enctype,
	int (*user_ok)(char *name, char *instance, char *cell, afs_int32 kvno));
/* The same without keys but of single DES: every client is refused. */
extern struct rx_securityClass *rxkad_NewServerSecurityObject(
	rxkad_level level, void *rock,
	int (*get_key)(void *rock, int kvno, struct ktc_encryptionKey *key),
	int (*user_ok)(char *name, char *instance, char *cell, afs_int32 kvno));

/*
 * The client of a server's connection. Each pointer may be NULL; name, instance and cell have 64
 * bytes each, instance and cell may be empty; *kvno is the form of the ticket, *expires NEVERDATE
 * for one without an end. 0, or RXKADNOAUTH: another class, not authenticated, expired, or a
 * client's connection.
 */
extern afs_int32 rxkad_GetServerInfo(struct rx_connection *connection, rxkad_level *level,
				     afs_uint32 *expires, char *name, char *instance, char *cell,
				     afs_int32 *kvno);

/* "clear", "auth", "crypt"; -1 and "unknown" for others. */
extern rxkad_level rxkad_StringToLevel(char *name);
extern char *rxkad_LevelToString(rxkad_level level);

/* -- Tickets -------------------------------------------------------------------------------------- */

/*
 * Make a ticket with a service key, as the Kerberos server would. `length`: the room, and on return
 * the length; `kvno`: the version of the key, and on return the form of the ticket. The session key
 * is a DES key of odd parity that is not weak. "afs" without an instance and a cell is the service
 * itself. Seconds since 1970; a start of 0 allows any lifetime. The server's name is that of the
 * key. 0; RXKADTICKETLEN: no room; RXKADBADKEY: libkrb5 does not know the enctype, or the key has
 * another length; RXKADBADTICKET: another argument is invalid; ENOMEM.
 */
extern int tkt_MakeTicket5(char *ticket, int *length, int enctype, int *kvno, void *key,
			   size_t key_length, char *name, char *instance, char *cell,
			   afs_uint32 start, afs_uint32 end, struct ktc_encryptionKey *session,
			   char *server, char *server_instance);
/* RXKADBADKEY: tickets of single DES are not made. */
extern int tkt_MakeTicket(char *ticket, int *length, struct ktc_encryptionKey *key, char *name,
			  char *instance, char *cell, afs_uint32 start, afs_uint32 end,
			  struct ktc_encryptionKey *session, afs_uint32 host, char *server,
			  char *server_instance);
/* rxkad's session key, from that of a Kerberos 5 ticket. 0, or 1: not supported. */
extern int tkt_DeriveDesKey(int enctype, void *key, size_t length,
			    struct ktc_encryptionKey *session);
/*
 * -2: the times are impossible, or it expired long ago; -1: it has expired; 0: it begins later; 1:
 * it is valid and has no end or no start; 2: it is valid. Clocks may differ by 15 minutes.
 */
extern int tkt_CheckTimes(afs_uint32 start, afs_uint32 end, afs_uint32 now);
/*
 * The end of a Kerberos 4 ticket by the code of its lifetime, and the least code that covers a
 * lifetime; 0: none does.
 */
extern afs_uint32 life_to_time(afs_uint32 start, unsigned char life);
extern unsigned char time_to_life(afs_uint32 start, afs_uint32 end);

/* Give the messages of rxkad's codes to OpenAFS's com_err, if the program has it. */
extern void initialize_RXK_error_table(void);
#define init_RXK_err_tbl	   initialize_RXK_error_table
#define init_rxk_err_tbl	   initialize_RXK_error_table
#define initialize_rxk_error_table initialize_RXK_error_table
#define RXK_err_base		   ERROR_TABLE_BASE_RXK
#define rxk_err_base		   ERROR_TABLE_BASE_RXK
#define ERROR_TABLE_BASE_rxk	   ERROR_TABLE_BASE_RXK

#ifdef __cplusplus
}
#endif
#endif
