# SPDX-License-Identifier: BSD-2-Clause
"""Addresses: matching packets to connections (2.3), validation before a call is served (6.7), and
the source address of answers."""

import struct

import wire
from clients import ends_well
from guards import ask_debug
from harness import ABORT_WITH, COOKIE, COUNT, Server, ask, test, words
from peer import equal
from wire import ABORT, ACK, CLIENT, DATA, LAST, VERSION

VALIDATES = 149     # a service of the endpoint under test that validates addresses first


def counted(c, call=1):
    """A call whose reply is the number of such calls so far."""
    c.data(call, 1, ask(COUNT))
    p = c.next(DATA)
    equal(p.call, call, 'the call that is answered')
    return struct.unpack('>I', p.body)[0]


@test(None, ours=True)
def test_rule_2_3_a_port_that_changes(t):
    """A connection belongs to its source port. Its call is not served again from another port, which
    may only be asked whether it is the client. The next call is served, and moves the connection there."""
    server = t.own()
    first = t.conn(server)
    equal(counted(first), 1, 'calls served')
    for call in (1, 2):
        c = t.conn(server, t.socket(), epoch=first.epoch, cid=first.cid)
        c.data(call, 1, ask(COUNT))
        equal(counted(c, call + 1), call + 1, 'calls served')
        equal([str(p) for p in c.sock.packets if p.call == call and
               not (p.type == ACK and p.ack.reason == wire.PING)], [], 'answers to the old call')


@test(None, ours=True)
def test_rule_2_3_epochs_of_the_old_form(t):
    """If bit 31 of the epoch is 0, the address is part of the connection's identity: the same
    numbers from another port are another connection."""
    server = t.own()
    for number in (1, 2):
        c = t.conn(server, t.socket(), epoch=0x12345678, cid=0x7500)
        equal(counted(c), number, 'calls served')
    _, p = ask_debug(c.sock, server.address, 4)
    equal(struct.unpack('>71i', p.body)[56], 2, 'connections')


@test(None, 'client', ours=True)
def test_rule_2_3_a_server_of_several_addresses(t):
    """A reply is accepted from any address with the server's port, and from no other port. The
    client continues to send to the address that it was given."""
    listener = t.listen()
    other = t.socket(bind='127.0.0.3', port=listener.sock.port)
    client = t.client(listener)
    call = client.rpc()
    end, first = listener.request()
    t.socket().send(end.packet(DATA, 1, 1, b'evil', LAST).encode(), end.to)
    other.send(end.packet(DATA, 1, 1, wire.pattern(0, 4) + COOKIE, LAST).encode(), end.to)
    ends_well(client, call)
    end.next(ACK, 1)
    equal([str(p) for p in other.drain()], [], 'packets to the other address')


@test(None, ours=True)
def test_rule_answers_leave_from_the_address_asked(t):
    """A server with several addresses answers from the one that was asked: replies, ACKs, ABORTs
    with and without a connection, and VERSION."""
    server = t.server(listeners=2, address='0.0.0.0')
    sock, ends = t.socket(), []
    for host in ('127.0.0.2', '127.0.0.1', '127.1.2.3'):
        at = Server((host, server.address[1]))
        c, unknown = t.conn(at, sock), t.conn(at, sock, service=9)
        t.served(c)
        c.data(1, 1, t.request())
        c.next(ACK, 1, wire.DUPLICATE)
        c.data(2, 1, ask(ABORT_WITH, 99))
        equal(c.next(ABORT, 2).code, 99, 'the code')
        unknown.data(1, 1, b'')
        unknown.next(ABORT)
        c.send(VERSION, 0, 0, bytes(4), CLIENT)
        c.next(VERSION)
        ends += [c, unknown]
    for p in sock.packets:
        equal(p.address, next(e.to for e in ends if e.mine(p)), 'the address of %s' % p)


@test(None, ours=True)
def test_rule_6_7_validate_first(t):
    """A service with validation serves no call before the address is validated: by the serial of
    its PING, not by a duplicate or another serial. The address then stays validated for a while."""
    server = t.own()
    c = t.conn(server, service=VALIDATES)
    c.data(1, 1, ask(COUNT))
    asked = c.next(ACK, 1, wire.PING)
    c.data(1, 1, ask(COUNT))
    c.ack(1, 1, wire.PING_RESPONSE, serial=asked.serial + 100)
    equal(counted(t.conn(server, c.sock)), 1, 'calls served before')
    equal([str(p) for p in c.sock.packets if c.mine(p) and p.type == DATA], [], 'replies before')
    c.ack(1, 1, wire.PING_RESPONSE, serial=asked.serial)
    equal(c.next(DATA, 1).body, words(2), 'calls served')
    again = t.conn(server, c.sock, service=VALIDATES)
    equal(counted(again), 3, 'calls served')
    equal([str(p) for p in c.sock.packets if again.mine(p) and p.reason == wire.PING], [], 'PINGs')


@test(None, ours=True)
def test_rule_6_7_small_calls_are_answered_at_once(t):
    """The first small call of an address costs no PING."""
    c = t.conn()
    t.served(c)
    equal([str(p) for p in c.sock.packets if p.reason == wire.PING], [], 'PINGs')
