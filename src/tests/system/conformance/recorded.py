# SPDX-License-Identifier: BSD-2-Clause
"""Replays scenarios recorded with an OpenAFS server against our server or an OpenAFS server
(`run --recorded`), and decodes the recorded packets with this peer. Where our rules differ from the
record (section 13 of the specification), `DIFFERENT` lists the expected packets."""

import json
import os
import struct
import time

import wire
from harness import TESTS
from peer import End, Failed, Skipped, Socket, equal, want
from wire import ABORT, ACK, DATA, DEBUG, LAST, REQUEST, VERSION, Packet

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'vectors')


def load(name):
    with open(os.path.join(VECTORS, name)) as f:
        return json.load(f)


def none_of(*steps):
    return {'without': set(steps)}


def said(sent, kind, body, seq=0, flags=0):
    """A packet of the server for the same call as this packet of the client."""
    return Packet(sent.epoch, sent.cid, sent.call, seq, 1, kind, flags, 0, 0, 0, sent.service, body)


def abort(step, code):
    """An ABORT follows the packet of this step."""
    return step, lambda sent: said(sent, ABORT, struct.pack('>i', code))


def answer(step):
    """The reply of the operation follows the packet of this step."""
    return step, lambda sent: said(sent, DATA, struct.pack('>ii', 1, 1), 1, LAST)


def response(step):
    """A PING_RESPONSE follows the packet of this step."""
    return step, lambda sent: said(sent, ACK, wire.Ack(2, serial=sent.serial,
                                                       reason=wire.PING_RESPONSE).encode())


def out_of_sequence(step):
    """The packet of this step is answered like one after a hole."""
    return step, lambda sent: said(sent, ACK, wire.Ack(1, serial=sent.serial,
                                                       reason=wire.OUT_OF_SEQUENCE).encode())


# By name: recorded steps that we do not send, and additional packets that we do.
DIFFERENT = {
    'unknown-service': {'service': True},
    'security-index-not-offered': {'service': True},
    'data-seq-0': none_of(1),
    'type-12-call-0': {'without': {1, 3}, 'with': [answer(2)]},
    'data-call-0': none_of(1),
    'type-14-on-live-call': none_of(2),
    'ping-live-call': {'with': [response(4)]},
    'address-change-high-bit': {'without': {3}, 'with': [abort(4, -5)]},
    'data-after-last': {'without': {3, 5}, 'with': [abort(2, -5), abort(4, -5)]},
    'service-id-change': none_of(3),
    # 40 is beyond the largest window of a server that has one of 32.
    'seq-40-first': {'server': {'window': 32, 'listeners': 1}},
    # 16 packets are advertised, but a client on this host, or with a validated address, may fill
    # the largest window: 20 is accepted as a packet after a hole.
    'seq-20-first': {'without': {1}, 'with': [out_of_sequence(0)]},
}


def key(p, different):
    """The fields of a packet that must be as recorded. Serials, previousPacket and the trailer are
    our own. ACKs of several steps may be merged, so only the acknowledged set is compared."""
    stateless = p.type == ABORT and p.serial == 0
    service, spare = p.service, p.spare
    if different.get('service') and p.service == 0:
        service, spare = p.spare, 0
    head = (wire.TYPES.get(p.type), p.epoch, p.cid, p.call, p.seq, p.status, p.security, spare, service,
            'stateless' if stateless else '')
    if p.type == ACK:
        return head + (p.reason, p.ack.serial if p.reason != wire.DELAY else 0)
    if p.type == VERSION:
        return head + (p.flags, len(p.body))
    if p.type in (DEBUG, ABORT):
        return head + (p.flags, p.body)
    return head + (p.flags & LAST, p.body)


def acknowledged(packets):
    """Sequence numbers acknowledged by the ACKs of a call."""
    seqs = set()
    for p in packets:
        if p.type == ACK and p.ack:
            seqs |= set(range(1, p.ack.first))
            seqs |= {p.ack.first + i for i, e in enumerate(p.ack.entries) if e & 1}
    return seqs


def await_acks(socks, recorded):
    """An ABORT ends a call, and with it the ACK that a timer would send: that has to come before."""
    due = acknowledged(p for p in recorded if p.reason != wire.PING)
    until = time.monotonic() + 10
    while not due <= acknowledged(socks['A'].packets) | acknowledged(socks['B'].packets):
        if not socks['A'].read(max(0, until - time.monotonic())):
            return


def by_itself(p):
    """Packets sent by a timer or by the application's reads: the replay does not wait for them."""
    return p.type == ACK and p.reason in (wire.DELAY, wire.IDLE, wire.PING) or \
        p.type == DATA and p.flags & REQUEST


def replay(t, scenario):
    different = {} if t.foreign else DIFFERENT.get(scenario['name'], {})
    socks = {'A': t.socket(), 'B': t.socket()}
    to = (t.server(**different['server']) if 'server' in different else t.shared).address
    late, now, recorded = [], 0, []
    for i, step in enumerate(scenario['steps']):
        p = Packet.decode(bytes.fromhex(step['hex']))
        if step['dir'] == 'send':
            time.sleep(min(0.25, max(0.15, (step['ms'] - now) / 1000)) if step['ms'] > now else 0)
            now = step['ms']
            while late and late[0][1].type == DATA:
                again(*late.pop(0))
            sock = socks['B' if 'from' in step else 'A']
            if p is not None and p.type == ABORT:
                await_acks(socks, recorded)
            if p is None:
                sock.send(bytes.fromhex(step['hex']), to)
                continue
            sock.send(p.encode(), to)
            extra = [make(p) for at, make in different.get('with', []) if at == i]
            for e in extra:
                wait_for(sock, e, different)
        elif i not in different.get('without', ()):
            sock = socks['B' if 'at' in step else 'A']
            recorded.append(p)
            if by_itself(p) and (p.type == DATA or scenario['name'] == 'server-keepalive'):
                late.append((sock, p))
            elif by_itself(p):
                pass
            else:
                wait_for(sock, p, different)
    if late:
        late[0][0].next(lambda q: q.reason == wire.PING, what='a PING')
    c = End(socks['A'], to, 73)
    c.data(1, 1, bytes.fromhex(load('scenarios.json')['scenarios'][0]['steps'][0]['hex'])[28:])
    c.next(DATA, 1)
    for name, sock in socks.items():
        left = [str(p) for p in sock.drain(0.1) if not by_itself(p)]
        equal(left, [], 'what came besides at port ' + name)
    ours = acknowledged(socks['A'].packets)
    want(acknowledged(p for p in recorded if p.reason != wire.PING) <=
         ours | acknowledged(socks['B'].packets),
         'acknowledged are %s only' % ours)
    if scenario['name'] == 'out-of-order' and not t.foreign:
        previous = [p.ack.previous for p in socks['A'].packets if p.type == ACK]
        equal(previous, sorted(previous), 'previousPacket of all ACKs')


def again(sock, p):
    sock.next(lambda q: q.type == DATA and q.seq == p.seq and q.flags & REQUEST and q.body == p.body,
              what='a repeated packet')


def wait_for(sock, p, different):
    wanted = key(p, different)
    try:
        sock.next(lambda q: key(q, different) == wanted, 10)
    except Failed:
        raise Failed('%s did not come; %s did' % (
            wanted, [key(q, different) for q in sock.waiting])) from None


def register():
    for scenario in load('scenarios.json')['scenarios']:
        name = 'test_scenario_' + scenario['name'].replace('-', '_')
        TESTS.append({'item': None, 'name': name, 'role': 'server', 'harm': True,
                      'ours': True,
                      'slow': 4 if scenario['name'] in ('reply-not-acked', 'server-keepalive') else 0,
                      'run': lambda t, s=scenario: replay(t, s), 'doc': scenario['note']})


def test_peer_reads_the_vectors(t):
    """This peer decodes every recorded packet as documented."""
    count = 0
    for name in ('packets-data.json', 'packets-ack.json', 'packets-jumbo.json', 'packets-misc.json'):
        for v in load(name)['vectors']:
            raw = bytes.fromhex(v['hex'])
            p, h = Packet.decode(raw), v['fields']['header']
            equal((p.epoch, p.cid & ~3, p.channel, p.call, p.seq, p.serial, p.type, p.flags, p.status,
                   p.security, p.spare, p.service),
                  (int(h['epoch'], 16), int(h['cid'], 16) & ~3, h['channel'], h['callNumber'], h['seq'],
                   h['serial'], h['type'], int(h['flags'], 16), h['userStatus'], h['securityIndex'],
                   int(h['spare'], 16), h['serviceId']), v['id'])
            equal(p.encode(), raw, v['id'] + ' encoded')
            a = v['fields'].get('ack')
            if a:
                equal((p.ack.first, p.ack.previous, p.ack.serial, p.ack.reason, p.ack.entries.hex()),
                      (a['firstPacket'], a['previousPacket'], a['serial'], a['reason'], a['acks']), v['id'])
                equal(p.ack.encode(), p.body, v['id'] + ' encoded')
            for m, j in zip(p.members(), v['fields'].get('jumbogram', [])):
                equal((m[0], m[1], m[2], len(m[4])),
                      (j['seq'], j['serial'], int(j['flags'], 16), j['dataLength']), v['id'])
            count += 1
    want(count > 20, 'only %d packets' % count)


TESTS.append({'item': None, 'name': 'test_peer_reads_the_vectors', 'role': 'server', 'harm': True,
              'slow': 0, 'ours': True, 'run': test_peer_reads_the_vectors,
              'doc': test_peer_reads_the_vectors.__doc__})
register()
