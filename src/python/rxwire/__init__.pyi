# SPDX-License-Identifier: BSD-2-Clause
from rxwire.core import (Call as Call, Connection as Connection, Endpoint as Endpoint, Engine as Engine,
                         Identity as Identity, Keys as Keys, Pool as Pool, Security as Security, ServerCall as ServerCall, Token as Token,
                         rxgk_server as rxgk_server, rxkad_server as rxkad_server)
from rxwire.errors import (DecodeError as DecodeError, EncodeError as EncodeError, Error as Error, RxAbort as RxAbort,
                           RxError as RxError, RxTimeout as RxTimeout, XdrError as XdrError)

def version() -> str: ...
def code_from_errno(errno: int) -> int: ...

RXW_EINVAL: int
RXW_ENOMEM: int
RXW_EADDRINUSE: int
RXW_ESYS: int
RXW_ECALL: int
RXW_EAGAIN: int
RXW_EEOF: int
RXW_ESTATE: int
RXW_EDEADLK: int
RXW_ESTOPPED: int
RXW_ETIMEDOUT: int
RXW_ENOTSUP: int
RXW_ELIMIT: int
RXW_ENAME: int
RXW_EVALUE: int
RXW_EDECODE: int
RXW_ENOKEY: int
RXW_CALL_DEAD: int
RXW_INVALID_OPERATION: int
RXW_CALL_TIMEOUT: int
RXW_CALL_EOF: int
RXW_PROTOCOL_ERROR: int
RXW_USER_ABORT: int
RXW_CALL_ADDRINUSE: int
RXW_CALL_MSGSIZE: int
RXW_RESTARTING: int
RXW_NETWORK_RESET: int
RXW_RPC_CC_MARSHAL: int
RXW_RPC_CC_UNMARSHAL: int
RXW_RPC_SS_MARSHAL: int
RXW_RPC_SS_UNMARSHAL: int
RXW_RPC_DECODE: int
RXW_RPC_OPCODE: int
RXW_ORIGIN_NONE: int
RXW_ORIGIN_LOCAL: int
RXW_ORIGIN_PEER: int
RXW_LEVEL_CLEAR: int
RXW_LEVEL_AUTH: int
RXW_LEVEL_CRYPT: int
RXW_EVENT_READ: int
RXW_EVENT_WRITE: int
RXW_EVENT_DONE: int
RXW_EVENT_CALL: int
RXW_EVENT_CHANNEL: int
RXW_CALL_NONBLOCK: int
RXW_CALL_TRY: int
RXW_SERVICE_INLINE: int
RXW_SERVICE_REACH: int
RXW_KEY_DES: int
RXW_KEY_RXGK: int
RXW_KEY_KRB5: int
RXW_TOKEN_CACHE: int
RXW_TOKEN_KEYTAB: int
RXW_TOKEN_LOCAL: int
RXW_RXKAD_INDEX: int
RXW_RXGK_INDEX: int
RXW_RXGK_INDEX_YFS: int
