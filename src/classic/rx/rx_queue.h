/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doubly linked lists whose links are the first member of each element. The head is a link as well;
 * an empty list is a head linked to itself. The macros take pointers to any such structure, `s` is
 * the name of its struct. They do not lock.
 */
#ifndef RXWIRE_CLASSIC_QUEUE_H
#define RXWIRE_CLASSIC_QUEUE_H

#include <stddef.h>

struct rx_queue {
	struct rx_queue *prev;
	struct rx_queue *next;
};

/* -- Behind the macros: the chain from `first` to `last` ------------------------------------------ */

static inline void rxc_queue_join(struct rx_queue *before, struct rx_queue *after)
{
	before->next = after;
	after->prev = before;
}

/* Put a chain that is in no list behind `before`. */
static inline void rxc_queue_link(struct rx_queue *before, struct rx_queue *first,
				  struct rx_queue *last)
{
	struct rx_queue *after = before->next;

	rxc_queue_join(before, first);
	rxc_queue_join(last, after);
}

static inline void rxc_queue_init(struct rx_queue *head)
{
	rxc_queue_join(head, head);
}

static inline void rxc_queue_unlink(struct rx_queue *first, struct rx_queue *last)
{
	rxc_queue_join(first->prev, last->next);
}

/* The same, where `before` may be one end of the chain or its neighbour. */
static inline void rxc_queue_move(struct rx_queue *before, struct rx_queue *first,
				  struct rx_queue *last)
{
	if (before == last || before->next == first)
		return;
	rxc_queue_unlink(first, last);
	rxc_queue_link(before, first, last);
}

/* All elements of `from` behind `before`. */
static inline void rxc_queue_splice(struct rx_queue *before, struct rx_queue *from)
{
	struct rx_queue *first = from->next, *last = from->prev;

	if (first == from)
		return;
	rxc_queue_init(from);
	rxc_queue_link(before, first, last);
}

/* A chain behind `before`, in another list; nothing if it is empty: it begins with the `head`. */
static inline void rxc_queue_split(struct rx_queue *head, struct rx_queue *before,
				   struct rx_queue *first, struct rx_queue *last)
{
	if (first == head || last == head)
		return;
	rxc_queue_unlink(first, last);
	rxc_queue_link(before, first, last);
}

static inline void rxc_queue_remove(struct rx_queue *element)
{
	rxc_queue_unlink(element, element);
	element->next = NULL;
}

#define RXC_QUEUE(x) ((struct rx_queue *)(x))

/* -- Heads and elements --------------------------------------------------------------------------- */

/* Make an empty list of a head, and an element that is in no list. */
#define queue_Init(q)	  rxc_queue_init(RXC_QUEUE(q))
#define queue_NodeInit(i) ((void)(RXC_QUEUE(i)->prev = RXC_QUEUE(i)->next = NULL))

/* Add an element that is in no list: first, last, before or behind the element i1. */
#define queue_Prepend(q, i)	   rxc_queue_link(RXC_QUEUE(q), RXC_QUEUE(i), RXC_QUEUE(i))
#define queue_Append(q, i)	   rxc_queue_link(RXC_QUEUE(q)->prev, RXC_QUEUE(i), RXC_QUEUE(i))
#define queue_InsertBefore(i1, i2) queue_Append(i1, i2)
#define queue_InsertAfter(i1, i2)  queue_Prepend(i1, i2)

/* Take an element out; queue_IsOnQueue() is false then. Or move it to a list, as its last or first. */
#define queue_Remove(i)		rxc_queue_remove(RXC_QUEUE(i))
#define queue_MoveAppend(q, i)	(rxc_queue_unlink(RXC_QUEUE(i), RXC_QUEUE(i)), queue_Append(q, i))
#define queue_MovePrepend(q, i) (rxc_queue_unlink(RXC_QUEUE(i), RXC_QUEUE(i)), queue_Prepend(q, i))

/* -- Several elements ----------------------------------------------------------------------------- */

/* All of q2 to the beginning or the end of q1, or in place of its elements; q2 is empty then. */
#define queue_SplicePrepend(q1, q2) rxc_queue_splice(RXC_QUEUE(q1), RXC_QUEUE(q2))
#define queue_SpliceAppend(q1, q2)  rxc_queue_splice(RXC_QUEUE(q1)->prev, RXC_QUEUE(q2))
#define queue_Replace(q1, q2)	    (queue_Init(q1), queue_SplicePrepend(q1, q2))

/* The elements of q1 before or after i, to the end or the beginning of q2. */
#define queue_SplitAfterAppend(q1, q2, i) \
	rxc_queue_split(RXC_QUEUE(q1), RXC_QUEUE(q2)->prev, RXC_QUEUE(i)->next, RXC_QUEUE(q1)->prev)
#define queue_SplitAfterPrepend(q1, q2, i) \
	rxc_queue_split(RXC_QUEUE(q1), RXC_QUEUE(q2), RXC_QUEUE(i)->next, RXC_QUEUE(q1)->prev)
#define queue_SplitBeforeAppend(q1, q2, i) \
	rxc_queue_split(RXC_QUEUE(q1), RXC_QUEUE(q2)->prev, RXC_QUEUE(q1)->next, RXC_QUEUE(i)->prev)
#define queue_SplitBeforePrepend(q1, q2, i) \
	rxc_queue_split(RXC_QUEUE(q1), RXC_QUEUE(q2), RXC_QUEUE(q1)->next, RXC_QUEUE(i)->prev)

/* The elements from `start` to `end` of a list, before or behind an element i not among them. */
#define queue_MoveChainBefore(i, start, end) \
	rxc_queue_move(RXC_QUEUE(i)->prev, RXC_QUEUE(start), RXC_QUEUE(end))
#define queue_MoveChainAfter(i, start, end) \
	rxc_queue_move(RXC_QUEUE(i), RXC_QUEUE(start), RXC_QUEUE(end))

/* -- Neighbours: the head beyond each end --------------------------------------------------------- */

#define queue_First(q, s)   ((struct s *)(void *)RXC_QUEUE(q)->next)
#define queue_Last(q, s)    ((struct s *)(void *)RXC_QUEUE(q)->prev)
#define queue_Next(i, s)    ((struct s *)(void *)RXC_QUEUE(i)->next)
#define queue_Prev(i, s)    ((struct s *)(void *)RXC_QUEUE(i)->prev)

#define queue_IsEmpty(q)    (RXC_QUEUE(q)->next == RXC_QUEUE(q))
#define queue_IsNotEmpty(q) (RXC_QUEUE(q)->next != RXC_QUEUE(q))
/* For elements that were initialized, zeroed, added or removed. */
#define queue_IsOnQueue(i)    (RXC_QUEUE(i)->next != NULL)
#define queue_IsNotOnQueue(i) (RXC_QUEUE(i)->next == NULL)
#define queue_IsFirst(q, i)   (RXC_QUEUE(q)->next == RXC_QUEUE(i))
#define queue_IsLast(q, i)    (RXC_QUEUE(q)->prev == RXC_QUEUE(i))
#define queue_IsEnd(q, i)     (RXC_QUEUE(q) == RXC_QUEUE(i))
#define queue_IsNotEnd(q, i)  (RXC_QUEUE(q) != RXC_QUEUE(i))

/*
 * The three parts of a for loop, for (queue_Scan(&list, element, next, s)), also with more
 * expressions before and behind. The body may remove `element`. The loops end at the head.
 */
#define queue_ScanFrom(q, start, qe, n, s)                           \
	(qe) = (struct s *)(void *)(start), (n) = queue_Next(qe, s); \
	queue_IsNotEnd(q, qe);                                       \
	(qe) = (n), (n) = queue_Next(qe, s)
#define queue_Scan(q, qe, n, s) queue_ScanFrom(q, RXC_QUEUE(q)->next, qe, n, s)
#define queue_ScanBackwardsFrom(q, start, qe, p, s)                  \
	(qe) = (struct s *)(void *)(start), (p) = queue_Prev(qe, s); \
	queue_IsNotEnd(q, qe);                                       \
	(qe) = (p), (p) = queue_Prev(qe, s)
#define queue_ScanBackwards(q, qe, p, s) queue_ScanBackwardsFrom(q, RXC_QUEUE(q)->prev, qe, p, s)

/* A statement: the number of elements in n. */
#define queue_Count(q, qe, next, s, n)                     \
	for ((n) = 0, queue_Scan(q, qe, next, s), (n)++) { \
	}

#endif
