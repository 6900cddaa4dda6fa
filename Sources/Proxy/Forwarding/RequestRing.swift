import Configuration
import Reactor
import Reports
import WireText

/// The last requests of one loop, so that people see what happens.
///
/// A ring of fixed slots: a request costs a copy of its names, and no allocation. Texts are made when somebody looks.
/// Loop's thread only.
struct RequestRing {
    /// Bytes of one slot: method, host, path and the program's name, each cut at its limit.
    private static let slot = 256
    private static let limits = (method: 16, host: 64, path: 128, program: 48)

    /// Small, because each request writes one: what few requests have is in `details`.
    struct Entry {
        let ended: LoopTime
        var nanoseconds: UInt64 = 0
        var status = 0
        var rule: UpstreamRule?
        /// Number of the request's ID, unless `details` has the ID.
        var idNumber: UInt64 = 0
        var details: Details?
        /// Ends of the texts in the slot.
        fileprivate var ends: (method: UInt16, host: UInt16, path: UInt16, program: UInt16) = (0, 0, 0, 0)

        init(ended: LoopTime) { self.ended = ended }
    }

    final class Details {
        let caller: Caller
        let id: [UInt8]?
        let refusal: (reason: String?, cause: String?, remedy: String?)

        init(_ caller: Caller, id: [UInt8]?, _ ledger: Ledger) {
            self.caller = caller
            self.id = id
            refusal = (ledger.refusal, ledger.cause, ledger.remedy)
        }
    }

    /// IDs for all requests of the loop that have none.
    var ids = RequestIDs()
    private var entries: [Entry] = []
    private var bytes: [UInt8] = []
    /// Number of requests so far.
    private(set) var count: UInt64 = 0

    mutating func add(
        _ entry: consuming Entry, method: Span<UInt8>, host: Span<UInt8>, path: Span<UInt8>, program: Span<UInt8>
    ) {
        if bytes.isEmpty { bytes = [UInt8](repeating: 0, count: RecentRequests.most * Self.slot) }
        let index = Int(count % UInt64(RecentRequests.most))
        let start = index * Self.slot
        entry.ends.method = copy(method, Self.limits.method, start, 0)
        entry.ends.host = copy(host, Self.limits.host, start, entry.ends.method)
        entry.ends.path = copy(path, Self.limits.path, start, entry.ends.host)
        entry.ends.program = copy(program, Self.limits.program, start, entry.ends.path)
        if index < entries.count { entries[index] = entry } else { entries.append(entry) }
        count &+= 1
    }

    /// - Returns: the end of the copy in its slot.
    private mutating func copy(_ text: Span<UInt8>, _ limit: Int, _ slot: Int, _ offset: UInt16) -> UInt16 {
        let text = text.count > limit ? text.extracting(first: limit) : text
        bytes.replace(from: slot + Int(offset), copying: text)
        return offset + UInt16(truncatingIfNeeded: text.count)
    }

    /// Adds the requests after the first `seen` to `report`, the oldest first.
    func add(to report: inout RecentRequests, after seen: UInt64, _ now: LoopTime) {
        let kept = max(min(seen, count), count - UInt64(entries.count))
        report.counts.append(count)
        report.missed += kept - min(seen, kept)
        let wall = WallTime.now
        for number in kept..<count {
            report.requests.append(request(Int(number % UInt64(RecentRequests.most)), now, wall))
        }
    }

    private func request(_ index: Int, _ now: LoopTime, _ wall: WallTime) -> RecentRequest {
        let entry = entries[index]
        func text(_ start: UInt16, _ end: UInt16) -> String {
            let slot = index * Self.slot
            return String(decoding: bytes[slot + Int(start)..<slot + Int(end)], as: UTF8.self)
        }
        let (ends, details) = (entry.ends, entry.details)
        let ended = wall - now.since(entry.ended)
        var request = RecentRequest(
            id: String(decoding: details?.id ?? ids.text(of: entry.idNumber), as: UTF8.self),
            endedAt: Int64(ended.seconds) * 1000 + Int64(ended.nanoseconds / 1_000_000),
            duration: .nanoseconds(Int64(clamping: entry.nanoseconds)),
            method: text(0, ends.method), host: text(ends.method, ends.host), path: text(ends.host, ends.path),
            status: entry.status)
        let program = ForeignText.printable(text(ends.path, ends.program))
        request.program = program.isEmpty ? nil : program
        request.upstream = entry.rule?.name
        request.rule = entry.rule?.index
        request.client = entry.rule?.settings.client
        request.caller = details?.caller.name
        request.reason = details?.refusal.reason
        request.cause = details?.refusal.cause
        request.remedy = details?.refusal.remedy
        return request
    }
}
