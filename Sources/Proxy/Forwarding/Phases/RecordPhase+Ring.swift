import HTTPMessage
import HTTPServer
import Reactor
import WireText

extension RecordPhase {
    /// Keeps the request among the last ones of its loop.
    /// - Parameter isWritten: whether a log shows the request, so that it has its ID there, too.
    static func keep(_ context: inout Context, isWritten: Bool) {
        let shard = context.shard
        var entry = RequestRing.Entry(ended: shard.loop.now)
        entry.nanoseconds = entry.ended.nanoseconds &- context.ledger.started.nanoseconds
        entry.status = context.ledger.loggedStatus
        entry.rule = context.admitted.rule
        let isNamed = context.stream.request.with { head, bytes in
            !bytes.isEmpty && RequestID.mayRead(head)
        }
        let hasID = isWritten || isNamed || context.ledger.requestID != nil
        if hasID || context.ledger.refusal != nil || context.ledger.cause != nil || context.admitted.caller.isKnown {
            let id = hasID ? requestID(&context) : nil
            entry.details = RequestRing.Details(context.admitted.caller, id: id, context.ledger)
        }
        if !hasID { entry.idNumber = shard.nextRequestNumber() }
        let destination = context.ledger.isSent ? context.admitted.destination : nil
        let target = context.admitted.target
        context.stream.request.with { head, bytes in
            // A connection that ended before its first byte has no head.
            guard !bytes.isEmpty else { return }
            var program = head.index(of: .userAgent).map { head.fields[$0].value } ?? .empty
            if context.installed.gate.placeholders?.isIn(bytes[program]) == true { program = .empty }
            guard !isHidden(head, bytes, context) else {
                let (none, path) = (ByteRange.empty, hidden)
                return shard.ring.add(
                    entry, method: bytes[none], host: bytes[none], path: path.span, program: bytes[program])
            }
            withTarget(head, bytes, destination, target) { host, path, isRoot in
                let (method, program) = (bytes[head.method], bytes[program])
                guard isRoot else {
                    return shard.ring.add(entry, method: method, host: host, path: path, program: program)
                }
                let root = root(head)
                shard.ring.add(entry, method: method, host: host, path: root.span, program: program)
            }
        }
    }
}
